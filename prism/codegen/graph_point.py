"""A threadblock graph at one parameter point: sizes, windows and layouts in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from prism.codegen.errors import CannotLower
from prism.dialects.kernel import GraphDefOp
from prism.dialects.operators import Kind
from prism.dialects.sym import GRID_AXES, LOOP_AXES, axis_parameter
from prism.dialects.sym_expr import SymExpr
from prism.dialects.thread_ops import Window
from prism.dialects.thread_types import (
    ELEMENT_BYTES,
    MAX_STAGES,
    MMA_DEPTH,
    MMA_LONG,
    MMA_SHORT,
    SWIZZLED_UNITS,
    TENSOR_RANKS,
    UNIT_BYTES,
    DimWindow,
    MmaLayout,
    RowsLayout,
    SharedType,
)
from prism.dialects.threadblock import TileOperatorOp, TileType

MAX_LANES = 32
"""The most threads that share a row, so that shuffles can sum it."""


@dataclass(frozen=True)
class GraphPoint:
    """
    A graph with its workload's sizes and its tuning parameters.

    Parameters: per axis A `grid.A` or `loop.A`, its number of indices, and `tile.A`, the extent
    that it cuts its dims into; `warps` of a block; `swap` 1 puts columns on the 16-side of the
    products; `stages` of the copies in the loop.
    """

    graph: GraphDefOp
    sizes: Mapping[str, int]
    params: Mapping[str, int]

    def parameter(self, name: str) -> int:
        """A positive parameter; CannotLower if it is missing or not positive."""
        value = self.params.get(name)
        if value is None:
            raise CannotLower(f"parameter {name}: expected a number, found none", self.graph)
        if value < 1:
            raise CannotLower(f"parameter {name}: expected at least 1, found {value}", self.graph)
        return value

    def count(self, axis: str) -> int:
        """The number of indices of an axis."""
        return self.parameter(axis_parameter(axis))

    @property
    def warps(self) -> int:
        """Warps of a block, a power of two."""
        warps = self.parameter("warps")
        if warps & (warps - 1):
            raise CannotLower(f"warps: expected a power of two, found {warps}", self.graph)
        return warps

    @property
    def stages(self) -> int:
        """The stages of the loop's copies: 1 copies a step when it is due, n keep n - 1 ahead."""
        stages = self.params.get("stages", 1)
        if not 1 <= stages <= MAX_STAGES:
            raise CannotLower(
                f"parameter stages: expected 1 to {MAX_STAGES}, found {stages}", self.graph
            )
        return stages

    @property
    def swap(self) -> bool:
        """Whether the products put their columns on the 16-side."""
        return bool(self.params.get("swap", 0))

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks per grid dimension."""
        x, y, z = (self.count(axis) if axis in self.graph.grid_axes else 1 for axis in GRID_AXES)
        return x, y, z

    def size(self, expression: SymExpr, op: Operation) -> int:
        """A size of the workload; CannotLower if it is unbound or no positive integer."""
        missing = sorted(expression.symbols() - self.sizes.keys())
        if missing:
            raise CannotLower(f"size {missing[0]} has no value", op)
        value = expression.evaluate(self.sizes)
        if value.denominator != 1 or value < 1:
            raise CannotLower(f"size {expression}: expected a positive integer, found {value}", op)
        return int(value)

    def constant(self, expression: SymExpr, op: Operation) -> float:
        """The value of a scalar operator's constant."""
        missing = sorted(expression.symbols() - self.sizes.keys())
        if missing:
            raise CannotLower(f"size {missing[0]} has no value", op)
        return float(expression.evaluate(self.sizes))

    def window(self, value: SSAValue, op: Operation) -> Window:
        """The part that a tile is of its whole tensor; the grid cuts a dim before a loop."""
        tile = value.type
        assert isinstance(tile, TileType)  # by the threadblock verifiers
        if len(tile.dims) not in TENSOR_RANKS:
            raise CannotLower(f"tile of rank {len(tile.dims)}: expected rank 2 or 3", op)
        *batch, rows, columns = (
            self._dim(whole, dim, op) for whole, dim in zip(tile.whole, tile.dims, strict=True)
        )
        return *(self._one_of(dim, op) for dim in batch), rows, columns

    def _one_of(self, dim: DimWindow, op: Operation) -> DimWindow:
        """One element of a batch at a time: the block's part is cut by a loop around the graph."""
        if dim.extent == 1:
            return dim
        if self.batch_axis is None:
            raise CannotLower(f"batch of {dim.extent}: no loop axis is left for it", op)
        return DimWindow(dim.size, (*dim.cuts, (self.batch_axis, 1)))

    @property
    def batch_axis(self) -> str | None:
        """The name of the loop over the block's part of a batch: one that the graph lacks."""
        free = [axis for axis in LOOP_AXES if axis not in self.graph.loop_axes]
        return free[-1] if free else None

    def batch(self) -> int:
        """
        How many matrices of a batch a block computes, one after the other.

        Raises CannotLower if tiles differ in it, or if one sums over the batch.
        """
        extents: set[int] = set()
        for op in self.graph.body.block.ops:
            for result in op.results:
                if not isinstance(result.type, TileType) or len(result.type.dims) != 3:
                    continue
                whole, dim = result.type.whole[0], result.type.dims[0]
                extents.add(self._dim(whole, dim, op).extent)
            if isinstance(op, TileOperatorOp) and op.operator.kind is Kind.SUM:
                operand = op.inputs[0].type
                if isinstance(operand, TileType) and len(operand.dims) == 3 and op.dim_value == 0:
                    raise CannotLower("a sum over the dim of a batch is not lowered", op)
        extents.discard(1)
        if len(extents) > 1:
            found = " and ".join(map(str, sorted(extents)))
            raise CannotLower(f"batches of one block: expected one size, found {found}", self.graph)
        return max(extents, default=1)

    def _dim(self, whole: SymExpr, dim: SymExpr, op: Operation) -> DimWindow:
        size = extent = self.size(whole, op)
        cuts: list[tuple[str, int]] = []
        for axis in (*self.graph.grid_axes, *self.graph.loop_axes):
            if axis_parameter(axis) not in dim.symbols():
                continue
            tile, count = self.parameter(f"tile.{axis}"), self.count(axis)
            needed = -(-extent // tile)
            if needed != count:
                raise CannotLower(
                    f"axis {axis}: {count} parts of {tile} do not make up {extent} elements "
                    f"of {dim}, which take {needed}",
                    op,
                )
            cuts.append((axis, tile))
            extent = tile
        return DimWindow(size, tuple(cuts))

    def mma_layout(self, rows: int, columns: int, depth: int, *, whole: bool = False) -> MmaLayout:
        """
        How the warps share a product of `rows` x `columns` over `depth`.

        Fewest steps for a warp first, then fewest k warps, whose sums cost shared memory, then
        least padding, then fewest operands loaded. `whole` allows no k warps: the product is used
        in the loop, where adding up sums would cost barriers.
        """
        long, short = (columns, rows) if self.swap else (rows, columns)
        tiles = -(-long // MMA_LONG), -(-short // MMA_SHORT)
        steps = -(-depth // MMA_DEPTH)
        best: tuple[tuple[int, ...], MmaLayout] | None = None
        warps = self.warps
        for deep in range(1, 2 if whole else warps + 1):
            for across in range(1, warps // deep + 1):
                if warps % (deep * across):
                    continue
                along = warps // (deep * across)
                held = -(-tiles[0] // along), -(-tiles[1] // across)
                padding = held[0] * along - tiles[0] + held[1] * across - tiles[1]
                # a tile of the long side is twice one of the short side
                loads = 2 * held[0] + held[1]
                cost = (held[0] * held[1] * -(-steps // deep), deep, padding, loads)
                if best is None or cost < best[0]:
                    best = cost, MmaLayout((along, across, deep), held, self.swap)
        assert best is not None  # one warp along, across and deep is always possible
        return best[1]

    def chained_layouts(self, rows: int, middle: int, columns: int) -> tuple[MmaLayout, MmaLayout]:
        """
        Layouts of a product rows x middle and of one over middle that takes it from registers.

        The warps that share the first one's columns are the k warps of the second; each holds an
        even number of tiles, two of them making one step of 16.
        """
        long = -(-rows // MMA_LONG)
        along = min(self.warps, 1 << (long.bit_length() - 1))
        across = self.warps // along
        held = -(-long // along)
        middle_tiles = 2 * -(-middle // (across * MMA_DEPTH))
        return (
            MmaLayout((along, across, 1), (held, middle_tiles), swap=False),
            MmaLayout((along, 1, across), (held, -(-columns // MMA_SHORT)), swap=False),
        )

    def rows_layout(self, rows: int, columns: int) -> RowsLayout:
        """How the threads share a tile row by row: wide vectors, but no thread without elements."""
        threads = self.warps * 32
        vector = 8
        # groups of threads are powers of two, so 7 rows occupy as many as 8
        occupied = (1 << (rows - 1).bit_length()) * columns
        while vector > 1 and (columns % vector or occupied < threads * vector):
            vector //= 2
        return self.wide_rows_layout(columns, vector)

    def wide_rows_layout(self, columns: int, vector: int) -> RowsLayout:
        """Rows of vectors of a given width, although some threads may hold none."""
        lanes = 1
        while lanes < min(MAX_LANES, -(-columns // vector)):
            lanes *= 2
        return RowsLayout(self.warps * 32, lanes, vector)


def shared_type(sizes: tuple[int, int], element: Attribute, stages: int = 1) -> SharedType:
    """
    The shared tile for some rows and columns.

    Rows that are dense and short lie swizzled, others at a distance that is an odd multiple of 16
    bytes: either way 8 rows at the same columns lie in different banks, and so do 128 bytes of
    consecutive rows. A single column is dense.
    """
    columns = sizes[1]
    size = ELEMENT_BYTES[element]
    if columns == 1:
        return SharedType(sizes, element, 1, stages=stages)
    units = -(-columns * size // UNIT_BYTES)
    if columns * size % UNIT_BYTES == 0 and units in SWIZZLED_UNITS and size < 4:
        return SharedType(sizes, element, columns, swizzle=True, stages=stages)
    return SharedType(sizes, element, (units | 1) * UNIT_BYTES // size, stages=stages)
