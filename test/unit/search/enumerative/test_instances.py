"""Constraint enumeration: counts of the paper's figure 1, and one assignment per symmetry class."""

from __future__ import annotations

from itertools import permutations

import pytest

from prism.dialects.layouts import REPL
from prism.dialects.sym import Constraint
from prism.dialects.sym_expr import SymExpr
from prism.search.enumerative.instances import instances
from prism.search.graphs import ACCUM, OUTPUT, Graph, Step
from prism.search.sgraph import SGraph
from prism.search.terms import INPUT

SHAPE = (SymExpr.symbol("r"), SymExpr.symbol("c"))


def figure(loops: tuple[str, ...], matched: bool) -> SGraph:
    """X[r,c], W[r,c], O[r,c] with grid axes x and y, as `paper-facts.md` counts them."""
    steps = [Step(INPUT, (), 0), Step(INPUT, (), 1), Step("add", (0, 1))]
    steps += [Step(ACCUM, (2,), axis) for axis in loops] + [Step(OUTPUT, (len(steps) - 1,), 0)]
    graph = Graph(tuple(steps), (SHAPE,) * len(steps), loops)
    output = len(steps) - 1
    maps = {}
    for tensor in (0, 1, output):
        for axis in ("x", "y", *(loops if tensor != output else ())):
            maps[tensor, axis] = tuple(f"{tensor}{axis}{d}" for d in range(2))
    constraints = [Constraint("at_most_one", names) for names in maps.values()]
    for tensor in (0, 1, output):
        for d in range(2):
            names = tuple(maps[tensor, axis][d] for axis in ("x", "y"))
            constraints.append(Constraint("at_most_one", names))
    if matched:
        for axis in ("x", "y", *loops):
            constraints.append(Constraint("equal", (maps[0, axis][1], maps[1, axis][0])))
    return SGraph(graph, ("x", "y"), maps, tuple(constraints))


@pytest.mark.parametrize(
    ("matched", "without_loop", "with_loop"),
    [
        # 343 grid assignments of 49 x 7, 119 with matching: (343 + 1) / 2 and (119 + 1) / 2 classes.
        (False, 172, 172 * 8),
        (True, 60, 60 * 4),
    ],
)
def test_the_counts_of_the_papers_figure(matched, without_loop, with_loop):
    assert len(list(instances(figure((), matched)))) == without_loop
    assert len(list(instances(figure(("i",), matched)))) == with_loop
    # With the loop that cuts nothing: 300 per grid permutation, as the paper's figure has.
    assert not matched or without_loop + with_loop == 300


def test_no_two_assignments_differ_only_in_the_order_of_the_grid_axes():
    found = list(instances(figure((), True)))
    assert len({frozenset(grid) for grid, _ in found}) == len(found)
    assert all(REPL in grid[0] or set(grid[0]) for grid, _ in found if grid)
    everything = {tuple(order) for grid, _ in found for order in permutations(grid)}
    full = sum(1 for grid, _ in found if len(grid) == 2)
    assert len(everything) == len(found) + full


def test_concrete_maps_are_kept():
    base = figure((), True)
    maps = {**base.maps, (0, "x"): 0, (0, "y"): REPL}
    constraints = tuple(
        c for c in base.constraints if not any(v.startswith("0") for v in c.variables)
    )
    found = list(instances(SGraph(base.graph, base.grid, maps, constraints)))
    assert found
    assert all(grid[0][0] == 0 and all(row[0] == REPL for row in grid[1:]) for grid, _ in found)
