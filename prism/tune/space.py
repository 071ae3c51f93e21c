"""The parameter space of a graph: tile extents of its axes, warps, and operand order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from prism.dialects.kernel import GraphDefOp
from prism.dialects.operators import Kind
from prism.dialects.sym import as_tensor, axis_parameter, shape_of
from prism.dialects.sym_expr import SymExpr
from prism.dialects.threadblock import InputOp, OutputOp, TileOperatorOp, TileType
from prism.errors import PrismError

GRID_TILES = (8, 16, 32, 64, 128, 256)
"""Extents of a tile along a grid axis; mma wants multiples of 8 or 16."""

LOOP_TILES = (16, 32, 64, 128, 256, 512)
"""Extents of a tile along a loop axis: multiples of mma's depth of 16."""

WARPS = (1, 2, 4, 8)
SWAPS = (0, 1)
"""1 puts the columns of a product on mma's side of 16 and its rows on the side of 8."""

BYTES = {"f16": 2, "bf16": 2, "f32": 4}


class SpaceError(PrismError):
    """A graph has no parameter point as asked: an axis that cuts unlike dims, a bad override."""


@dataclass(frozen=True)
class Axis:
    """One axis: the whole size of the dims that it cuts, and the grid axis that cuts them first."""

    name: str
    size: int
    outer: str | None

    @property
    def parameter(self) -> str:
        """The parameter that is the axis's size."""
        return axis_parameter(self.name)

    @property
    def is_grid(self) -> bool:
        """Whether blocks, not loop steps, are its indices."""
        return self.parameter.startswith("grid.")


@dataclass(frozen=True)
class Operand:
    """An input or output: its shape in numbers, element size, and the dim that each axis cuts."""

    shape: tuple[int, ...]
    element_bytes: int
    cuts: Mapping[str, int]


@dataclass(frozen=True)
class Product:
    """A matrix product: whole sizes m, n, k, and the axes that cut each of them."""

    sizes: tuple[int, int, int]
    axes: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Graph:
    """What tuning needs to know of a candidate at given sizes."""

    name: str
    axes: tuple[Axis, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    products: tuple[Product, ...]


def graph_def(candidate: FuncOp) -> GraphDefOp:
    """The graph of a candidate; raises `SpaceError` if it does not have exactly one."""
    graphs = [op for op in candidate.walk() if isinstance(op, GraphDefOp)]
    if len(graphs) != 1:
        raise SpaceError(f"@{candidate.sym_name.data}: expected one graph, found {len(graphs)}")
    return graphs[0]


def read_graph(candidate: FuncOp, sizes: Mapping[str, int]) -> Graph:
    """Read a candidate with concrete maps; raises `SpaceError` if an axis cuts unlike dims."""
    graph = graph_def(candidate)
    name = candidate.sym_name.data
    inputs: list[Operand] = []
    outputs: list[Operand] = []
    products: list[Product] = []
    for op in graph.body.block.ops:
        match op:
            case InputOp():
                cuts = {**op.imap.cuts, **op.fmap.cuts}
                inputs.append(_operand(op.tensor.type, cuts, sizes))
            case OutputOp():
                outputs.append(_operand(op.result.type, op.omap.cuts, sizes))
            case TileOperatorOp() if op.operator.kind is Kind.MATMUL:
                products.append(_product(op, sizes))
            case _:
                pass
    axes = tuple(
        _axis(name, axis, (*inputs, *outputs), graph.grid_axes)
        for axis in (*graph.grid_axes, *graph.loop_axes)
    )
    return Graph(name, axes, tuple(inputs), tuple(outputs), tuple(products))


def _operand(kind: Attribute, cuts: Mapping[str, int], sizes: Mapping[str, int]) -> Operand:
    tensor = as_tensor(kind)
    shape = tuple(int(size.evaluate(sizes)) for size in shape_of(tensor))
    return Operand(shape, BYTES[str(tensor.element_type)], cuts)


def _product(op: TileOperatorOp, sizes: Mapping[str, int]) -> Product:
    lhs, rhs = (value.type for value in op.inputs)
    if not isinstance(lhs, TileType) or not isinstance(rhs, TileType):
        raise SpaceError(f"{op.name}: expected operands that are tiles")
    dims = (lhs.dims[-2], rhs.dims[-1], lhs.dims[-1])
    whole = (lhs.whole[-2], rhs.whole[-1], lhs.whole[-1])
    m, n, k = (int(size.evaluate(sizes)) for size in whole)
    rows, columns, depth = (_axes_of(dim) for dim in dims)
    return Product((m, n, k), (rows, columns, depth))


def _axes_of(dim: SymExpr) -> tuple[str, ...]:
    parameters = (name for name in dim.symbols() if name.startswith(("grid.", "loop.")))
    return tuple(sorted(name.partition(".")[2] for name in parameters))


def _axis(name: str, axis: str, operands: Sequence[Operand], grid: tuple[str, ...]) -> Axis:
    found: set[tuple[int, str | None]] = set()
    for operand in operands:
        if axis not in operand.cuts:
            continue
        dim = operand.cuts[axis]
        outer = [a for a, d in operand.cuts.items() if d == dim and a in grid and a != axis]
        found.add((operand.shape[dim], outer[0] if outer and axis not in grid else None))
    if len(found) != 1:
        parts = ", ".join(sorted(str(size) for size, _ in found)) or "none"
        raise SpaceError(f"@{name}: expected axis {axis} to cut dims of one extent, found {parts}")
    size, outer = next(iter(found))
    return Axis(axis, size, outer)


@dataclass(frozen=True)
class Point:
    """
    One choice of all parameters: `tiles` and `counts` per axis, warps a block, operand order.

    counts[A] = ceil(extent / tiles[A]), where the extent is the axis's size, or the tile of the
    grid axis that cuts the dim first.
    """

    tiles: Mapping[str, int]
    counts: Mapping[str, int]
    warps: int
    swap: int

    def parameters(self) -> dict[str, int]:
        """The parameters by name: `grid.x`, `tile.x`, `loop.i`, `tile.i`, `warps`, `swap`."""
        values: dict[str, int] = {}
        for axis, tile in self.tiles.items():
            values[axis_parameter(axis)] = self.counts[axis]
            values[f"tile.{axis}"] = tile
        return {**values, "warps": self.warps, "swap": self.swap}


def parameter_names(graph: Graph) -> set[str]:
    """The names of all parameters of a graph."""
    counts = {axis.parameter for axis in graph.axes}
    return {"warps", "swap"} | counts | {f"tile.{axis.name}" for axis in graph.axes}


def points(graph: Graph, overrides: Mapping[str, int]) -> Iterator[Point]:
    """
    All points of a graph that agree with `overrides` (parameter → value).

    None if no tiling agrees. Raises `SpaceError` if an override names no parameter of the graph or
    has an impossible value.
    """
    known = parameter_names(graph)
    for name in overrides:
        if name not in known:
            options = ", ".join(sorted(known))
            raise SpaceError(f"@{graph.name} has no parameter '{name}' (known: {options})")
    warps, swaps = _chosen(overrides, "warps", WARPS), _chosen(overrides, "swap", SWAPS)
    if not graph.products and "swap" not in overrides:
        swaps = (0,)
    for tiles, counts in _tilings(graph.axes, {}, {}, overrides):
        for count, swap in itertools.product(warps, swaps):
            yield Point(tiles, counts, count, swap)


def _chosen(overrides: Mapping[str, int], name: str, values: tuple[int, ...]) -> tuple[int, ...]:
    if name not in overrides:
        return values
    if overrides[name] not in values:
        options = ", ".join(map(str, values))
        raise SpaceError(f"parameter {name}={overrides[name]}: expected one of {options}")
    return (overrides[name],)


def _tilings(
    axes: Sequence[Axis],
    tiles: Mapping[str, int],
    counts: Mapping[str, int],
    overrides: Mapping[str, int],
) -> Iterator[tuple[Mapping[str, int], Mapping[str, int]]]:
    """Grid axes come before the loop axes that divide their tiles."""
    if not axes:
        yield tiles, counts
        return
    axis, *rest = axes
    extent = axis.size if axis.outer is None else tiles[axis.outer]
    for tile in _tiles_of(axis, extent, overrides):
        count = math.ceil(extent / tile)
        yield from _tilings(
            rest, {**tiles, axis.name: tile}, {**counts, axis.name: count}, overrides
        )


def _tiles_of(axis: Axis, extent: int, overrides: Mapping[str, int]) -> tuple[int, ...]:
    """The extents of tiles to try; none if no tile of this extent agrees with the overrides."""
    tile, count = overrides.get(f"tile.{axis.name}"), overrides.get(axis.parameter)
    if tile is None and count is None:
        options = GRID_TILES if axis.is_grid else LOOP_TILES
        return (*(option for option in options if option < extent), extent)
    if tile is None:
        tile = math.ceil(extent / count) if count is not None and count > 0 else 0
    agrees = 1 <= tile <= extent and count in (None, math.ceil(extent / tile))
    return (tile,) if agrees else ()
