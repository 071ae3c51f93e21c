"""
The layout table (design, section 3): per axis, how a family of tiles relates to its erasure.

A layout of one axis is a small int, for the search builds millions of them; see the constants and
`layout_name`. `result_layout` gives the layout of an operator's result, or None where the meeting
is ill-typed.

For the stable softmax, M is the maximum of a family m whose layout is `PARTIAL_MAX`, and index k
has only seen m_k: `shift(d)` is `shard(d)` of the erasure plus (M - m_k), `scaled(d)` is that times
exp(M - m_k), `PARTIAL_EXP` are tiles of which the sum of t_k exp(m_k - M) is the whole. The layouts
do not say by which maximum: that two operands and an accum mean the same one is for the caller to
see to (`threadblock.check_scopes` does).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prism.dialects.operators import Attributes, Kind, Operator
from prism.dialects.shapes import Shape, as_attributes, kept_dims

REPL = -1
"""Every index holds the whole."""

PARTIAL = -2
"""The indices sum up to the whole."""

PARTIAL_MAX = -4
"""The maximum of the indices is the whole."""

PARTIAL_EXP = -5
"""The indices, each times exp(m_k - M), sum up to the whole."""

_SHIFT = -16
_SCALED = -48
_MAX_RANK = 32

Ones = Sequence[Sequence[bool]]
"""Per operand and dim: whether the whole tensor has size 1 there."""


def shift(dim: int) -> int:
    """`shard(dim)` of the erasure plus (M - m_k)."""
    return _SHIFT - dim


def scaled(dim: int) -> int:
    """`shard(dim)` of the erasure times exp(M - m_k)."""
    return _SCALED - dim


def is_shift(layout: int) -> bool:
    """Whether a layout is `shift(d)`."""
    return _SHIFT - _MAX_RANK < layout <= _SHIFT


def is_scaled(layout: int) -> bool:
    """Whether a layout is `scaled(d)`."""
    return _SCALED - _MAX_RANK < layout <= _SCALED


def cut_dim(layout: int) -> int | None:
    """The dim that an axis of this layout cuts: of shard, shift and scaled, else None."""
    if layout >= 0:
        return layout
    if is_shift(layout):
        return _SHIFT - layout
    return _SCALED - layout if is_scaled(layout) else None


def layout_name(layout: int) -> str:
    """`shard(d)`, `repl`, `partial`, `partial_max`, `shift(d)`, `scaled(d)`, `partial_exp`."""
    names = {
        REPL: "repl",
        PARTIAL: "partial",
        PARTIAL_MAX: "partial_max",
        PARTIAL_EXP: "partial_exp",
    }
    if layout in names:
        return names[layout]
    kind = "shard" if layout >= 0 else "shift" if is_shift(layout) else "scaled"
    return f"{kind}({cut_dim(layout)})"


def result_layout(
    operator: Operator,
    operands: Sequence[int],
    ones: Ones,
    attributes: Attributes | int | None = None,
    shapes: Sequence[Shape] | None = None,
) -> int | None:
    """
    The layout of the result of `operator` on one axis, or None if it is ill-typed.

    `operands` holds a layout per operand, `ones` the size-1 dims of each; a number for `attributes`
    is the `dim`. Only a reshape of a cut dim needs the whole `shapes` of the operands.
    """
    if operator.kind is Kind.RESHAPE:
        return _reshape(operands[0], as_attributes(attributes), shapes)
    rule = _RULES.get(operator.kind)
    return None if rule is None else rule(operator, operands, ones, as_attributes(attributes))


def _passes_owed(operator: Operator, layout: int) -> bool:
    """Whether a sum or maximum that is owed may be taken after the operator instead of before."""
    if layout == PARTIAL:
        return operator.linear
    return layout == PARTIAL_MAX and operator.monotone


def _unary(
    operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes
) -> int | None:
    """
    A function of each element: any shard or repl; a sum only through a linear function, a maximum
    only through an increasing one.
    """
    (layout,) = operands
    if layout >= 0 or layout == REPL or _passes_owed(operator, layout):
        return layout
    dim = cut_dim(layout)
    if operator.name == "exp" and dim is not None and is_shift(layout):
        return scaled(dim)
    factor = layout == PARTIAL_EXP or is_scaled(layout)
    return layout if factor and operator.linear else None


def _binary(
    operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes
) -> int | None:
    """
    Equal shards or repl; a repl operand of size 1 in the cut dim broadcasts; what is owed passes by
    linearity and monotonicity.
    """
    left, right = operands
    if min(left, right) < REPL:
        return _binary_owed(operator, left, right, ones)
    if left == right:
        return left
    if left == REPL:
        return right if ones[0][right] else None
    if right == REPL:
        return left if ones[1][left] else None
    return None


def _binary_owed(operator: Operator, left: int, right: int, ones: Ones) -> int | None:
    """A meeting in which an operand is neither shard nor repl."""
    if operator.name == "sub" and left >= 0 and right == PARTIAL_MAX:
        return shift(left) if ones[1][left] else None
    if left == right:
        additive = left == PARTIAL or left == PARTIAL_EXP or is_scaled(left)
        if additive and operator.additive:
            return left
        return left if left == PARTIAL_MAX and operator.name == "maximum" else None
    owed, other, place = (left, right, 1) if left < REPL else (right, left, 0)
    if owed == PARTIAL_MAX:
        monotone = operator.monotone if place == 1 else operator.monotone_right
        return owed if monotone and other == REPL else None
    if not (operator.linear_left if place == 1 else operator.linear_right):
        return None
    dim = cut_dim(owed)
    if dim is None:
        return owed if other == REPL else None
    if is_shift(owed):
        return None
    return owed if other == dim or (other == REPL and ones[place][dim]) else None


def _matmul(
    operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes
) -> int | None:
    """
    `[.., m, k] x [.., k, n]`: rows, columns, batches, and the contracted dim, which leaves a sum
    owed; of scaled tiles a rescaled sum, for m has size 1 in the contracted dim.
    """
    rank = len(ones[0])
    rows, columns = rank - 2, rank - 1
    left, right = operands
    if PARTIAL in operands:
        return PARTIAL if REPL in operands else None
    if min(left, right) < REPL:
        contracted = (left == scaled(columns) and right == rows) or (
            left == columns and right == scaled(rows)
        )
        return PARTIAL_EXP if contracted else None
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


def _sum(operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes) -> int | None:
    """
    Summing over a cut dim leaves a sum owed; every other shard, repl and partial passes.

    Of scaled tiles only the cut dim can be summed: m, which has size 1 there, may vary in others.
    """
    (layout,) = operands
    if layout == given.dim:
        return PARTIAL
    if layout >= PARTIAL:
        return layout
    return PARTIAL_EXP if given.dim is not None and layout == scaled(given.dim) else None


def _max(operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes) -> int | None:
    """The maximum over a cut dim leaves a maximum owed; every other shard, repl passes."""
    (layout,) = operands
    if layout == given.dim:
        return PARTIAL_MAX
    return layout if layout >= REPL or layout == PARTIAL_MAX else None


def _transpose(
    operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes
) -> int | None:
    """A cut dim is where the permutation puts it."""
    (layout,) = operands
    if layout < 0:
        return layout if layout == REPL or _passes_owed(operator, layout) else None
    return None if given.permutation is None else given.permutation.index(layout)


def _slice(
    operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes
) -> int | None:
    """A cut in another dim passes: an index does not hold its part of a slice of the cut dim."""
    (layout,) = operands
    if layout < 0:
        return layout if layout == REPL or _passes_owed(operator, layout) else None
    return None if layout == given.dim else layout


def _concat(
    operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes
) -> int | None:
    """
    Operands of one layout, unless it cuts the dim along which they are joined; a whole operand is
    the maximum of its indices too.
    """
    first = min(operands)
    if any(layout != first and (first, layout) != (PARTIAL_MAX, REPL) for layout in operands):
        return None
    return _slice(operator, [first], ones, given)


def _broadcast(
    operator: Operator, operands: Sequence[int], ones: Ones, given: Attributes
) -> int | None:
    """A cut dim has not size 1, so it is kept."""
    (layout,) = operands
    passes = layout >= REPL or _passes_owed(operator, layout)
    return layout if passes else None


def _reshape(layout: int, given: Attributes, shapes: Sequence[Shape] | None) -> int | None:
    """A dim that is carried over one to one may be cut: part k of it is part k of the result's."""
    if layout in (REPL, PARTIAL, PARTIAL_MAX):
        return layout
    if layout < 0 or given.shape is None or shapes is None:
        return None
    return kept_dims(shapes[0], given.shape).get(layout)


_RULES: dict[Kind, Callable[[Operator, Sequence[int], Ones, Attributes], int | None]] = {
    Kind.UNARY: _unary,
    Kind.SCALAR: _unary,
    Kind.BINARY: _binary,
    Kind.MATMUL: _matmul,
    Kind.SUM: _sum,
    Kind.MAX: _max,
    Kind.TRANSPOSE: _transpose,
    Kind.SLICE: _slice,
    Kind.CONCAT: _concat,
    Kind.BROADCAST: _broadcast,
}
