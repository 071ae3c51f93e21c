"""Shape rules of the operator table, shared by the `kernel` and `threadblock` verifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.utils.exceptions import VerifyException

from prism.dialects.operators import Kind, Operator
from prism.dialects.sym import shape_text
from prism.dialects.sym_expr import SymExpr

Shape = tuple[SymExpr, ...]

ONE = SymExpr.constant(1)

OPERAND_NAMES = {1: ("input",), 2: ("lhs", "rhs")}
"""How messages and accessors name the operands of a unary and of a binary operator."""


def result_shape(operator: Operator, operands: Sequence[Shape], dim: int | None = None) -> Shape:
    """
    The shape of the result of `operator`, by its kind.

    Raises VerifyException naming the operand, the expected and the found shape.
    """
    return _RULES[operator.kind](operands, dim)


def _same(operands: Sequence[Shape], dim: int | None) -> Shape:
    return operands[0]


def _broadcast(operands: Sequence[Shape], dim: int | None) -> Shape:
    left, right = operands
    if len(left) != len(right):
        raise VerifyException(
            f"operand rhs: expected rank {len(left)} as of lhs {shape_text(left)}, "
            f"found {shape_text(right)}"
        )
    for d, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and ONE not in (a, b):
            raise VerifyException(
                f"operand rhs: expected size {a} or 1 in dim {d} to meet lhs {shape_text(left)}, "
                f"found {shape_text(right)}"
            )
    return tuple(b if a == ONE else a for a, b in zip(left, right, strict=True))


def _matmul(operands: Sequence[Shape], dim: int | None) -> Shape:
    left, right = operands
    if len(left) < 2:
        raise VerifyException(f"operand lhs: expected rank 2 or more, found {shape_text(left)}")
    if len(left) != len(right):
        raise VerifyException(
            f"operand rhs: expected rank {len(left)} as of lhs {shape_text(left)}, "
            f"found {shape_text(right)}"
        )
    for d in range(len(left) - 2):
        if left[d] != right[d]:
            raise VerifyException(
                f"operand rhs: expected size {left[d]} in batch dim {d} as of lhs "
                f"{shape_text(left)}, found {shape_text(right)}"
            )
    if left[-1] != right[-2]:
        raise VerifyException(
            f"operand rhs: expected size {left[-1]} in dim {len(right) - 2}, the contracted dim of "
            f"lhs {shape_text(left)}, found {shape_text(right)}"
        )
    return (*left[:-1], right[-1])


def _sum(operands: Sequence[Shape], dim: int | None) -> Shape:
    (shape,) = operands
    if dim is None or not 0 <= dim < len(shape):
        raise VerifyException(
            f"dim: expected one of operand input {shape_text(shape)}, found {dim}"
        )
    return (*shape[:dim], ONE, *shape[dim + 1 :])


_RULES: dict[Kind, Callable[[Sequence[Shape], int | None], Shape]] = {
    Kind.UNARY: _same,
    Kind.SCALAR: _same,
    Kind.COMPOSITE: _same,
    Kind.BINARY: _broadcast,
    Kind.MATMUL: _matmul,
    Kind.SUM: _sum,
}
