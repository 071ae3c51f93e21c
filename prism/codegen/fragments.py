"""Which elements a thread holds of a fragment, and elements of shared tiles as f32 registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import bf16, f16, f32, i32
from xdsl.ir import Attribute, SSAValue

from prism.codegen.block_state import BlockState, Coordinate, Group
from prism.codegen.emitter import Emitter
from prism.dialects.thread_ops import shared_of
from prism.dialects.thread_types import (
    MMA_LONG,
    MMA_SHORT,
    UNIT_BYTES,
    WARP,
    FragmentType,
    MmaLayout,
    RowsLayout,
    SharedType,
)


def groups_of(state: BlockState, type: FragmentType) -> list[Group]:
    """The elements that a thread holds, in the order of its registers."""
    layout = type.layout.data
    if isinstance(layout, MmaLayout):
        return list(_mma_groups(state, layout))
    passes = layout.passes(type.sizes)
    row, column = rows_origin(state, layout)
    return [
        Group(
            row.plus(y * layout.rows_per_pass),
            column.plus(x * layout.lanes * layout.vector),
            layout.vector,
        )
        for y in range(passes[0])
        for x in range(passes[1])
    ]


def rows_origin(state: BlockState, layout: RowsLayout) -> tuple[Coordinate, Coordinate]:
    """The first row and column of a thread in a rows layout."""
    e = state.emitter
    row = e.div(state.thread, layout.lanes)
    lane = e.rem(state.thread, layout.lanes)
    return (
        Coordinate(row, 0, layout.rows_per_pass - 1),
        Coordinate(e.mul(lane, layout.vector), 0, (layout.lanes - 1) * layout.vector),
    )


def _mma_groups(state: BlockState, layout: MmaLayout) -> Iterator[Group]:
    """
    The accumulators of m16n8k16 (PTX ISA, figure of the C fragment): lane l holds, on the long
    side l / 4 and 8 more, on the short side 2 (l % 4) and 1 more.
    """
    e = state.emitter
    warp_long, warp_short, _ = state.warp_indices(layout)
    span_long, span_short = layout.tiles[0] * MMA_LONG, layout.tiles[1] * MMA_SHORT
    long = Coordinate(
        e.add(e.mul(warp_long, span_long), e.div(state.lane, 4)),
        0,
        (layout.warps[0] - 1) * span_long + WARP // 4 - 1,
    )
    short = Coordinate(
        e.add(e.mul(warp_short, span_short), e.mul(e.rem(state.lane, 4), 2)),
        0,
        (layout.warps[1] - 1) * span_short + 6,
    )
    for y in range(layout.tiles[0]):
        for x in range(layout.tiles[1]):
            for half in range(2):
                along = long.plus(y * MMA_LONG + half * 8)
                across = short.plus(x * MMA_SHORT)
                if layout.swap:
                    # neighbours on the short side are rows
                    yield Group(across, along, 1)
                    yield Group(across.plus(1), along, 1)
                else:
                    yield Group(along, across, 2)


def swizzle_phase(e: Emitter, row: SSAValue, row_units: int) -> SSAValue:
    """What the unit numbers of a row are xor'ed with: rows that share banks differ in it."""
    return e.rem(e.div(row, 8 // row_units), row_units)


class SharedTile:
    """Access to elements of one shared tile."""

    def __init__(
        self, state: BlockState, tile: SSAValue, stage: SSAValue | int | None = None
    ) -> None:
        self._state = state
        self.type: SharedType = shared_of(tile)
        self._offset = state.tiles[tile]
        self._stage = stage
        if self.type.stages.data > 1 and stage is None:
            self._stage = state.stage

    @property
    def pitch_bytes(self) -> int:
        """The distance of rows in bytes."""
        return self.type.pitch.data * self.type.element_bytes

    def address(self, row: Coordinate, column: Coordinate) -> tuple[SSAValue, int]:
        """The address of an element as a register and a byte offset."""
        e = self._state.emitter
        size = self.type.element_bytes
        base = e.op("shared.base")
        constant = self._offset
        if self.type.swizzled:
            inside, further = self._swizzled(row, column)
        else:
            inside = e.mul(column.base, size)
            further = row.offset * self.pitch_bytes + column.offset * size
        pointer = e.op("advance.shared", base, e.add(e.mul(row.base, self.pitch_bytes), inside))
        if isinstance(self._stage, int):
            constant += self._stage
        elif self._stage is not None:
            pointer = e.op("advance.shared", pointer, self._stage)
        return pointer, constant + further

    def _swizzled(self, row: Coordinate, column: Coordinate) -> tuple[SSAValue, int]:
        """The byte offset of an element from its row's base, and a constant to add."""
        e = self._state.emitter
        per_unit = UNIT_BYTES // self.type.element_bytes
        # the phase repeats every 8 rows
        repeats = row.offset % 8 == 0
        phase = swizzle_phase(
            e, row.base if repeats else e.add(row.base, row.offset), self.type.row_units
        )
        whole = e.add(column.base, column.offset)
        unit = e.mul(e.xor(e.div(whole, per_unit), phase), UNIT_BYTES)
        rest = e.mul(e.rem(whole, per_unit), self.type.element_bytes)
        return e.add(unit, rest), row.offset * self.pitch_bytes

    def _limits(self, row: Coordinate, column: Coordinate) -> SSAValue | None:
        """Whether an element lies in the tile; None if always."""
        return self._state.inside(row, column, self.type.sizes)

    def load(self, group: Group) -> list[SSAValue]:
        """
        The elements of a group as f32, zero beyond the tile; a dim of size 1 is broadcast.

        Neighbours load as one vector where the tile's size lets no vector cross its end.
        """
        e = self._state.emitter
        rows, columns = self.type.sizes
        zero = Coordinate(e.constant(0), 0, 0)
        row = zero if rows == 1 else group.row
        if columns == 1:
            return self._load_vector(row, zero, 1) * group.width
        step = _vector(group.width, columns, self.type.pitch.data, self.type.element_bytes)
        values: list[SSAValue] = []
        for start in range(0, group.width, step):
            values += self._load_vector(row, group.column.plus(start), step)
        return values

    def _load_vector(self, row: Coordinate, column: Coordinate, width: int) -> list[SSAValue]:
        e = self._state.emitter
        pointer, offset = self.address(row, column)
        predicate = self._limits(row, column)
        if self.type.element_type == f32:
            return list(e.load(pointer, [f32] * width, offset, predicate))
        brain = self.type.element_type == bf16
        if width == 1:
            (half,) = e.load(pointer, [self.type.element_type], offset, predicate)
            if brain:
                return [e.op("bits.f32", e.mul(e.op("bits.bf16", half), 1 << 16))]
            return [e.op("cvt.f32.f16", half)]
        packed = e.load(pointer, [i32] * (width // 2), offset, predicate)
        if brain:
            return [
                e.op("bits.f32", bits)
                for pair in packed
                for bits in (e.mul(pair, 1 << 16), e.op("and.b32", pair, e.constant(-(1 << 16))))
            ]
        return [e.op("cvt.f32.f16", half) for pair in packed for half in e.ops("unpack.f16", pair)]

    def store(
        self, group: Group, values: Sequence[SSAValue], predicate: SSAValue | None = None
    ) -> None:
        """Stores the f32 elements of a group where they lie in the tile, rounded to its type."""
        e = self._state.emitter
        columns = self.type.sizes[1]
        step = _vector(group.width, columns, self.type.pitch.data, self.type.element_bytes)
        for start in range(0, group.width, step):
            column = group.column.plus(start)
            pointer, offset = self.address(group.row, column)
            inside = e.both(self._limits(group.row, column), predicate)
            packed = pack(self._state, self.type.element_type, values[start : start + step])
            e.store(packed, pointer, offset, inside)


def pack(state: BlockState, element: Attribute, values: Sequence[SSAValue]) -> list[SSAValue]:
    """f32 values as registers to store: themselves, or rounded to 16 bits, two in a register."""
    e = state.emitter
    if element == f32:
        return list(values)
    name = "f16" if element == f16 else "bf16"
    if len(values) == 1:
        return [e.op(f"cvt.rn.{name}.f32", values[0])]
    return [
        e.op(f"cvt.rn.{name}x2.f32", high, low)
        for low, high in zip(values[::2], values[1::2], strict=True)
    ]


def _vector(width: int, columns: int, pitch: int, element_bytes: int) -> int:
    """The elements that one access moves: no more than 16 bytes, aligned, whole up to the end."""
    step = width
    while step * element_bytes > 16 or columns % step or pitch % step:
        step //= 2
    return step
