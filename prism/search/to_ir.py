"""From values to IR: a graph with symbolic or concrete maps as a candidate's `func.func`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import SymbolRefAttr, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from prism.dialects.kernel import CANDIDATE_OF, GraphDefOp
from prism.dialects.kernel import OPS as KERNEL_OPS
from prism.dialects.layouts import PARTIAL
from prism.dialects.sym import GRID_AXES, ConstraintAttr, MapAttr, axis_parameter
from prism.dialects.sym_expr import SymExpr
from prism.dialects.threadblock import OPS, AccumOp, InputOp, OutputOp, TileType, YieldOp
from prism.search.graphs import ACCUM, Graph
from prism.search.layouts import step_layouts
from prism.search.maps import Maps
from prism.search.program import ARGUMENT, Choice, Kernel, Plain, Program, Ref, with_inputs
from prism.search.sgraph import DimClasses, SGraph
from prism.search.terms import whole

Entries = Mapping[str, int | Sequence[str]]
"""A map: per axis the dim that it cuts, or a Boolean variable per dim."""


def symbolic_candidate(name: str, workload: FuncOp, sgraph: SGraph) -> FuncOp:
    """The candidate of an sGraph that `constrain` made, its maps and their constraints symbolic."""
    return program_candidate(name, workload, single(workload, sgraph))


def concrete_candidate(name: str, workload: FuncOp, graph: Graph, maps: Maps) -> FuncOp:
    """
    The candidate of a graph under one choice of rows; its grid axes are x, y, z in the rows' order.
    """
    sgraph = SGraph(graph, GRID_AXES[: len(maps[0])], {}, ())
    return program_candidate(name, workload, single(workload, sgraph), (maps,))


def single(workload: FuncOp, sgraph: SGraph) -> Program:
    """
    The program of one kernel whose inputs and outputs are numbered by arguments and results of the
    workload.
    """
    graph = sgraph.graph
    used = sorted({a for s in graph.inputs if isinstance(a := graph.steps[s].attribute, int)})
    numbers = {argument: i for i, argument in enumerate(used)}
    types = tuple(workload.function_type.outputs)
    renamed = replace(sgraph, graph=with_inputs(graph, numbers))
    kernel = Kernel(renamed, tuple(Ref(ARGUMENT, i) for i in used), types)
    return Program((kernel,), tuple(Ref(0, i) for i in range(len(types))))


def program_candidate(
    name: str, workload: FuncOp, program: Program, choice: Choice | None = None
) -> FuncOp:
    """
    The candidate of a program: its maps symbolic, or concrete under one choice of maps per kernel.
    """
    func = FuncOp(name, (list(workload.function_type.inputs), list(workload.function_type.outputs)))
    func.attributes[CANDIDATE_OF] = SymbolRefAttr(workload.sym_name.data)
    arguments = zip(func.body.block.args, workload.body.block.args, strict=True)
    values: dict[Ref, SSAValue] = {}
    for index, (argument, original) in enumerate(arguments):
        argument.name_hint = original.name_hint
        values[Ref(ARGUMENT, index)] = argument
    for index, kernel in enumerate(program.kernels):
        operands = [values[ref] for ref in kernel.operands]
        if isinstance(kernel, Plain):
            (kind,) = kernel.result_types
            op = KERNEL_OPS[kernel.name](operands, kind, attributes=whole(kernel.attribute))
        elif choice is None:
            op = _symbolic(kernel, operands)
        else:
            op = _concrete(kernel, choice[index], operands)
        func.body.block.add_op(op)
        for number, result in enumerate(op.results):
            last = index == len(program.kernels) - 1
            result.name_hint = "o" if last else f"t{index}"
            values[Ref(index, number)] = result
    func.body.block.add_op(ReturnOp(*(values[ref] for ref in program.outputs)))
    return func


def _symbolic(kernel: Kernel, operands: Sequence[SSAValue]) -> GraphDefOp:
    sgraph = kernel.sgraph
    graph = sgraph.graph
    axes = (*sgraph.grid, *graph.loops)
    classes = DimClasses(graph)
    never = {v for c in sgraph.constraints if c.kind == "never" for v in c.variables}
    accumulated = {s.operands[0]: s.attribute for s in graph.steps if s.name == ACCUM}

    def entries(tensor: int, of_axes: Sequence[str]) -> Entries:
        found = {axis: sgraph.maps[tensor, axis] for axis in of_axes}
        return {axis: entry for axis, entry in found.items() if not isinstance(entry, int)}

    variables = {key: v for key, v in sgraph.maps.items() if not isinstance(v, int)}

    def tile(step: int) -> TileType:
        dims = list(graph.shapes[step])
        for dim in graph.cuttable[step]:
            for axis in axes:
                variable = classes.variable(variables, axis, classes.of(step, dim))
                if variable is not None and variable not in never:
                    dims[dim] /= SymExpr.symbol(f"{axis_parameter(axis)}^{variable}")
        owed = accumulated.get(step)
        return TileType(dims, f32, [owed] if isinstance(owed, str) else [])

    constraints = [ConstraintAttr(c) for c in sgraph.constraints]
    return _graph_def(kernel, sgraph.grid, operands, entries, tile, constraints)


def _concrete(kernel: Kernel, maps: Maps, operands: Sequence[SSAValue]) -> GraphDefOp:
    graph = kernel.sgraph.graph
    grid_rows, loop_rows = maps
    grid = GRID_AXES[: len(grid_rows)]
    rows = dict(zip((*grid, *graph.loops), (*grid_rows, *loop_rows), strict=True))
    layouts = {axis: step_layouts(graph, axis, row) for axis, row in rows.items()}

    def entries(tensor: int, of_axes: Sequence[str]) -> Entries:
        return {a: layouts[a][tensor] for a in of_axes if layouts[a][tensor] >= 0}

    def tile(step: int) -> TileType:
        dims = list(graph.shapes[step])
        for axis, of_step in layouts.items():
            if of_step[step] >= 0:
                dims[of_step[step]] /= SymExpr.symbol(axis_parameter(axis))
        return TileType(dims, f32, [a for a in layouts if layouts[a][step] == PARTIAL])

    return _graph_def(kernel, grid, operands, entries, tile, None)


def _graph_def(
    kernel: Kernel,
    grid: Sequence[str],
    operands: Sequence[SSAValue],
    entries: Callable[[int, Sequence[str]], Entries],
    tile: Callable[[int], TileType],
    constraints: Sequence[ConstraintAttr] | None,
) -> GraphDefOp:
    """
    Builds the operator; `entries` gives the map of a tensor on some axes, `tile` the type of a
    computed step.
    """
    graph = kernel.sgraph.graph
    body = Block(arg_types=[operand.type for operand in operands])
    names = [operand.name_hint or f"arg{i}" for i, operand in enumerate(operands)]
    for value, hint in zip(body.args, names, strict=True):
        value.name_hint = hint
    values: list[SSAValue] = []
    results: dict[int, SSAValue] = {}
    for index, step in enumerate(graph.steps):
        inputs = [values[o] for o in step.operands]
        op: Operation
        match step.name, step.attribute:
            case "input", int(argument):
                imap, fmap = (MapAttr.of(entries(index, axes)) for axes in (grid, graph.loops))
                op = InputOp(body.args[argument], imap, fmap)
                hint = f"{names[argument]}_tile"
            case "accum", str(axis):
                op = AccumOp(inputs[0], axis, tile(index))
                hint = "accum"
            case "output", int(result):
                omap = MapAttr.of(entries(index, grid))
                op = OutputOp(inputs[0], omap, kernel.result_types[result])
                results[result] = op.result
                hint = "out"
            case operator, attribute if not isinstance(attribute, str):
                op = OPS[operator](inputs, tile(index), attributes=whole(attribute))
                hint = operator
            case operator, attribute:
                raise ValueError(f"step {operator}: unexpected attribute {attribute!r}")
        op.results[0].name_hint = hint
        values.append(op.results[0])
        body.add_op(op)
    body.add_op(YieldOp(*(results[i] for i in range(len(kernel.result_types)))))
    return GraphDefOp(
        operands,
        kernel.result_types,
        list(grid),
        list(graph.loops),
        Region(body),
        constraints=constraints,
    )
