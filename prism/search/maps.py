"""
Maps: every choice of rows for the axes of a graph, one for each symmetry class of the grid axes.

A grid has at most three axes, and a data dim is cut by at most one of them. Choosing rows in sorted
order is the symmetry breaking: no choice is another one with its grid axes renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product

from prism.dialects.layouts import REPL
from prism.dialects.sym import GRID_AXES
from prism.search.graphs import Graph
from prism.search.layouts import Row, grid_rows, loop_rows, nests
from prism.search.sgraph import SGraph

Maps = tuple[tuple[Row, ...], tuple[Row, ...]]
"""The rows of the grid axes x, y, z in order, and one row per loop axis."""


def typed_assignments(graph: Graph, grid_axes: int = len(GRID_AXES)) -> Iterator[Maps]:
    """
    Every well-typed map assignment of a graph with at most `grid_axes` grid axes, fewest first.

    Every loop axis cuts something, and no two loops the same dim.
    """
    rows_of_loops = [loop_rows(graph, axis) for axis in graph.loops]
    loops = [
        loop
        for loop in product(*rows_of_loops)
        if not _cuts_a_dim_twice(loop) and nests(graph, loop)
    ]
    rows = grid_rows(graph)
    for count in range(min(grid_axes, len(GRID_AXES)) + 1):
        for grid in combinations(rows, count):
            if not _cuts_a_dim_twice(grid):
                for loop in loops:
                    yield grid, loop


def assignments(sgraph: SGraph) -> Iterator[Maps]:
    """Every well-typed map assignment of a graph that its own maps and constraints admit."""
    for grid, loop in typed_assignments(sgraph.graph, len(sgraph.grid)):
        if _admitted(sgraph, grid, loop):
            yield grid, loop


def _cuts_a_dim_twice(rows: Sequence[Row]) -> bool:
    for layouts in zip(*rows, strict=True):
        cuts = [layout for layout in layouts if layout != REPL]
        if len(set(cuts)) != len(cuts):
            return True
    return False


def _admitted(sgraph: SGraph, grid: Sequence[Row], loop: Sequence[Row]) -> bool:
    """Whether the sGraph's own maps admit these rows, whichever of its grid axes each row is on."""
    loops = dict(zip(sgraph.graph.loops, loop, strict=True))
    return any(
        sgraph.admits(dict(zip(axes, grid, strict=True)) | loops)
        for axes in permutations(sgraph.grid, len(grid))
    )
