"""
Rows: every way in which one axis can cut a graph, by the layout table of `prism.dialects.layouts`.

A row gives, for each tensor with a map (inputs, then outputs), the dim that the axis cuts, or
`REPL`. Axes are independent, so the maps of a graph are choices of rows (see `maps`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prism.dialects.layouts import PARTIAL, REPL, Ones, result_layout
from prism.dialects.operators import OPERATORS
from prism.dialects.shapes import Shape
from prism.dialects.sym import GRID_AXES
from prism.dialects.sym_expr import SymExpr
from prism.search.graphs import Graph
from prism.search.terms import INPUT, ONE, Attribute, TermTable, whole

AFTER = -3
"""On a loop axis: the whole, known only when the loop has ended."""

Row = tuple[int, ...]
"""Per tensor of `Graph.tensors`: the dim that the axis cuts, or `REPL`."""


def grid_rows(graph: Graph) -> list[Row]:
    """
    The rows of a grid axis: no output may owe a sum over blocks; the all-`repl` row is no axis.

    Rows that cut late dims of outputs come first: x is then the axis whose blocks are neighbours in
    memory.
    """
    return _rows(graph, GRID_AXES[0])


def loop_rows(graph: Graph, axis: str) -> list[Row]:
    """
    The rows of a loop axis, sorted: each accum over it sums partials, outputs are known after the
    loop.
    """
    return _rows(graph, axis)


def step_layouts(graph: Graph, axis: str, row: Row) -> list[int]:
    """
    The layout of every step under a row of an axis; what is known only after a loop counts as
    `REPL`.

    Raises ValueError if the row is ill-typed for the graph.
    """
    layouts = _typed_steps(graph, axis, row)
    return [REPL if layout == AFTER else layout for layout in layouts]


def nests(graph: Graph, rows: Sequence[Row]) -> bool:
    """
    Whether loops under these rows, the outermost first, are one nest.

    What is known only after a loop is not in the body of a loop inside it, which has ended by then.
    """
    layouts = [_typed_steps(graph, a, row) for a, row in zip(graph.loops, rows, strict=True)]
    return not any(
        outer == AFTER and inner not in (REPL, AFTER)
        for i, outer_layouts in enumerate(layouts)
        for inner_layouts in layouts[i + 1 :]
        for outer, inner in zip(outer_layouts, inner_layouts, strict=True)
    )


def _typed_steps(graph: Graph, axis: str, row: Row) -> list[int]:
    """The layout of every step; raises ValueError if the row is ill-typed for the graph."""
    given = dict(zip(graph.tensors, row, strict=True))
    layouts: dict[int, int] = {}
    for index, step in enumerate(graph.steps):
        layout = given[index] if step.name == INPUT else _result(graph, index, layouts, axis)
        if layout is None:
            raise ValueError(f"row {row} of axis {axis} is ill-typed at step {index}, {step.name}")
        layouts[index] = layout
    return [layouts[s] for s in range(len(graph.steps))]


def loop_cuts(table: TermTable, outputs: Sequence[int]) -> list[frozenset[int]]:
    """
    The sets of terms that a loop can accumulate, in a fixed order: one set per distinct loop.

    A partial sum is accumulated where it appears: linear operators could pass it on, but would then
    run in every iteration instead of once.
    """
    order = table.topological(outputs)
    ones = {t: [size == ONE for size in table.shapes[t]] for t in order}
    found: dict[frozenset[int], None] = {}

    def extend(index: int, layouts: dict[int, int], accumulated: frozenset[int]) -> None:
        if index == len(order):
            if accumulated and all(layouts[o] in (AFTER, REPL) for o in outputs):
                found[accumulated] = None
            return
        term = order[index]
        name, attribute, operands = table.nodes[term]
        if name == INPUT:
            for layout in (REPL, *(d for d, one in enumerate(ones[term]) if not one)):
                extend(index + 1, layouts | {term: layout}, accumulated)
            return
        of_operands = [layouts[o] for o in operands]
        shapes = [table.shapes[o] for o in operands]
        layout = _meet(name, of_operands, [ones[o] for o in operands], attribute, shapes)
        if layout == PARTIAL:
            extend(index + 1, layouts | {term: AFTER}, accumulated | {term})
        elif layout is not None:
            extend(index + 1, layouts | {term: layout}, accumulated)

    extend(0, {}, frozenset())
    position = {term: i for i, term in enumerate(order)}
    return sorted(found, key=lambda cut: sorted(position[term] for term in cut))


def nested_cuts(
    table: TermTable, outputs: Sequence[int], cuts: Sequence[frozenset[int]]
) -> list[tuple[frozenset[int], frozenset[int]]]:
    """
    The pairs of cuts, outer and inner, of two loops of which one is inside the other.

    Every sum of the outer loop needs one of the inner loop and none the other way round: sums that
    do not need each other are no nest. A dim of constant size gets no inner loop: it fits a tile.
    """
    order = table.topological(outputs)
    needs: dict[int, frozenset[int]] = {}
    for term in order:
        needs[term] = frozenset({term}).union(*(needs[o] for o in table.nodes[term][2]))
    return [
        (outer, inner)
        for outer in cuts
        for inner in cuts
        if all(needs[term] & inner and term not in inner for term in outer)
        and not any(needs[term] & outer for term in inner)
        and all(_summed_size(table, term).as_constant() is None for term in inner)
    ]


def operator_layout(
    name: str,
    layouts: Sequence[int],
    ones: Ones,
    attribute: Attribute,
    shapes: Sequence[Shape],
) -> int | None:
    """The layout of an operator's result by the table, as far as the search uses it."""
    layout = result_layout(OPERATORS[name], layouts, ones, whole(attribute), shapes)
    return None if layout is not None and layout < PARTIAL else layout


def _summed_size(table: TermTable, term: int) -> SymExpr:
    """The size of the dim that a sum or product sums away."""
    _, attribute, operands = table.nodes[term]
    shape = table.shapes[operands[0]]
    return shape[attribute if isinstance(attribute, int) else -1]


def _meet(
    name: str,
    layouts: Sequence[int],
    ones: Ones,
    attribute: Attribute,
    shapes: Sequence[Shape],
) -> int | None:
    """The layout of an operator's result where values may also be `AFTER` the loop."""
    if AFTER not in layouts:
        return operator_layout(name, layouts, ones, attribute, shapes)
    return AFTER if all(layout in (AFTER, REPL) for layout in layouts) else None


def _result(graph: Graph, index: int, layouts: Mapping[int, int], axis: str) -> int | None:
    """The layout of a step that is no input, or None where it is ill-typed."""
    step = graph.steps[index]
    operands = [layouts[o] for o in step.operands]
    match step.name:
        case "accum" if step.attribute == axis:
            return AFTER if operands == [PARTIAL] else None
        case "accum":
            return operands[0]
        case "output":
            refused = operands[0] == PARTIAL or (axis in graph.loops and operands[0] >= 0)
            return None if refused else operands[0]
        case name:
            if isinstance(step.attribute, str):
                raise ValueError(f"step {name}: unexpected attribute {step.attribute!r}")
            ones = [graph.ones[o] for o in step.operands]
            shapes = [graph.shapes[o] for o in step.operands]
            return _meet(name, operands, ones, step.attribute, shapes)


def _rows(graph: Graph, axis: str) -> list[Row]:
    order = _inputs_late(graph)

    def extend(done: int, layouts: dict[int, int]) -> Iterator[Row]:
        if done == len(order):
            row = tuple(layouts[s] for s in graph.tensors)
            if any(layout != REPL for layout in row):
                yield tuple(max(layout, REPL) for layout in row)
            return
        index = order[done]
        if graph.steps[index].name == INPUT:
            for layout in (REPL, *graph.cuttable[index]):
                yield from extend(done + 1, layouts | {index: layout})
            return
        layout = _result(graph, index, layouts, axis)
        if layout is not None:
            yield from extend(done + 1, layouts | {index: layout})

    inputs = len(graph.inputs)
    return sorted(extend(0, {}), key=lambda row: ([-layout for layout in row[inputs:]], row))


def _inputs_late(graph: Graph) -> list[int]:
    """
    The steps in topological order, each input right before its first use: ill-typed choices end
    early.
    """
    order: dict[int, None] = {}

    def visit(index: int) -> None:
        if index not in order:
            for operand in graph.steps[index].operands:
                visit(operand)
            order[index] = None

    for index, step in enumerate(graph.steps):
        if step.name != INPUT:
            visit(index)
    return [*order, *(s for s in graph.inputs if s not in order)]
