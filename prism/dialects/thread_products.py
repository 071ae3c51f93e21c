"""Matrix products of the `thread` dialect."""

from __future__ import annotations

from xdsl.dialects.builtin import bf16, f16
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from prism.dialects.thread_ops import fragment_of, shared_of
from prism.dialects.thread_types import (
    MMA_DEPTH,
    FragmentType,
    MmaLayout,
    SharedType,
)


@irdl_op_definition
class MmaOp(IRDLOperation):
    """
    acc + lhs * rhs, shared tiles [m, k] and [k, n] of f16 or bf16, on mma.sync m16n8k16.

    Where the tiles differ in k, the smaller size counts. The k warps of the layout take the steps
    of 16 along k in turn. The lhs may be a fragment, rounded in registers: each warp then
    multiplies the columns that it holds, so that the fragment's warps along columns are the k warps
    of the product.

    Syntax: `%d = thread.mma %a, %b, %c : !thread.shared<..>, !thread.shared<..>,
    !thread.fragment<..>`
    """

    name = "thread.mma"

    lhs = operand_def(SharedType | FragmentType)
    rhs = operand_def(SharedType)
    acc = operand_def(FragmentType)
    result = result_def(FragmentType)

    assembly_format = (
        "$lhs `,` $rhs `,` $acc attr-dict "
        "`:` type($lhs) `,` type($rhs) `,` type($acc) `->` type($result)"
    )

    def __init__(self, lhs: SSAValue, rhs: SSAValue, acc: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs, acc], result_types=[acc.type])

    def verify_(self) -> None:
        rhs, acc = shared_of(self.rhs), fragment_of(self.acc)
        layout = acc.layout.data
        if self.result.type != acc:
            raise VerifyException(
                f"result: expected the type of acc {acc}, found {self.result.type}"
            )
        if not isinstance(layout, MmaLayout):
            raise VerifyException(f"acc: expected an mma layout, found {layout}")
        if acc.owed != (layout.warps[2] > 1):
            raise VerifyException("acc: expected partial just if the layout has several k warps")
        _verify_operand("rhs", rhs)
        rows, columns = layout.shape
        if isinstance(self.lhs.type, FragmentType):
            expected = operand_layout(layout, self.lhs.type)
            if self.lhs.type.layout.data != expected or self.lhs.type.owed:
                raise VerifyException(
                    f"lhs: expected a whole fragment of layout {expected}, found {self.lhs.type}"
                )
            lhs_sizes, step = self.lhs.type.sizes, 1
            if rhs.sizes[0] < lhs_sizes[1]:
                raise VerifyException(
                    f"rhs: expected at least {lhs_sizes[1]} rows, found {rhs.sizes[0]}"
                )
        else:
            lhs = shared_of(self.lhs)
            _verify_operand("lhs", lhs)
            if lhs.element_type != rhs.element_type:
                raise VerifyException(
                    f"rhs: expected {lhs.element_type} as the lhs, found {rhs.element_type}"
                )
            lhs_sizes, step = lhs.sizes, MMA_DEPTH * layout.warps[2]
        if lhs_sizes[0] < rows or rhs.sizes[1] < columns:
            raise VerifyException(
                f"operands: expected at least {rows} rows and {columns} columns by the layout, "
                f"found {lhs_sizes[0]} and {rhs.sizes[1]}"
            )
        depth = min(lhs_sizes[1], rhs.sizes[0])
        if depth % step:
            raise VerifyException(
                f"operands: expected a contracted size that is a multiple of {step}, found {depth}"
            )


def operand_layout(layout: MmaLayout, operand: FragmentType) -> MmaLayout | None:
    """
    The layout that a fragment needs to be the lhs of a product of some layout; None if no fragment
    can: an accumulator holds rows and columns as the first operand of the next product wants them
    (PTX ISA, figures of m16n8k16), two of its tiles side by side making one of 16 columns.
    """
    found = operand.layout.data
    if not isinstance(found, MmaLayout) or layout.swap or found.tiles[1] % 2 or layout.warps[1] > 1:
        return None
    along, _, deep = layout.warps
    return MmaLayout((along, deep, 1), (layout.tiles[0], found.tiles[1]), swap=False)


def _verify_operand(name: str, tile: SharedType) -> None:
    """Checks that ldmatrix can load a tile."""
    if tile.element_type not in (f16, bf16):
        raise VerifyException(f"{name}: expected f16 or bf16, found {tile.element_type}")
    if tile.pitch.data % 8:
        raise VerifyException(
            f"{name}: expected a pitch of a multiple of 8 elements, found {tile.pitch.data}"
        )
