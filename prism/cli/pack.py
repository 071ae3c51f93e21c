"""From a compilation to a bundle: buffers, steps and statistics out of the IR."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.metadata import version

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from prism.cli.compile import Compilation
from prism.dialects.kernel import LaunchOp
from prism.dialects.operator_op import OperatorOp
from prism.dialects.operators import Kind
from prism.dialects.sym import as_tensor, shape_of
from prism.runtime.manifest import (
    FORMAT_VERSION,
    WORKLOAD_FILE,
    BufferEntry,
    KernelEntry,
    Manifest,
    Step,
)
from prism.runtime.program import Instruction, Program
from prism.tune.target import load_target

_DISTRIBUTIONS = ("prism", "xdsl", "egglog", "numpy", "cuda-bindings", "nvidia-nvjitlink")


def pack(compilation: Compilation) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest and the files of a bundle of a compilation that has kernels."""
    graph, sizes = compilation.graph, compilation.sizes
    if graph is None:
        raise ValueError("no graph was chosen")
    workload = compilation.workload
    candidate = _function(compilation, graph.name)
    names = _Names()
    inputs = _inputs(workload, sizes, names)
    buffers: dict[SSAValue, BufferEntry] = dict(zip(candidate.args, inputs, strict=True))
    returned = _returned(candidate)
    outputs = [
        _buffer(value, _output_name(workload, position), sizes, names, reduction)
        for position, (value, reduction) in enumerate(
            zip(returned, reduction_lengths(workload, sizes), strict=True)
        )
    ]
    buffers.update(zip(returned, outputs, strict=True))
    temporaries: list[BufferEntry] = []
    steps: list[Step] = []
    for op in candidate.body.walk():
        if not isinstance(op, LaunchOp):
            continue
        for result in op.results:
            if result not in buffers:
                buffers[result] = _buffer(result, f"temporary{len(temporaries)}", sizes, names)
                temporaries.append(buffers[result])
        written = tuple(buffers[result].name for result in op.results)
        read = tuple(buffers[operand].name for operand in op.operands)
        steps.append(Step(op.kernel.string_value(), (*read, *written), written))
    kernels, files = _kernels(compilation)
    files[WORKLOAD_FILE] = compilation.source.text.encode("utf-8")
    manifest = Manifest(
        format=FORMAT_VERSION,
        versions={name: version(name) for name in _DISTRIBUTIONS},
        workload=workload.sym_name.data,
        shape=dict(sizes),
        target=compilation.target,
        compute_capability=load_target(compilation.target).compute_capability,
        graph=graph,
        program=workload_program(workload, sizes),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        temporaries=tuple(temporaries),
        kernels=kernels,
        steps=tuple(steps),
        files={},
    )
    return manifest, files


def workload_program(workload: FuncOp, sizes: Mapping[str, int]) -> Program:
    """The workload's operators at these sizes, for machines without xDSL."""
    numbers: dict[SSAValue, int] = {value: k for k, value in enumerate(workload.args)}
    instructions: list[Instruction] = []
    for op in workload.body.block.ops:
        if not isinstance(op, OperatorOp):
            continue
        given = op.attribute_values
        constants = [] if given.constant is None else [given.constant]
        constants += given.bounds or ()
        tensor = as_tensor(op.result.type)
        instructions.append(
            Instruction(
                operator=op.operator.name,
                operands=tuple(numbers[operand] for operand in op.inputs),
                shape=tuple(int(size.evaluate(sizes)) for size in shape_of(tensor)),
                dtype=str(tensor.element_type),
                dim=given.dim,
                constants=tuple(float(constant.evaluate(sizes)) for constant in constants),
                permutation=given.permutation,
            )
        )
        numbers[op.result] = len(numbers)
    returned = tuple(numbers[value] for value in _returned(workload))
    return Program(tuple(instructions), returned)


class _Names:
    """Names of buffers, made distinct by a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, name: str) -> str:
        chosen, number = name, 1
        while chosen in self._taken:
            chosen, number = f"{name}_{number}", number + 1
        self._taken.add(chosen)
        return chosen


def _function(compilation: Compilation, name: str) -> FuncOp:
    for op in compilation.module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == name:
            return op
    raise ValueError(f"the module has no function @{name}")


def _returned(function: FuncOp) -> tuple[SSAValue, ...]:
    terminator = function.body.block.last_op
    if not isinstance(terminator, ReturnOp):
        raise ValueError(f"@{function.sym_name.data} does not end with func.return")
    return tuple(terminator.operands)


def _buffer(
    value: SSAValue,
    name: str,
    sizes: Mapping[str, int],
    names: _Names,
    reduction: int | None = None,
    std: float | None = None,
) -> BufferEntry:
    tensor = as_tensor(value.type)
    shape = tuple(int(size.evaluate(sizes)) for size in shape_of(tensor))
    return BufferEntry(names.fresh(name), shape, str(tensor.element_type), std, reduction)


def _output_name(workload: FuncOp, position: int) -> str:
    return _returned(workload)[position].name_hint or f"output{position}"


def _inputs(workload: FuncOp, sizes: Mapping[str, int], names: _Names) -> list[BufferEntry]:
    """
    The inputs, with the standard deviation that a check draws them with.

    1, but 1 / sqrt(k) for the right operand of a product over k terms, so that products of such
    inputs keep the size of their left operand and f16 does not overflow.
    """
    deviations: dict[SSAValue, float] = {}
    for op in workload.walk():
        if isinstance(op, OperatorOp) and op.operator.kind is Kind.MATMUL:
            terms = int(shape_of(op.inputs[1].type)[-2].evaluate(sizes))
            deviations[op.inputs[1]] = 1 / math.sqrt(terms)
    return [
        _buffer(
            argument,
            argument.name_hint or f"arg{position}",
            sizes,
            names,
            std=deviations.get(argument, 1.0),
        )
        for position, argument in enumerate(workload.args)
    ]


def reduction_lengths(workload: FuncOp, sizes: Mapping[str, int]) -> list[int]:
    """For each result the number of terms of the longest sum on the way to it."""
    lengths: dict[SSAValue, int] = {}
    for op in workload.body.walk():
        if isinstance(op, OperatorOp):
            before = (lengths.get(operand, 1) for operand in op.inputs)
            lengths[op.result] = max(_terms(op, sizes), *before)
    return [lengths.get(value, 1) for value in _returned(workload)]


def _terms(op: OperatorOp, sizes: Mapping[str, int]) -> int:
    """How many terms an operator sums up; a maximum rounds nothing, the others sum nothing."""
    kind = op.operator.kind
    if kind is Kind.MATMUL:
        dim = -1
    elif kind in (Kind.SUM, Kind.COMPOSITE) and op.dim_value is not None:
        dim = op.dim_value
    elif kind is Kind.COMPOSITE and op.constant_value is not None:
        dim = -1  # the norms, which are over the last dim
    else:
        return 1
    return int(shape_of(op.inputs[0].type)[dim].evaluate(sizes))


def _kernels(compilation: Compilation) -> tuple[tuple[KernelEntry, ...], dict[str, bytes]]:
    entries: list[KernelEntry] = []
    files: dict[str, bytes] = {}
    for kernel in compilation.kernels:
        emitted, assembled = kernel.emitted, kernel.assembled
        entry = KernelEntry(
            name=emitted.name,
            grid=emitted.grid,
            block=emitted.block,
            smem_bytes=emitted.static_smem + emitted.dynamic_smem,
            dynamic_smem=emitted.dynamic_smem,
            registers=assembled.registers,
            spill_bytes=assembled.spill_bytes,
            ptx=f"{emitted.name}.ptx",
            cubin=f"{emitted.name}.cubin",
        )
        entries.append(entry)
        files[entry.ptx] = emitted.ptx.encode("utf-8")
        files[entry.cubin] = assembled.cubin
    return tuple(entries), files
