"""From values to IR: a graph with symbolic or concrete maps as a candidate's `func.func`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import SymbolRefAttr, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from prism.dialects.kernel import CANDIDATE_OF, GraphDefOp
from prism.dialects.layouts import PARTIAL
from prism.dialects.sym import GRID_AXES, ConstraintAttr, MapAttr, axis_parameter
from prism.dialects.sym_expr import SymExpr
from prism.dialects.threadblock import OPS, AccumOp, InputOp, OutputOp, TileType, YieldOp
from prism.search.graphs import ACCUM, Graph
from prism.search.layouts import step_layouts
from prism.search.maps import Maps
from prism.search.sgraph import DimClasses, SGraph

Entries = Mapping[str, int | Sequence[str]]
"""A map: per axis the dim that it cuts, or a Boolean variable per dim."""


def symbolic_candidate(name: str, workload: FuncOp, sgraph: SGraph) -> FuncOp:
    """The candidate of an sGraph that `constrain` made, its maps and their constraints symbolic."""
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
    return _candidate(name, workload, graph, sgraph.grid, entries, tile, constraints)


def concrete_candidate(name: str, workload: FuncOp, graph: Graph, maps: Maps) -> FuncOp:
    """
    The candidate of a graph under one choice of rows; its grid axes are x, y, z in the rows' order.
    """
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

    return _candidate(name, workload, graph, grid, entries, tile, None)


def _candidate(
    name: str,
    workload: FuncOp,
    graph: Graph,
    grid: Sequence[str],
    entries: Callable[[int, Sequence[str]], Entries],
    tile: Callable[[int], TileType],
    constraints: Sequence[ConstraintAttr] | None,
) -> FuncOp:
    """
    Builds the function; `entries` gives the map of a tensor on some axes, `tile` the type of a
    computed step.
    """
    inputs = list(workload.function_type.inputs)
    outputs = list(workload.function_type.outputs)
    func = FuncOp(name, (inputs, outputs))
    func.attributes[CANDIDATE_OF] = SymbolRefAttr(workload.sym_name.data)
    names = [argument.name_hint for argument in workload.body.block.args]
    for argument, hint in zip(func.body.block.args, names, strict=True):
        argument.name_hint = hint
    used = sorted({a for s in graph.inputs if isinstance(a := graph.steps[s].attribute, int)})
    body = Block(arg_types=[inputs[i] for i in used])
    tensors: dict[Attribute | object, SSAValue] = {}
    for index, value in zip(used, body.args, strict=True):
        value.name_hint = names[index]
        tensors[index] = value
    values: list[SSAValue] = []
    results: dict[object, SSAValue] = {}
    for index, step in enumerate(graph.steps):
        operands = [values[o] for o in step.operands]
        op: Operation
        match step.name, step.attribute:
            case "input", int(argument):
                imap, fmap = (MapAttr.of(entries(index, axes)) for axes in (grid, graph.loops))
                op = InputOp(tensors[argument], imap, fmap)
                hint = f"{names[argument] or f'arg{argument}'}_tile"
            case "accum", str(axis):
                op = AccumOp(operands[0], axis, tile(index))
                hint = "accum"
            case "output", int(result):
                op = OutputOp(operands[0], MapAttr.of(entries(index, grid)), outputs[result])
                results[result] = op.result
                hint = "out"
            case operator, attribute if not isinstance(attribute, str):
                dim = attribute if isinstance(attribute, int) else None
                constant = attribute if isinstance(attribute, SymExpr) else None
                op = OPS[operator](operands, tile(index), dim=dim, constant=constant)
                hint = operator
            case operator, attribute:
                raise ValueError(f"step {operator}: unexpected attribute {attribute!r}")
        op.results[0].name_hint = hint
        values.append(op.results[0])
        body.add_op(op)
    body.add_op(YieldOp(*(results[i] for i in range(len(outputs)))))
    graph_def = GraphDefOp(
        [func.body.block.args[i] for i in used],
        outputs,
        list(grid),
        list(graph.loops),
        Region(body),
        constraints=constraints,
    )
    for result in graph_def.results_:
        result.name_hint = "o"
    func.body.block.add_ops([graph_def, ReturnOp(*graph_def.results_)])
    return func
