"""
Measuring one parameter point: lower it, check its result, and price what it did.

A task is plain data, so that any process or machine can do it; so is its outcome. `model` prices
predicted counts by the true footprint, `sim` runs the kernels in the simulator, compares them with
float64 and prices what its meter counted. Nothing is ranked that was not lowered; with `sim`
nothing whose result was not right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from prism.dialects.kernel import LaunchOp
from prism.dialects.sym import as_tensor, shape_of
from prism.errors import PrismError
from prism.tune.cost import Cost, Counts, cost, price
from prism.tune.graph import Graph, read_graph
from prism.tune.space import Point
from prism.tune.target import Target, load_target
from prism.tune.usage import OTHER_REGISTERS, Usage

if TYPE_CHECKING:
    from prism.codegen.emit import EmittedKernel
    from prism.simulator import Buffer, Simulator

OK = "ok"
REFUSED = "refused"
"""Code generation or the target does not take the point."""
WRONG = "wrong"
"""The result differs from float64 by more than rounding explains."""
FAULT = "fault"
"""The kernel did something illegal while it ran."""
TIMEOUT = "timeout"
CRASHED = "crashed"

MAX_ELEMENTS = 2**24
"""Elements of all tensors together that the simulator is given."""


@dataclass(frozen=True)
class Task:
    """
    One point to measure. `module` is the text of a module with the workload and the proven
    candidate, whose verdict is checked again; `seed` is of the inputs.
    """

    module: str
    candidate: str
    sizes: Mapping[str, int]
    point: Point
    target: str
    backend: str
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """
    What came of a task: `seconds` of a launch if its status is `OK`, else infinity.

    `counts` is what the backend counted; `detail` says why a point is out.
    """

    status: str
    seconds: float = float("inf")
    detail: str = ""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def ok(self) -> bool:
        """Whether the point may be ranked."""
        return self.status == OK


class MeasurementError(PrismError):
    """A task that cannot be measured at all, e.g. too large for the simulator."""


def measure(task: Task) -> Outcome:
    """
    Measure one point in this process.

    Only what a point may do is an outcome. Raises `MeasurementError` for a task that no point can
    make good.
    """
    from prism.codegen.errors import CannotLower
    from prism.codegen.limits import lowering_cost

    if task.backend not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise MeasurementError(f"unknown backend '{task.backend}' (known: {known})")
    module = _parsed(task.module).clone()
    target = load_target(task.target)
    workload, candidate = _functions(module, task.candidate)
    graph = read_graph(candidate, task.sizes)
    parameters = task.point.parameters()
    try:
        footprint = lowering_cost(candidate, task.sizes, parameters, target)
    except CannotLower as error:
        return Outcome(REFUSED, detail=error.message)
    registers = min(
        target.max_registers_per_thread, OTHER_REGISTERS + footprint.accumulator_registers
    )
    usage = Usage(footprint.smem_bytes, footprint.threads, registers)
    return BACKENDS[task.backend](_Lowered(task, module, workload, candidate, graph, usage, target))


@dataclass(frozen=True)
class _Lowered:
    task: Task
    module: ModuleOp
    workload: FuncOp
    candidate: FuncOp
    graph: Graph
    usage: Usage
    target: Target


def _by_model(job: _Lowered) -> Outcome:
    found = cost(job.graph, job.task.point, job.usage, job.target)
    return _priced(found, job.target)


def _by_simulator(job: _Lowered) -> Outcome:
    from prism.codegen.emit import emit_module
    from prism.passes.lower_to_cuda import LowerToCudaPass
    from prism.passes.lower_to_thread import LowerToThreadPass
    from prism.simulator import PtxError, Simulator, SimulatorError
    from prism.tune.tune import bind

    task = job.task
    bind(job.candidate, task.sizes, task.target, task.point.parameters())
    LowerToThreadPass().apply(_context(), job.module)
    LowerToCudaPass().apply(_context(), job.module)
    kernels = {kernel.name: kernel for kernel in emit_module(job.module)}
    simulator = Simulator(sanitize=True, meter=True)
    try:
        counts, wrong = _simulate(job, kernels, simulator)
    except (PtxError, SimulatorError) as error:
        return Outcome(FAULT, detail=str(error))
    if wrong:
        return Outcome(WRONG, detail=wrong)
    return _priced(price(job.graph, task.point, job.usage, counts, job.target), job.target)


BACKENDS: dict[str, Callable[[_Lowered], Outcome]] = {"model": _by_model, "sim": _by_simulator}
"""How a point is measured, by name."""


def _priced(found: Cost | None, target: Target) -> Outcome:
    if found is None:
        return Outcome(REFUSED, detail=f"over a limit of {target.name}")
    return Outcome(OK, found.seconds, counts=dict(vars(found.counts)))


def _simulate(
    job: _Lowered, kernels: Mapping[str, EmittedKernel], simulator: Simulator
) -> tuple[Counts, str]:
    """Counts of all launches, and what is wrong with the outputs, if anything."""
    import numpy as np

    from prism.runtime.dtypes import ELEMENT_TYPES
    from prism.verify.evaluate import evaluate_function

    sizes = job.task.sizes
    shapes = [_shape(argument, sizes) for argument in job.candidate.args]
    elements = sum(int(np.prod(shape)) for shape in shapes)
    if elements > MAX_ELEMENTS:
        raise MeasurementError(
            f"its inputs have {elements} elements; the simulator is given at most {MAX_ELEMENTS}"
        )
    generator = np.random.default_rng(job.task.seed)
    deviations = _deviations(job.workload, sizes)
    buffers: dict[SSAValue, Buffer] = {}
    exact: list[Any] = []
    for argument, shape, std in zip(job.candidate.args, shapes, deviations, strict=True):
        kind = ELEMENT_TYPES[str(as_tensor(argument.type).element_type)]
        stored = kind.encode(generator.standard_normal(shape) * std)
        exact.append(kind.decode(stored))
        buffers[argument] = simulator.alloc(stored)
    total = Counts(0, 0, 0, 0, 0, 0)
    for op in job.candidate.body.walk():
        if not isinstance(op, LaunchOp):
            continue
        for result in op.results:
            kind = ELEMENT_TYPES[str(as_tensor(result.type).element_type)]
            buffers[result] = simulator.alloc(kind.encode(np.full(_shape(result, sizes), np.nan)))
        kernel = kernels[op.kernel.string_value()]
        report = simulator.load(kernel.ptx, kernel.name)[kernel.name].launch(
            grid=kernel.grid,
            block=kernel.block,
            args=[buffers[value] for value in (*op.operands, *op.results)],
            dynamic_smem=kernel.dynamic_smem,
        )
        launch = Counts(
            report.global_read_bytes + report.global_write_bytes,
            report.dram_read_bytes + report.dram_write_bytes,
            sum(report.warp_instructions.values()),
            report.mma_flops,
            128 * report.shared_wavefronts,
            report.barriers,
        )
        total = Counts(
            *(a + b for a, b in zip(vars(total).values(), vars(launch).values(), strict=True))
        )
    returned = job.candidate.body.block.last_op
    outputs = returned.operands if isinstance(returned, ReturnOp) else ()
    references = evaluate_function(job.workload, exact, sizes)
    for value, reference in zip(outputs, references, strict=True):
        wrong = _difference(buffers[value].numpy(), reference, value, sizes)
        if wrong:
            return total, wrong
    return total, ""


def _difference(found: Any, reference: Any, value: SSAValue, sizes: Mapping[str, int]) -> str:
    """What is wrong with an output, by the tolerance of `prism run`; empty if nothing is."""
    from prism.runtime.check import compare, tolerance
    from prism.runtime.manifest import BufferEntry

    shape = _shape(value, sizes)
    dtype = str(as_tensor(value.type).element_type)
    # The longest sum that any workload of these sizes can have on the way, at least.
    length = max([*shape, *sizes.values()])
    entry = BufferEntry("output", shape, dtype, None, length)
    comparison = compare(entry, found, reference, tolerance(entry, (entry,)))
    if comparison.ok:
        return ""
    return f"relative error {comparison.max_rel_err:.3g} over {comparison.tolerance:.3g}"


def _deviations(workload: FuncOp, sizes: Mapping[str, int]) -> list[float]:
    """Standard deviations of inputs that keep products in the range of f16, as in a bundle."""
    from prism.dialects.operator_op import OperatorOp
    from prism.dialects.operators import Kind

    found: dict[SSAValue, float] = {}
    for op in workload.walk():
        if isinstance(op, OperatorOp) and op.operator.kind is Kind.MATMUL:
            terms = int(shape_of(op.inputs[1].type)[-2].evaluate(sizes))
            found[op.inputs[1]] = terms**-0.5
    return [found.get(argument, 1.0) for argument in workload.args]


def _shape(value: SSAValue, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(size.evaluate(sizes)) for size in shape_of(value.type))


def _functions(module: ModuleOp, name: str) -> tuple[FuncOp, FuncOp]:
    """The workload and the candidate of a task's module, and no other candidate."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    candidates = [function for function in functions if function.sym_name.data == name]
    workloads = [function for function in functions if function.sym_name.data != name]
    if len(candidates) != 1 or len(workloads) != 1:
        raise MeasurementError(f"expected a workload and @{name}, found {len(functions)} functions")
    return workloads[0], candidates[0]


@lru_cache(maxsize=1)
def _context() -> Context:
    from xdsl.universe import Universe

    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


@lru_cache(maxsize=64)
def _parsed(text: str) -> ModuleOp:
    return Parser(_context(), text).parse_module()
