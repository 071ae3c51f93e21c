"""Copies of tensor parts to shared tiles, and stores of fragments to tensor parts."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute, SSAValue

from prism.codegen.block_state import BlockState, Coordinate
from prism.codegen.fragments import SharedTile, groups_of, pack
from prism.dialects.thread_ops import (
    CopyOp,
    StoreOp,
    Window,
    fragment_of,
    matrix_window,
    tensor_of,
)
from prism.dialects.thread_types import ELEMENT_BYTES, MmaLayout

SMALLEST_ASYNC_COPY = 4
"""Bytes of the smallest asynchronous copy (PTX ISA 9.7.9.25): smaller ones go through registers."""

COPIES_IN_FLIGHT = 8
"""Vectors that a thread loads before it stores the first of them."""


def vector_elements(window: Window, element_bytes: int, at_most: int) -> int:
    """
    The widest vector of columns that is aligned in the tensor and never crosses a part's end.

    The rows' length and every part's extent must be multiples of it; tensors are aligned to 16
    bytes.
    """
    columns = window[-1]
    vector = min(at_most, 16 // element_bytes)
    while any(size % vector for size in (columns.size, *(tile for _, tile in columns.cuts))):
        vector //= 2
    return vector


def _registers(element: Attribute, vector: int) -> list[Attribute]:
    """The registers of a vector: f32, 16 bits, or pairs of those in i32."""
    if element != f32 and vector > 1:
        return [i32] * (vector // 2)
    return [element] * vector


class _Part:
    """The part of a tensor that a window describes."""

    def __init__(self, state: BlockState, tensor: SSAValue, window: Window) -> None:
        self._state = state
        self.element = tensor_of(tensor).element_type
        self._size = ELEMENT_BYTES[self.element]
        rows, columns = matrix_window(window)
        self._pitch = columns.size
        self._pointer = state.pointers[tensor]
        e = state.emitter
        self._origins = [
            state.wide(state.origin(dim), scale * self._size)
            for dim, scale in zip(
                window[::-1], (1, self._pitch, self._pitch * rows.size), strict=False
            )
            if dim.cuts
        ]
        self.bounds = state.bounds(window)
        # whether the batch has such an element
        self.exists: SSAValue | None = None
        for dim in window[:-2]:
            left = state.valid(dim)
            if not isinstance(left, int):
                self.exists = e.both(self.exists, e.less(e.constant(0), left))

    def address(self, row: Coordinate, column: Coordinate) -> tuple[SSAValue, int]:
        """The address of an element of the part as a register and a byte offset."""
        e = self._state.emitter
        index = e.add(e.mul(row.base, self._pitch), column.base)
        pointer = self._pointer
        # what does not depend on a loop's index first: it is computed before the loop
        offsets = [self._state.wide(index, self._size), *self._origins]
        for offset in sorted(offsets, key=e.depth):
            pointer = e.op("advance.global", pointer, offset)
        return pointer, (row.offset * self._pitch + column.offset) * self._size


def lower_copy(state: BlockState, op: CopyOp) -> None:
    """A copy, of an index ahead or of a given one if the op says so."""
    e = state.emitter
    if op.axis is not None and op.index is not None:
        axis, index = op.axis.data, op.index.data
        state.axes[axis] = e.constant(index)
        _copy(state, op, index * state.stage_bytes)
        del state.axes[axis]
    elif op.ahead is not None and op.ahead.data:
        # the window's innermost loop axis is the one that the pipeline runs along
        axis = next(reversed(state.axes))
        index = state.axes[axis]
        later = e.add(index, op.ahead.data)
        state.axes[axis] = later
        exists = e.less(later, e.constant(state.counts[axis]))
        e.when(exists, lambda: _copy(state, op, state.free_stage))
        state.axes[axis] = index
    else:
        _copy(state, op, None)


def _copy(state: BlockState, op: CopyOp, stage: SSAValue | int | None) -> None:
    """Threads take vectors of the tile in turn, row by row, and load zeros where there is none."""
    e = state.emitter
    part = _Part(state, op.tensor, op.window.data)
    tile = SharedTile(state, op.tile, stage)
    rows, columns = tile.type.sizes
    vector = vector_elements(op.window.data, tile.type.element_bytes, 8)
    while columns % vector or tile.type.pitch.data % vector:
        vector //= 2
    registers = _registers(part.element, vector)
    vector_bytes = vector * tile.type.element_bytes
    asynchronous = op.asynchronous is not None and vector_bytes >= SMALLEST_ASYNC_COPY
    per_row = columns // vector
    total = rows * per_row
    turns = -(-total // state.threads)

    def copy(base: SSAValue, highest: int, offset: int, count: int) -> None:
        """Copies `count` vectors, the first of them at index base + offset, base <= highest."""
        loaded: list[tuple[Coordinate, Coordinate, SSAValue | None, Sequence[SSAValue]]] = []
        for turn in range(count):
            index = Coordinate(base, offset + turn * state.threads, highest)
            row, column = _split(state, index, per_row, vector, rows)
            exists = state.at_most(index, total)
            valid = e.both(part.exists, state.inside(row, column, part.bounds))
            pointer, offset_bytes = part.address(row, column)
            if asynchronous:
                source, target = (pointer, offset_bytes), tile.address(row, column)
                e.copy_async(vector_bytes, source, target, valid, exists)
                continue
            values = e.load(pointer, registers, offset_bytes, e.both(exists, valid))
            loaded.append((row, column, exists, values))
        for row, column, exists, values in loaded:
            pointer, offset_bytes = tile.address(row, column)
            e.store(values, pointer, offset_bytes, exists)

    rounds, rest = divmod(turns, COPIES_IN_FLIGHT)
    stride = COPIES_IN_FLIGHT * state.threads
    last = state.threads - 1

    def body(index: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        base = e.add(state.thread, e.mul(index, stride))
        copy(base, last + (rounds - 1) * stride, 0, COPIES_IN_FLIGHT)
        return ()

    if rounds:
        e.loop(rounds, (), body)
    if rest:
        copy(state.thread, last, rounds * stride, rest)


def _split(
    state: BlockState, index: Coordinate, per_row: int, vector: int, rows: int
) -> tuple[Coordinate, Coordinate]:
    """The row and column of a vector's index; a constant step between turns stays an offset."""
    e = state.emitter
    if index.offset % per_row == 0:
        base, rows_further = index.base, index.offset // per_row
    else:
        base, rows_further = e.add(index.base, index.offset), 0
    highest = (index.maximum // per_row) - rows_further
    row = Coordinate(e.div(base, per_row), rows_further, min(highest, rows - 1 - rows_further))
    column = Coordinate(e.mul(e.rem(base, per_row), vector), 0, (per_row - 1) * vector)
    return row, column


def lower_store(state: BlockState, op: StoreOp) -> None:
    """Each thread stores what it holds of the part; of equal copies only one is stored."""
    e = state.emitter
    type = fragment_of(op.value)
    part = _Part(state, op.tensor, op.window.data)
    registers = state.fragments[op.value]
    groups = groups_of(state, type)
    step = vector_elements(op.window.data, ELEMENT_BYTES[part.element], groups[0].width)

    def store() -> None:
        position = 0
        for group in groups:
            for start in range(0, group.width, step):
                column = group.column.plus(start)
                pointer, offset = part.address(group.row, column)
                inside = state.inside(group.row, column, part.bounds)
                values = registers[position : position + step]
                e.store(pack(state, part.element, values), pointer, offset, inside)
                position += step

    e.when(e.both(part.exists, _is_first(state, op, type.layout.data)), store)


def _is_first(state: BlockState, op: StoreOp, layout: object) -> SSAValue | None:
    """Whether this thread holds the copy that is stored; None if there is only one."""
    e = state.emitter
    zero = e.constant(0)
    first: SSAValue | None = None
    for axis in op.once:
        if state.counts[axis.data] > 1:
            first = e.both(first, e.op("setp.eq.s32", state.axes[axis.data], zero))
    if isinstance(layout, MmaLayout) and layout.warps[2] > 1:
        depth = state.warp_indices(layout)[2]
        first = e.both(first, e.op("setp.eq.s32", depth, zero))
    return first
