"""
From IR to the values of the search: workloads to terms, candidates to graphs.

Nothing but printed IR is read, so that the passes work on text that was parsed back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from prism.dialects.expansions import EXPANSIONS
from prism.dialects.kernel import CANDIDATE_OF, GraphDefOp, KernelOperatorOp
from prism.dialects.layouts import REPL
from prism.dialects.shapes import Shape
from prism.dialects.sym import AxisMap, shape_of
from prism.dialects.threadblock import AccumOp, InputOp, OutputOp, TileOperatorOp, TileType, YieldOp
from prism.search.egg_program import ON_TERMS
from prism.search.graphs import ACCUM, OUTPUT, Graph, Step
from prism.search.program import ARGUMENT, Kernel, Plain, Program, Ref
from prism.search.sgraph import SGraph
from prism.search.terms import INPUT, Attribute, TermTable, compact


class UnsupportedError(Exception):
    """What this search cannot treat; the message says which operation and why."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A function of whole tensors as terms, one per result."""

    func: FuncOp
    table: TermTable
    outputs: tuple[int, ...]

    @property
    def name(self) -> str:
        """The function's symbol."""
        return self.func.sym_name.data


def workload_funcs(module: ModuleOp) -> list[FuncOp]:
    """The functions of a module that compute with kernel operators and are not candidates."""
    return [
        op
        for op in module.ops
        if isinstance(op, FuncOp)
        and CANDIDATE_OF not in op.attributes
        and any(isinstance(inner, KernelOperatorOp) for inner in op.walk())
    ]


def candidate_funcs(module: ModuleOp) -> Iterator[tuple[str, FuncOp]]:
    """
    The candidates of a module, each with the symbol of its workload.

    Raises PassFailedException where the attribute is no symbol.
    """
    for op in module.ops:
        if isinstance(op, FuncOp) and CANDIDATE_OF in op.attributes:
            workload = op.attributes[CANDIDATE_OF]
            if not isinstance(workload, SymbolRefAttr):
                raise PassFailedException(
                    f"@{op.sym_name.data}: expected a symbol as {CANDIDATE_OF}, found {workload}"
                )
            yield workload.string_value(), op


def read_workload(func: FuncOp) -> Workload:
    """
    The terms of a workload. Raises UnsupportedError at an operation that is no kernel operator.
    """
    table = TermTable()
    block = _single_block(func)
    terms: dict[SSAValue, int] = {}
    for index, argument in enumerate(block.args):
        terms[argument] = table.input(index, shape_of(argument.type))
    for op in block.ops:
        if isinstance(op, KernelOperatorOp):
            if op.operator.name not in ON_TERMS and op.operator.name not in EXPANSIONS:
                raise UnsupportedError(f"the search does not know {op.name}")
            operands = [terms[value] for value in op.inputs]
            terms[op.result] = table.expand(op.operator.name, operands, op.attribute_values)
        elif isinstance(op, ReturnOp):
            return Workload(func, table, tuple(terms[value] for value in op.arguments))
        else:
            raise UnsupportedError(f"{op.name} is no operator of the table")
    raise UnsupportedError("the function does not return")


def read_candidate(func: FuncOp) -> SGraph:
    """
    The graph of a candidate with its maps, symbolic or concrete.

    Raises UnsupportedError where it is not one `kernel.graph_def` whose results are returned.
    """
    block = _single_block(func)
    operations = list(block.ops)
    match operations:
        case [GraphDefOp() as graph_def, ReturnOp() as end]:
            pass
        case _:
            raise UnsupportedError("expected one kernel.graph_def and its return")
    arguments: dict[SSAValue, int] = {value: i for i, value in enumerate(block.args)}
    results: dict[SSAValue, int] = {value: i for i, value in enumerate(end.arguments)}
    if set(results) != set(graph_def.results_) or len(results) != len(end.arguments):
        raise UnsupportedError("expected each result of kernel.graph_def to be returned once")
    reader = _GraphReader(graph_def)
    for inner, outer in zip(graph_def.body.block.args, graph_def.inputs, strict=True):
        reader.inputs[inner] = arguments[outer]
    terminator = graph_def.body.block.last_op
    if isinstance(terminator, YieldOp):
        for value, result in zip(terminator.arguments, graph_def.results_, strict=True):
            reader.outputs.setdefault(value, results[result])
    return reader.read()


def read_program(func: FuncOp) -> Program:
    """
    The kernels of a candidate, one or several.

    Raises UnsupportedError where something else than graphs and operators computes what is
    returned.
    """
    block = _single_block(func)
    refs: dict[SSAValue, Ref] = {value: Ref(ARGUMENT, i) for i, value in enumerate(block.args)}
    kernels: list[Kernel | Plain] = []
    for op in block.ops:
        match op:
            case GraphDefOp():
                reader = _GraphReader(op)
                for number, inner in enumerate(op.body.block.args):
                    reader.inputs[inner] = number
                terminator = op.body.block.last_op
                if isinstance(terminator, YieldOp):
                    for number, value in enumerate(terminator.arguments):
                        reader.outputs.setdefault(value, number)
                types = tuple(value.type for value in op.results_)
                operands = tuple(refs[value] for value in op.inputs)
                refs |= {value: Ref(len(kernels), i) for i, value in enumerate(op.results_)}
                kernels.append(Kernel(reader.read(), operands, types))
            case KernelOperatorOp():
                operands = tuple(refs[value] for value in op.inputs)
                name = op.operator.name
                attribute = compact(name, op.attribute_values)
                refs[op.result] = Ref(len(kernels), 0)
                kernels.append(Plain(name, attribute, operands, (op.result.type,)))
            case ReturnOp():
                return Program(tuple(kernels), tuple(refs[value] for value in op.arguments))
            case _:
                raise UnsupportedError(f"{op.name} is neither an operator nor a graph")
    raise UnsupportedError("the function does not return")


class _GraphReader:
    """Reads the region of one `kernel.graph_def`."""

    def __init__(self, graph_def: GraphDefOp) -> None:
        self.graph_def = graph_def
        self.inputs: dict[SSAValue, int] = {}
        self.outputs: dict[SSAValue, int] = {}
        self.steps: list[Step] = []
        self.shapes: list[Shape] = []
        self.position: dict[SSAValue, int] = {}
        self.maps: dict[tuple[int, str], int | tuple[str, ...]] = {}

    def read(self) -> SGraph:
        grid, loops = self.graph_def.grid_axes, self.graph_def.loop_axes
        for op in self.graph_def.body.block.ops:
            match op:
                case InputOp():
                    self.append(op, INPUT, (), self.inputs[op.tensor], shape_of(op.tensor.type))
                    self.read_map(op.imap.data, grid)
                    self.read_map(op.fmap.data, loops)
                case AccumOp() if op.kind_value != "sum":
                    raise UnsupportedError(f"the search does not know {op.name} {op.kind_value}")
                case AccumOp():
                    self.append(op, ACCUM, (op.tile,), op.axis.data, _whole(op.tile))
                case OutputOp() if op.omap.new_axis is not None:
                    raise UnsupportedError(f"the search does not know new dims of {op.name}")
                case OutputOp():
                    index = self.outputs.get(op.result)
                    if index is None:
                        raise UnsupportedError(f"{op.name}: expected its result to be yielded")
                    self.append(op, OUTPUT, (op.tile,), index, shape_of(op.result.type))
                    self.read_map(op.omap.data, grid)
                case TileOperatorOp():
                    if op.operator.name not in ON_TERMS:
                        raise UnsupportedError(f"the search does not know {op.name}")
                    attribute = compact(op.operator.name, op.attribute_values)
                    whole = _whole(op.result)
                    self.append(op, op.operator.name, tuple(op.inputs), attribute, whole)
                case YieldOp():
                    break
                case _:
                    raise UnsupportedError(f"{op.name} is no operator on tiles")
        constraints = self.graph_def.constraints or ()
        graph = Graph(tuple(self.steps), tuple(self.shapes), loops)
        return SGraph(graph, grid, self.maps, tuple(c.data for c in constraints))

    def append(
        self,
        op: Operation,
        name: str,
        operands: tuple[SSAValue, ...],
        attribute: Attribute | str,
        shape: Shape,
    ) -> None:
        self.position[op.results[0]] = len(self.steps)
        self.steps.append(Step(name, tuple(self.position[v] for v in operands), attribute))
        self.shapes.append(shape)

    def read_map(self, entries: AxisMap, axes: tuple[str, ...]) -> None:
        known = dict(entries.entries)
        for axis in axes:
            self.maps[len(self.steps) - 1, axis] = known.get(axis, REPL)


def _whole(value: SSAValue) -> Shape:
    if not isinstance(value.type, TileType):
        raise UnsupportedError(f"expected a tile, found {value.type}")
    return value.type.whole


def _single_block(func: FuncOp):
    if len(func.body.blocks) != 1:
        raise UnsupportedError(f"expected one block, found {len(func.body.blocks)}")
    return func.body.block
