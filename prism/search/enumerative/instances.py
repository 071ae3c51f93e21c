"""
Constraint enumeration: the concrete maps of an sGraph, one for each symmetry class.

Of all assignments that differ only in the order of the grid axes one stays: that with the axes'
rows in descending lexicographic order. An axis that cuts nothing has the smallest and comes last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prism.dialects.layouts import REPL
from prism.dialects.sym import Constraint
from prism.search.graphs import Graph
from prism.search.layouts import Row, step_layouts
from prism.search.maps import Maps
from prism.search.sgraph import SGraph, solutions


def instances(sgraph: SGraph) -> Iterator[Maps]:
    """
    Every assignment of the map variables that satisfies the constraints, as rows of active axes.

    A loop axis that cuts nothing is no loop: such assignments are those of another graph.
    """
    axes = (*sgraph.grid, *sgraph.graph.loops)
    representative = _representatives(sgraph)
    variables = {axis: _variables_of(sgraph, axis, representative) for axis in axes}
    due = _due(axes, variables, _on_representatives(sgraph.constraints, representative))
    rows: list[Row] = []
    values: dict[str, bool] = {}

    def extend(index: int) -> Iterator[Maps]:
        if index == len(axes):
            count = len(sgraph.grid)
            yield tuple(row for row in rows[:count] if set(row) != {REPL}), tuple(rows[count:])
            return
        axis = axes[index]
        alone, across = due[axis]
        for chosen in solutions(variables[axis], alone):
            values.update(chosen)
            row = tuple(
                _cut(sgraph.maps.get((tensor, axis), REPL), values, representative)
                for tensor in sgraph.graph.tensors
            )
            if axis not in sgraph.grid:
                wanted = set(row) != {REPL}
            else:
                wanted = index == 0 or rows[-1] >= row
            if wanted and all(constraint.holds(values) for constraint in across):
                rows.append(row)
                yield from extend(index + 1)
                rows.pop()

    yield from extend(0)


class Typing:
    """Which rows the layout table accepts for a graph, each looked at once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[str, Row], bool] = {}

    def accepts(self, maps: Maps) -> bool:
        """Whether every axis types: graphs of families are well-typed axis by axis."""
        grid, loops = maps
        named = [*(("x", row) for row in grid), *zip(self._graph.loops, loops, strict=True)]
        return all(self._accepts_row(axis, row) for axis, row in named)

    def _accepts_row(self, axis: str, row: Row) -> bool:
        if (axis, row) not in self._known:
            try:
                step_layouts(self._graph, axis, row)
                self._known[axis, row] = True
            except ValueError:
                self._known[axis, row] = False
        return self._known[axis, row]


def _cut(
    entry: int | Sequence[str], values: Mapping[str, bool], representative: Mapping[str, str]
) -> int:
    if isinstance(entry, int):
        return entry
    chosen = [dim for dim, name in enumerate(entry) if values[representative[name]]]
    return chosen[0] if chosen else REPL


def _representatives(sgraph: SGraph) -> dict[str, str]:
    """Per variable, the one that stands for all that equal it."""
    found = {name: name for name in sgraph.variables}
    for constraint in sgraph.constraints:
        if constraint.kind == "equal":
            roots = {found[name] for name in constraint.variables}
            first = min(roots, key=list(found).index)
            found = {name: first if root in roots else root for name, root in found.items()}
    return found


def _on_representatives(
    constraints: Sequence[Constraint], representative: Mapping[str, str]
) -> list[Constraint]:
    """The constraints but equalities; a variable that meets itself under at_most_one is false."""
    result: list[Constraint] = []
    for constraint in constraints:
        names = tuple(representative[name] for name in constraint.variables)
        if constraint.kind == "equal":
            continue
        if constraint.kind == "never":
            # One by one, so that each is decided as soon as it is met.
            result += [Constraint("never", (name,)) for name in dict.fromkeys(names)]
            continue
        if constraint.kind != "at_most_one":
            names = tuple(dict.fromkeys(names))
        result.append(Constraint(constraint.kind, names))
    return result


def _variables_of(sgraph: SGraph, axis: str, representative: Mapping[str, str]) -> tuple[str, ...]:
    """The representatives of an axis's variables, each once."""
    entries = [sgraph.maps.get((tensor, axis), REPL) for tensor in sgraph.graph.tensors]
    names = [name for entry in entries if not isinstance(entry, int) for name in entry]
    return tuple(dict.fromkeys(representative[name] for name in names))


def _due(
    axes: Sequence[str], variables: Mapping[str, Sequence[str]], constraints: Sequence[Constraint]
) -> dict[str, tuple[list[Constraint], list[Constraint]]]:
    """Per axis, the constraints on its variables alone, and those that it is the last axis of."""
    axis_of = {name: index for index, axis in enumerate(axes) for name in variables[axis]}
    result: dict[str, tuple[list[Constraint], list[Constraint]]] = {a: ([], []) for a in axes}
    for constraint in constraints:
        met = {axis_of[name] for name in constraint.variables}
        alone, across = result[axes[max(met)]]
        (alone if len(met) == 1 else across).append(constraint)
    return result
