"""What lowering a `thread.kernel` to SIMT code knows: thread indices, tiles, fragments, windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from prism.codegen.emitter import Emitter
from prism.dialects.cuda_register_ops import constant_value
from prism.dialects.thread_ops import Window, matrix_window
from prism.dialects.thread_types import WARP, DimWindow, MmaLayout


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A row or column `base + offset` of a tile, where `base` is at most `highest`."""

    base: SSAValue
    offset: int
    highest: int

    def plus(self, offset: int) -> Coordinate:
        """The coordinate `offset` further on."""
        return Coordinate(self.base, self.offset + offset, self.highest)

    @property
    def maximum(self) -> int:
        """The largest value that it takes in any thread."""
        return self.highest + self.offset


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive columns of one row that a thread holds: `width` of them from `column`."""

    row: Coordinate
    column: Coordinate
    width: int


@dataclass
class BlockState:
    """
    The state of lowering one kernel.

    `tiles` gives the byte offset of each shared tile, `fragments` the registers of each fragment,
    `pointers` the address of each tensor, `axes` the index and `counts` the size of each axis.
    """

    emitter: Emitter
    threads: int
    tiles: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    fragments: dict[SSAValue, tuple[SSAValue, ...]] = field(
        default_factory=dict[SSAValue, "tuple[SSAValue, ...]"]
    )
    pointers: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    axes: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    stage_bytes: int = 0
    """The bytes of one stage of all tiles with stages, which lie side by side."""
    stage: SSAValue | None = None
    """The byte offset of the stage that the index of the loop around means."""
    free_stage: SSAValue | None = None
    """That of the stage before it, which copies ahead fill."""

    @property
    def thread(self) -> SSAValue:
        """The index of the thread in its block."""
        return self.emitter.op("tid.x")

    @property
    def lane(self) -> SSAValue:
        """The index of the thread in its warp."""
        return self.emitter.rem(self.thread, WARP)

    @property
    def warp(self) -> SSAValue:
        """The index of the warp in its block."""
        return self.emitter.div(self.thread, WARP)

    def warp_indices(self, layout: MmaLayout) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The warp's position (long, short, k) in a layout; the long side varies fastest."""
        e = self.emitter
        long, short, depth = layout.warps
        warp = self.warp
        inner = e.div(warp, long)
        return (
            e.rem(warp, long) if short * depth > 1 else warp if long > 1 else e.constant(0),
            e.rem(inner, short) if short > 1 else e.constant(0),
            e.div(inner, short) if depth > 1 else e.constant(0),
        )

    def at_most(self, coordinate: Coordinate, bound: SSAValue | int) -> SSAValue | None:
        """coordinate < bound as a predicate; None if that always holds."""
        e = self.emitter
        if isinstance(bound, int):
            if coordinate.maximum < bound:
                return None
            bound = e.constant(bound)
        return e.less(e.add(coordinate.base, coordinate.offset), bound)

    def inside(
        self, row: Coordinate, column: Coordinate, bounds: Sequence[SSAValue | int]
    ) -> SSAValue | None:
        """Whether an element lies below the bounds of both dims; None if always."""
        return self.emitter.both(self.at_most(row, bounds[0]), self.at_most(column, bounds[1]))

    def origin(self, dim: DimWindow) -> SSAValue:
        """The first element of a window's part in one dim."""
        e = self.emitter
        total = e.constant(0)
        for axis, tile in dim.cuts:
            total = e.add(total, e.mul(self.axes[axis], tile))
        return total

    def valid(self, dim: DimWindow) -> SSAValue | int:
        """
        How many elements of a window's part exist in one dim; at most 0 if it lies beyond the end.

        Where whole parts fill the dim, every part is whole and the answer is a number.
        """
        extent = dim.size
        exact = True
        for axis, tile in dim.cuts:
            exact = exact and tile * self.counts[axis] == extent
            extent = tile
        if exact:
            return extent
        e = self.emitter
        left: SSAValue = e.constant(dim.size)
        for axis, tile in dim.cuts:
            # what remains from this part's start, and no more than the part
            left = e.minimum(e.sub(left, e.mul(self.axes[axis], tile)), tile)
        known = constant_value(left)
        return left if known is None else known

    def bounds(self, window: Window) -> tuple[SSAValue | int, SSAValue | int]:
        """`valid` of rows and columns."""
        rows, columns = matrix_window(window)
        return self.valid(rows), self.valid(columns)

    def wide(self, value: SSAValue, scale: int) -> SSAValue:
        """value * scale as i64."""
        return self.emitter.op("mul.wide.u32", value, self.emitter.constant(scale))
