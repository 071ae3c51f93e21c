"""
The layout table (design, section 3): per axis, how a family of tiles relates to its erasure.

A layout of one axis is a small int, for the search builds millions of them: `shard(d)` is d, `REPL`
every index holds the whole, `PARTIAL` the indices sum up to the whole. `result_layout` gives the
layout of an operator's result, or None where the meeting is ill-typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prism.dialects.operators import Kind, Operator

REPL = -1
PARTIAL = -2

Ones = Sequence[Sequence[bool]]
"""Per operand and dim: whether the whole tensor has size 1 there."""


def layout_name(layout: int) -> str:
    """`shard(d)`, `repl` or `partial`."""
    return {REPL: "repl", PARTIAL: "partial"}.get(layout, f"shard({layout})")


def result_layout(
    operator: Operator, operands: Sequence[int], ones: Ones, dim: int | None = None
) -> int | None:
    """
    The layout of the result of `operator` on one axis, or None if it is ill-typed.

    `operands` holds a layout per operand, `ones` the size-1 dims of each; `dim` is the reduced dim
    of a reduction.
    """
    return _RULES[operator.kind](operator, operands, ones, dim)


def _unary(operator: Operator, operands: Sequence[int], ones: Ones, dim: int | None) -> int | None:
    """A function of each element: any shard or repl; a sum only through a linear function."""
    (layout,) = operands
    return layout if layout != PARTIAL or operator.linear else None


def _binary(operator: Operator, operands: Sequence[int], ones: Ones, dim: int | None) -> int | None:
    """
    Equal shards or repl; a repl operand of size 1 in the cut dim broadcasts; sums by linearity.
    """
    left, right = operands
    if PARTIAL in operands:
        if left == right:
            return PARTIAL if operator.additive else None
        other = right if left == PARTIAL else left
        if other != REPL:
            return None
        linear = operator.linear_left if left == PARTIAL else operator.linear_right
        return PARTIAL if linear else None
    if left == right:
        return left
    if left == REPL:
        return right if ones[0][right] else None
    if right == REPL:
        return left if ones[1][left] else None
    return None


def _matmul(operator: Operator, operands: Sequence[int], ones: Ones, dim: int | None) -> int | None:
    """
    `[.., m, k] x [.., k, n]`: rows, columns, batches, and the contracted dim, which leaves a sum
    owed.
    """
    rank = len(ones[0])
    rows, columns = rank - 2, rank - 1
    left, right = operands
    if PARTIAL in operands:
        return PARTIAL if REPL in operands else None
    if left == right:
        return left if left == REPL or left < rows else None
    if left == columns and right == rows:
        return PARTIAL
    if left == rows and right == REPL:
        return rows
    if left == REPL and right == columns:
        return columns
    if right == REPL and 0 <= left < rows:
        return left if ones[1][left] else None
    if left == REPL and 0 <= right < rows:
        return right if ones[0][right] else None
    return None


def _sum(operator: Operator, operands: Sequence[int], ones: Ones, dim: int | None) -> int | None:
    """Summing over a cut dim leaves a sum owed; every other layout passes."""
    (layout,) = operands
    return PARTIAL if layout == dim else layout


_RULES: dict[Kind, Callable[[Operator, Sequence[int], Ones, int | None], int | None]] = {
    Kind.UNARY: _unary,
    Kind.SCALAR: _unary,
    Kind.BINARY: _binary,
    Kind.MATMUL: _matmul,
    Kind.SUM: _sum,
}
