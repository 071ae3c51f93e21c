"""
What a kernel costs in seconds by bytes, operations and blocks: the price by which programs are cut
into kernels.

It ranks ways to cover a program before any tuning; the numbers of `prism-tune` are not these. Sizes
that are not known yet are assumed, see `assumed_sizes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, prod

from prism.dialects.layouts import PARTIAL, REPL
from prism.dialects.operators import OPERATORS, Kind
from prism.dialects.shapes import Shape
from prism.dialects.sym import GRID_AXES
from prism.dialects.sym_expr import SymExpr
from prism.search.graphs import ACCUM, OUTPUT, Graph
from prism.search.layouts import Row, step_layouts
from prism.search.maps import Maps, typed_assignments
from prism.search.terms import INPUT

MANY = 4096
"""The size assumed of a parameter of the workload."""

FEW = 8
"""The size assumed of rows where there are few, as in decoding."""

TILE_ROWS, TILE_COLUMNS, LOOP_TILE = 16, 64, 64
"""What a block takes of the last two dims of a tensor, and one iteration of a loop; 1 of others."""

ELEMENT_BYTES, SUM_BYTES = 2, 4
"""Bytes of an element of a tensor and of a computed tile."""

UNHIDDEN = 0.05
"""The part of the operations that are no products which nothing hides: fewer is better."""

OTHER_FLOPS = 4
"""Operations per element of what is no product."""


@dataclass(frozen=True, slots=True)
class Device:
    """Rates per second of a device with `units` multiprocessors, about those of an A100."""

    memory_bytes: float = 1.5e12
    cache_bytes: float = 5e12
    product_flops: float = 2e14
    other_flops: float = 1e13
    units: int = 108
    tile_bytes: int = 160 * 1024
    launch: float = 3e-6


DEVICE = Device()

Sizes = Mapping[str, int]


def assumed_sizes(shapes: Sequence[Shape], rows: Shape, given: Sizes) -> list[dict[str, int]]:
    """
    The sizes to price with: `given`, others `MANY`; and once more with few rows.

    `shapes` are those of all terms; the parameters of the last dim but one of `rows`, the shape of
    an output, are the rows.
    """
    names = sorted({name for shape in shapes for size in shape for name in size.symbols()})
    many = {name: given.get(name, MANY) for name in names}
    row_names = rows[-2].symbols() if len(rows) > 1 else frozenset[str]()
    columns = {n for shape in shapes if shape for n in shape[-1].symbols()}
    few = {n: FEW for n in sorted(row_names - columns) if n not in given}
    return [many, many | few] if few else [many]


@dataclass(frozen=True, slots=True)
class Placement:
    """Maps of a graph, and the layouts of its steps on each grid axis and each loop."""

    maps: Maps
    grid: tuple[tuple[int, ...], ...]
    loops: tuple[tuple[int, ...], ...]


class Family:
    """A graph and all its placements, which do not depend on sizes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        rows: dict[tuple[str, Row], tuple[int, ...]] = {}

        def layouts(axis: str, row: Row) -> tuple[int, ...]:
            if (axis, row) not in rows:
                rows[axis, row] = tuple(step_layouts(graph, axis, row))
            return rows[axis, row]

        self.placements = tuple(
            Placement(
                (grid, loops),
                tuple(layouts(GRID_AXES[0], row) for row in grid),
                tuple(layouts(axis, row) for axis, row in zip(graph.loops, loops, strict=True)),
            )
            for grid, loops in typed_assignments(graph)
        )


class CostModel:
    """Prices graphs at given sizes."""

    def __init__(self, sizes: Sizes, device: Device = DEVICE) -> None:
        self.sizes = sizes
        self.device = device
        self._values: dict[SymExpr, int] = {}

    def cheapest(self, families: Sequence[Family]) -> tuple[Graph | None, float]:
        """The cheapest of some graphs and its price, the first of equals; None if none fits."""
        found: tuple[Graph | None, float] = (None, inf)
        for family in families:
            seconds = min(self.prices(family), default=inf)
            if seconds < found[1]:
                found = family.graph, seconds
        return found

    def copy_seconds(self, shapes: Sequence[Shape]) -> float:
        """The price of reading and writing tensors once."""
        elements = sum(prod(map(self._value, shape)) for shape in shapes)
        return self.device.launch + elements * ELEMENT_BYTES / self.device.memory_bytes

    def prices(self, family: Family) -> list[float]:
        """The price of each placement; inf where its tiles do not fit a multiprocessor."""
        graph = family.graph
        extents = [tuple(map(self._value, shape)) for shape in graph.shapes]
        prices: list[float] = []
        for placement in family.placements:
            seconds = self._seconds(graph, extents, placement, TILE_ROWS)
            if seconds == inf:
                seconds = self._seconds(graph, extents, placement, 1)
            prices.append(seconds)
        return prices

    def _value(self, size: SymExpr) -> int:
        if size not in self._values:
            self._values[size] = ceil(size.evaluate(self.sizes))
        return self._values[size]

    def _seconds(
        self, graph: Graph, extents: Sequence[tuple[int, ...]], placement: Placement, rows: int
    ) -> float:
        tiles_of_grid = {0: TILE_COLUMNS, 1: rows}
        blocks = [_parts(graph, extents, layouts, tiles_of_grid, 1) for layouts in placement.grid]
        trips = [_parts(graph, extents, layouts, {}, LOOP_TILE) for layouts in placement.loops]
        grid = list(zip(placement.grid, blocks, strict=True))
        axes = [*grid, *zip(placement.loops, trips, strict=True)]
        memory = cache = products = others = tiles = largest = 0.0
        for index, step in enumerate(graph.steps):
            elements = prod(extents[index])
            tile: float = elements
            # Every block that does not cut a value computes all of it, every outer loop again.
            repeats = _reruns(placement.loops, trips, index)
            for layouts, count in axes:
                if layouts[index] >= 0:
                    tile /= min(count, extents[index][layouts[index]])
            for layouts, count in grid:
                if layouts[index] == REPL:
                    repeats *= count
            if step.name == INPUT:
                memory += elements * ELEMENT_BYTES
                cache += elements * ELEMENT_BYTES * repeats
                tiles += tile * ELEMENT_BYTES
            elif step.name == OUTPUT:
                memory += elements * ELEMENT_BYTES
                cache += elements * ELEMENT_BYTES
            elif step.name == ACCUM:
                tiles += tile * SUM_BYTES
                others += elements * repeats
            elif OPERATORS[step.name].kind is Kind.MATMUL:
                products += 2.0 * elements * extents[step.operands[0]][-1] * repeats
                largest = max(largest, tile * SUM_BYTES)
            else:
                walked = max(elements, *(prod(extents[o]) for o in step.operands))
                others += OTHER_FLOPS * walked * repeats
                largest = max(largest, tile * SUM_BYTES)
        device = self.device
        if tiles + largest > device.tile_bytes:
            return inf
        other_seconds = others / device.other_flops
        work = UNHIDDEN * other_seconds + max(
            memory / device.memory_bytes,
            cache / device.cache_bytes,
            products / device.product_flops + other_seconds,
        )
        return device.launch + work / min(1.0, prod(blocks) / device.units)


def _parts(
    graph: Graph,
    extents: Sequence[tuple[int, ...]],
    layouts: Sequence[int],
    tiles: Mapping[int, int],
    other: int,
) -> int:
    """
    How many blocks a grid axis has, or iterations a loop: as many as its largest cut gives.

    `tiles` says what one takes of a dim counted from the last, `other` of any other.
    """
    parts = 1
    for tensor in graph.tensors:
        dim = layouts[tensor]
        if dim >= 0:
            from_last = len(extents[tensor]) - 1 - dim
            parts = max(parts, ceil(extents[tensor][dim] / tiles.get(from_last, other)))
    return parts


def _reruns(loops: Sequence[Sequence[int]], trips: Sequence[int], index: int) -> int:
    """How often outer loops run a step of an inner loop that does not vary with them."""
    inside = [layouts[index] >= 0 or layouts[index] == PARTIAL for layouts in loops]
    return prod(trips[i] for i in range(len(loops)) if not inside[i] and any(inside[i + 1 :]))
