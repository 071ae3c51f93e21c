"""Matrix products of shared tiles on mma.sync m16n8k16, and their sum over k warps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Attribute, SSAValue

from prism.codegen.block_state import BlockState
from prism.codegen.fragments import pack, swizzle_phase
from prism.dialects.cuda_register_ops import constant_value
from prism.dialects.thread_ops import fragment_of, shared_of
from prism.dialects.thread_products import MmaOp
from prism.dialects.thread_sums import SumWarpsOp
from prism.dialects.thread_types import (
    MMA_DEPTH,
    MMA_LONG,
    MMA_SHORT,
    UNIT_BYTES,
    FragmentType,
    MmaLayout,
    SharedType,
)

UNROLLED_STEPS = 8
"""Steps along k that are emitted without a loop."""


class _Operand:
    """
    The matrices of one operand: `ldmatrix` takes from each lane the address of one row of 8.

    `side` is the dim of the stored tile that is the product's long or short side, the other is k.
    Where k runs along the stored rows the matrices are transposed as they load.
    """

    def __init__(
        self,
        state: BlockState,
        tile: SSAValue,
        *,
        side: int,
        lane_side: SSAValue,
        lane_k: SSAValue,
    ) -> None:
        self._state = state
        self._type: SharedType = shared_of(tile)
        self._offset = state.tiles[tile]
        pitch = self._type.pitch.data * self._type.element_bytes
        self._strides = (pitch, self._type.element_bytes)
        self._side = side
        e = state.emitter
        lanes = (lane_k, lane_side) if side == 1 else (lane_side, lane_k)
        self._row, self._column = lanes
        row = e.mul(self._row, pitch)
        if not self._type.swizzled:
            row = e.add(row, e.mul(self._column, self._type.element_bytes))
        self._pointer = e.op("advance.shared", e.op("shared.base"), row)

    def load(
        self, count: int, side: int, index: SSAValue, k: int, step: int
    ) -> tuple[SSAValue, ...]:
        """Loads `count` matrices at `side` and at k + index * step."""
        e = self._state.emitter
        stride = self._strides[1 - self._side]
        pointer = self._pointer
        further = e.mul(index, step * stride)
        offset = self._offset
        if self._type.swizzled:
            # rows advance by multiples of 8, which leaves the swizzle's phase as it is
            along, deep = (side, k) if self._side == 1 else (k, side)
            offset += deep * self._strides[0]
            column = e.add(self._column, along)
            if self._side == 0:
                column, further = e.add(column, e.mul(index, step)), e.constant(0)
            unit = e.div(column, UNIT_BYTES // self._type.element_bytes)
            phase = swizzle_phase(e, self._row, self._type.row_units)
            pointer = e.op("advance.shared", pointer, e.mul(e.xor(unit, phase), UNIT_BYTES))
        else:
            offset += side * self._strides[self._side] + k * stride
        if constant_value(further) != 0:
            pointer = e.op("advance.shared", pointer, further)
        if self._type.stages.data > 1:
            assert self._state.stage is not None  # by ForOp's lowering
            pointer = e.op("advance.shared", pointer, self._state.stage)
        return e.ldmatrix(pointer, count, trans=self._side == 1, offset=offset)


def lower_mma(state: BlockState, op: MmaOp) -> None:
    """
    Each warp multiplies its tiles for its steps along k, operands from shared memory; a first
    operand that is a fragment is packed where it is.
    """
    layout = fragment_of(op.acc).layout.data
    assert isinstance(layout, MmaLayout)  # by MmaOp.verify_
    e, lane = state.emitter, state.lane
    warp_long, warp_short, warp_k = state.warp_indices(layout)
    long0 = e.mul(warp_long, layout.tiles[0] * MMA_LONG)
    short0 = e.mul(warp_short, layout.tiles[1] * MMA_SHORT)
    element = shared_of(op.rhs).element_type
    packed = _packed(state, op.lhs, element)
    # k warps take steps in turn, or those whose columns they hold of a fragment
    k0 = e.mul(warp_k, MMA_DEPTH * (len(packed) or 1))
    low16, high16 = e.rem(lane, 16), e.mul(e.div(lane, 16), 8)
    low8, second8 = e.rem(lane, 8), e.mul(e.rem(e.div(lane, 8), 2), 8)
    stored_k = e.add(high16, low8)
    long_tile, short_tile = (op.rhs, op.lhs) if layout.swap else (op.lhs, op.rhs)
    # the order of a fragment's matrices (PTX ISA, figures of m16n8k16): A first along its long
    # side, then along k; B along k, and two B fragments one after the other
    if layout.swap:
        long_lane, long_k = second8, stored_k
        pair_lane, pair_k = stored_k, second8
        one_lane, one_k = low8, second8
    else:
        long_lane, long_k = low16, high16
        pair_lane, pair_k = high16, low16
        one_lane, one_k = e.constant(0), low16
    long_side, short_side = (1, 0) if layout.swap else (0, 1)

    def operand(
        tile: SSAValue, side: int, start: SSAValue, along: SSAValue, deep: SSAValue
    ) -> _Operand:
        return _Operand(
            state, tile, side=side, lane_side=e.add(start, along), lane_k=e.add(k0, deep)
        )

    long = None if packed else operand(long_tile, long_side, long0, long_lane, long_k)
    pair = operand(short_tile, short_side, short0, pair_lane, pair_k)
    one = operand(short_tile, short_side, short0, one_lane, one_k)
    if packed:
        depth, steps = MMA_DEPTH, len(packed)
    else:
        depth = MMA_DEPTH * layout.warps[2]
        steps = min(shared_of(op.lhs).sizes[1], shared_of(op.rhs).sizes[0]) // depth

    def multiply(index: SSAValue, acc: Sequence[SSAValue], k: int) -> list[SSAValue]:
        if long is None:
            a = packed[k // depth]
        else:
            a = [long.load(4, y * MMA_LONG, index, k, depth) for y in range(layout.tiles[0])]
        b: list[tuple[SSAValue, ...]] = []
        for x in range(0, layout.tiles[1] - 1, 2):
            loaded = pair.load(4, x * MMA_SHORT, index, k, depth)
            b += [loaded[:2], loaded[2:]]
        if layout.tiles[1] % 2:
            b.append(one.load(2, (layout.tiles[1] - 1) * MMA_SHORT, index, k, depth))
        result: list[SSAValue] = []
        for y in range(layout.tiles[0]):
            for x in range(layout.tiles[1]):
                position = (y * layout.tiles[1] + x) * 4
                result += e.mma(a[y], b[x], acc[position : position + 4], bf16=element == bf16)
        return result

    unroll = steps
    if steps > UNROLLED_STEPS and not packed:
        unroll = next(count for count in (4, 2, 1) if steps % count == 0)

    def body(index: SSAValue, acc: Sequence[SSAValue]) -> Sequence[SSAValue]:
        for step in range(unroll):
            acc = multiply(index, acc, step * depth)
        return acc

    state.fragments[op.result] = e.loop(steps, state.fragments[op.acc], body, unroll)


def _packed(
    state: BlockState, lhs: SSAValue, element: Attribute
) -> list[list[tuple[SSAValue, ...]]]:
    """
    A fragment as the A operands of the next product, per step of 16 columns and tile of rows; none
    of a shared tile.

    Registers 0 and 1 of an accumulator are neighbours of one row, 2 and 3 of the row 8 further on;
    A wants these two pairs of columns 0 to 7 and then of 8 to 15 (PTX ISA, figures of m16n8k16).
    """
    if not isinstance(lhs.type, FragmentType):
        return []
    layout = lhs.type.layout.data
    assert isinstance(layout, MmaLayout)  # by MmaOp.verify_
    registers = state.fragments[lhs]
    rows, columns = layout.tiles

    def operand(row: int, step: int) -> tuple[SSAValue, ...]:
        first = (row * columns + 2 * step) * 4
        return tuple(pack(state, element, registers[first : first + 8]))

    return [[operand(row, step) for row in range(rows)] for step in range(columns // 2)]


def lower_sum_warps(state: BlockState, op: SumWarpsOp) -> None:
    """
    All warps write their sums, then all read those of their k group: equal order, equal values.

    Register r of a thread lies at r * threads + thread, so that a warp's accesses are consecutive.
    """
    e = state.emitter
    layout = fragment_of(op.value).layout.data
    assert isinstance(layout, MmaLayout)  # by FragmentType.verify
    registers = state.fragments[op.value]
    base = e.op("shared.base")
    offset = state.tiles[op.scratch]
    mine = e.op("advance.shared", base, e.mul(state.thread, 4))
    for index, register in enumerate(registers):
        e.store([register], mine, offset + index * state.threads * 4)
    e.barrier()
    group = state.threads // layout.warps[2]
    first = e.op("advance.shared", base, e.mul(e.rem(state.thread, group), 4))
    totals: list[SSAValue] = []
    for index in range(len(registers)):
        total: SSAValue | None = None
        for depth in range(layout.warps[2]):
            place = offset + (index * state.threads + depth * group) * 4
            (value,) = e.load(first, [f32], place)
            total = value if total is None else e.op("add.f32", total, value)
        assert total is not None
        totals.append(total)
    state.fragments[op.result] = tuple(totals)
