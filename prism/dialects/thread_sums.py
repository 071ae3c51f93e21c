"""Ops of the `thread` dialect that add up what several threads hold."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from prism.dialects.thread_ops import fragment_of, shared_of
from prism.dialects.thread_types import FragmentType, MmaLayout, RowsLayout, SharedType


@irdl_op_definition
class SumWarpsOp(IRDLOperation):
    """
    The sum of a partial fragment over its k warps, through a shared row of
    `registers * threads` f32. It waits for all threads between writing and reading the row.

    Syntax: `%d = thread.sum_warps %f via %s : !thread.fragment<..>, !thread.shared<..> ->
    !thread.fragment<..>`
    """

    name = "thread.sum_warps"

    value = operand_def(FragmentType)
    scratch = operand_def(SharedType)
    result = result_def(FragmentType)

    assembly_format = (
        "$value `via` $scratch attr-dict `:` type($value) `,` type($scratch) `->` type($result)"
    )

    def __init__(self, value: SSAValue, scratch: SSAValue) -> None:
        fragment = fragment_of(value)
        super().__init__(
            operands=[value, scratch],
            result_types=[FragmentType(fragment.sizes, fragment.layout.data)],
        )

    def verify_(self) -> None:
        fragment, scratch = fragment_of(self.value), shared_of(self.scratch)
        if not fragment.owed:
            raise VerifyException("value: expected a partial fragment, found a whole one")
        expected = FragmentType(fragment.sizes, fragment.layout.data)
        if self.result.type != expected:
            raise VerifyException(f"result: expected {expected}, found {self.result.type}")
        wanted = scratch_type(fragment)
        if scratch != wanted:
            raise VerifyException(f"scratch: expected {wanted}, found {scratch}")


def scratch_type(fragment: FragmentType) -> SharedType:
    """The shared row that `thread.sum_warps` needs for a partial fragment."""
    layout = fragment.layout.data
    assert isinstance(layout, MmaLayout)  # by FragmentType.verify
    length = layout.registers * layout.threads
    return SharedType((1, length), f32, length)


@irdl_op_definition
class SumLanesOp(IRDLOperation):
    """
    Sums each row of a fragment [rows, lanes] over its lanes by shuffles, to a shared column [rows,
    1] or shorter; of an mma fragment with one tile along the columns to a column per warp along
    them.

    Syntax: `thread.sum_lanes %f to %s : !thread.fragment<..>, !thread.shared<[8, 1], f32, pitch 1>`
    """

    name = "thread.sum_lanes"

    value = operand_def(FragmentType)
    tile = operand_def(SharedType)

    assembly_format = "$value `to` $tile attr-dict `:` type($value) `,` type($tile)"

    def __init__(self, value: SSAValue, tile: SSAValue) -> None:
        super().__init__(operands=[value, tile])

    def verify_(self) -> None:
        fragment, tile = fragment_of(self.value), shared_of(self.tile)
        layout = fragment.layout.data
        if isinstance(layout, MmaLayout):
            columns = layout.warps[0] if layout.swap else layout.warps[1]
            if fragment.owed or folded_layout(layout) != layout:
                raise VerifyException(
                    f"value: expected one tile along the columns, found {fragment}"
                )
            if tile.sizes[1] != columns or tile.sizes[0] > fragment.sizes[0]:
                raise VerifyException(
                    f"tile: expected {columns} columns of at most {fragment.sizes[0]} rows, "
                    f"found {list(tile.sizes)}"
                )
            return
        if not is_lane_sums(fragment, layout):
            raise VerifyException(
                "value: expected a fragment [rows, lanes] of a rows layout of vector 1 and a "
                f"power of two of at most 32 lanes, found {fragment}"
            )
        if tile.sizes[1] != 1 or tile.sizes[0] > fragment.sizes[0]:
            raise VerifyException(
                f"tile: expected one column of at most {fragment.sizes[0]} rows, "
                f"found {list(tile.sizes)}"
            )


def is_lane_sums(fragment: FragmentType, layout: RowsLayout) -> bool:
    """Whether each lane holds one element of each row, in a group that shuffles can sum."""
    lanes = layout.lanes
    return (
        fragment.sizes[1] == lanes
        and layout.vector == 1
        and lanes <= 32
        and lanes & (lanes - 1) == 0
    )


def folded_layout(layout: MmaLayout) -> MmaLayout:
    """The layout of a fragment's sums over its tiles along the columns."""
    long, short = layout.tiles
    tiles = (1, short) if layout.swap else (long, 1)
    return MmaLayout(layout.warps, tiles, layout.swap)
