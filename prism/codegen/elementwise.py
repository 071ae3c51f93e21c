"""Maps, reductions and spills: elementwise chains on the elements that each thread holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from prism.codegen.block_state import BlockState, Coordinate, Group
from prism.codegen.fragments import SharedTile, groups_of, rows_origin
from prism.codegen.scalar_math import emit_scalars
from prism.dialects.thread_elementwise import MapOp, ReduceOp
from prism.dialects.thread_ops import SpillOp, fragment_of
from prism.dialects.thread_sums import SumLanesOp
from prism.dialects.thread_types import FragmentType, MmaLayout, RowsLayout, SharedType

UNROLLED_VECTORS = 8
"""Vectors of a row that a reduction emits without a loop."""


def lower_map(state: BlockState, op: MapOp) -> None:
    """Computes the body for every element that the thread holds of the result."""
    e = state.emitter
    type = fragment_of(op.result)
    bounds = None if op.within is None else state.bounds(op.within.data)
    loads = _loaders(state, op.sources)
    registers: list[SSAValue] = []
    for group in groups_of(state, type):
        position = len(registers)
        operands = [load(group, position) for load in loads]
        for element in range(group.width):
            value = emit_scalars(e, op.body.block, [values[element] for values in operands])
            if bounds is not None:
                inside = state.inside(group.row, group.column.plus(element), bounds)
                value = _or_zero(state, value, inside)
            registers.append(value)
    state.fragments[op.result] = tuple(registers)


def _or_zero(state: BlockState, value: SSAValue, inside: SSAValue | None) -> SSAValue:
    if inside is None:
        return value
    return state.emitter.op("selp.f32", value, state.emitter.f32(0.0), inside)


Loader = Callable[[Group, int], Sequence[SSAValue]]


def _loaders(state: BlockState, sources: Sequence[SSAValue]) -> list[Loader]:
    """Per source, what gives the elements of a group whose first register has a position."""

    def loader(source: SSAValue) -> Loader:
        if not isinstance(source.type, SharedType):
            registers = state.fragments[source]
            return lambda group, position: registers[position : position + group.width]
        tile = SharedTile(state, source)
        known: dict[tuple[object, ...], list[SSAValue]] = {}
        rows, columns = tile.type.sizes

        def load(group: Group, _: int) -> Sequence[SSAValue]:
            # broadcast elements are loaded once
            key = (
                None if rows == 1 else (group.row.base, group.row.offset),
                None if columns == 1 else (group.column.base, group.column.offset),
                group.width,
            )
            if key not in known:
                known[key] = tile.load(group)
            return known[key]

        return load

    return [loader(source) for source in sources]


def lower_reduce(state: BlockState, op: ReduceOp) -> None:
    """Each thread adds up its share of the dim; elements beyond the part do not count."""
    layout = fragment_of(op.acc).layout.data
    if isinstance(layout, MmaLayout):
        state.fragments[op.result] = _fold(state, op, layout)
        return
    reduce = _reduce_columns if op.dim.data == 1 else _reduce_rows
    state.fragments[op.result] = reduce(state, op, layout)


def _fold(state: BlockState, op: ReduceOp, layout: MmaLayout) -> tuple[SSAValue, ...]:
    """Adds up, register by register, the tiles along the columns of a fragment."""
    e = state.emitter
    type = next(s.type for s in op.sources if isinstance(s.type, FragmentType))
    source = type.layout.data
    assert isinstance(source, MmaLayout)  # by ReduceOp.verify_
    bounds = state.bounds(op.within.data)
    loads = _loaders(state, op.sources)
    totals = list(state.fragments[op.acc])
    position = 0
    for group in groups_of(state, type):
        operands = [load(group, position) for load in loads]
        for element in range(group.width):
            value = emit_scalars(e, op.body.block, [values[element] for values in operands])
            inside = state.inside(group.row, group.column.plus(element), bounds)
            tile, register = divmod(position, 4)
            long, short = divmod(tile, source.tiles[1])
            target = short if layout.swap else long
            place = target * 4 + register
            totals[place] = e.op("add.f32", totals[place], _or_zero(state, value, inside))
            position += 1
    return tuple(totals)


def _add_elements(
    state: BlockState,
    op: ReduceOp,
    group: Group,
    bounds: Sequence[SSAValue | int],
    total: SSAValue,
) -> SSAValue:
    e = state.emitter
    operands = [load(group, 0) for load in _loaders(state, op.sources)]
    for element in range(group.width):
        value = emit_scalars(e, op.body.block, [values[element] for values in operands])
        # a vector never crosses a part's end, but a part may end within it where it is unaligned
        column = group.column.plus(element)
        inside = (
            state.at_most(column, bounds[1])
            if op.dim.data == 1
            else state.at_most(group.row, bounds[0])
        )
        total = e.op("add.f32", total, _or_zero(state, value, inside))
    return total


def _reduce_columns(state: BlockState, op: ReduceOp, layout: RowsLayout) -> tuple[SSAValue, ...]:
    e = state.emitter
    vector = op.vector.data
    bounds = state.bounds(op.within.data)
    span = layout.lanes * vector
    turns = -(-op.within.data[1].extent // span)
    row, _ = rows_origin(state, layout)
    lane = e.rem(state.thread, layout.lanes)
    first = e.mul(lane, vector)
    totals: list[SSAValue] = []
    for index, initial in enumerate(state.fragments[op.acc]):
        here = row.plus(index * layout.rows_per_pass)

        def body(
            step: SSAValue, carried: Sequence[SSAValue], here: Coordinate = here
        ) -> Sequence[SSAValue]:
            (total,) = carried
            looped = turns > UNROLLED_VECTORS
            base = e.add(first, e.mul(step, span)) if looped else first
            highest = (layout.lanes - 1) * vector + ((turns - 1) * span if looped else 0)
            for turn in range(unroll):
                column = Coordinate(base, turn * span, highest)
                total = _add_elements(state, op, Group(here, column, vector), bounds, total)
            return (total,)

        unroll = turns
        if turns > UNROLLED_VECTORS:
            unroll = next(count for count in (4, 2, 1) if turns % count == 0)
        totals += e.loop(turns, (initial,), body, unroll)
    return tuple(totals)


def _reduce_rows(state: BlockState, op: ReduceOp, layout: RowsLayout) -> tuple[SSAValue, ...]:
    e = state.emitter
    bounds = state.bounds(op.within.data)
    rows = op.within.data[0].extent
    type = fragment_of(op.acc)
    totals: list[SSAValue] = []
    for group, initial in zip(groups_of(state, type), state.fragments[op.acc], strict=True):

        def body(
            step: SSAValue, carried: Sequence[SSAValue], group: Group = group
        ) -> Sequence[SSAValue]:
            row = Coordinate(step, 0, rows - 1)
            return (_add_elements(state, op, Group(row, group.column, 1), bounds, carried[0]),)

        totals += e.loop(rows, (initial,), body)
    return tuple(totals)


def lower_sum_lanes(state: BlockState, op: SumLanesOp) -> None:
    """A butterfly over the lanes of each row; the first lane stores the sum."""
    e = state.emitter
    layout = fragment_of(op.value).layout.data
    if isinstance(layout, MmaLayout):
        _sum_folded(state, op, layout)
        return
    row, lane = rows_origin(state, layout)
    tile = SharedTile(state, op.tile)
    zero = e.constant(0)
    first = e.op("setp.eq.s32", lane.base, zero) if layout.lanes > 1 else None
    for index, total in enumerate(state.fragments[op.value]):
        mask = layout.lanes // 2
        while mask:
            total = e.op("add.f32", total, e.shuffle(total, mask))
            mask //= 2
        here = row.plus(index * layout.rows_per_pass)
        tile.store(Group(here, Coordinate(zero, 0, 0), 1), [total], first)


def _sum_folded(state: BlockState, op: SumLanesOp, layout: MmaLayout) -> None:
    """
    Sums the rows of a folded fragment over the lanes that share them: the quad of a row, or with
    columns on the long side the lanes 4, 8 and 16 apart.
    """
    e = state.emitter
    tile = SharedTile(state, op.tile)
    zero = e.constant(0)
    registers = state.fragments[op.value]
    warp = state.warp_indices(layout)[0 if layout.swap else 1]
    column = Coordinate(warp, 0, tile.type.sizes[1] - 1)
    lane = e.div(state.lane, 4) if layout.swap else e.rem(state.lane, 4)
    first = e.op("setp.eq.s32", lane, zero)
    groups = groups_of(state, fragment_of(op.value))
    rows: dict[tuple[SSAValue, int], tuple[Coordinate, SSAValue]] = {}
    position = 0
    for group in groups:
        for _ in range(group.width):
            key = (group.row.base, group.row.offset)
            value = registers[position]
            if key in rows:
                value = e.op("add.f32", rows[key][1], value)
            rows[key] = group.row, value
            position += 1
    for row, total in rows.values():
        for mask in (4, 8, 16) if layout.swap else (1, 2):
            total = e.op("add.f32", total, e.shuffle(total, mask))
        tile.store(Group(row, column, 1), [total], first)


def lower_spill(state: BlockState, op: SpillOp) -> None:
    """Each thread stores what it holds of the tile; of equal copies only the first."""
    e = state.emitter
    type = fragment_of(op.value)
    registers = state.fragments[op.value]
    tile = SharedTile(state, op.tile)
    layout = type.layout.data
    first: SSAValue | None = None
    if isinstance(layout, MmaLayout) and layout.warps[2] > 1:
        first = e.op("setp.eq.s32", state.warp_indices(layout)[2], e.constant(0))
    position = 0
    for group in groups_of(state, type):
        tile.store(group, registers[position : position + group.width], first)
        position += group.width
