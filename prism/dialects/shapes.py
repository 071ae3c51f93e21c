"""Shape rules of the operator table, shared by the `kernel` and `threadblock` verifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.utils.exceptions import VerifyException

from prism.dialects.operators import Attributes, Kind, Operator
from prism.dialects.sym import shape_text
from prism.dialects.sym_expr import ONE as ONE_POLYNOMIAL
from prism.dialects.sym_expr import SymExpr

T = TypeVar("T")

Shape = tuple[SymExpr, ...]

ONE = SymExpr.constant(1)

NO_ATTRIBUTES = Attributes()


def as_attributes(attributes: Attributes | int | None) -> Attributes:
    """Attributes, where a number is a `dim` and None is none."""
    if attributes is None:
        return NO_ATTRIBUTES
    return Attributes(dim=attributes) if isinstance(attributes, int) else attributes


def result_shape(
    operator: Operator, operands: Sequence[Shape], attributes: Attributes | int | None = None
) -> Shape:
    """
    The shape of the result of `operator`, by its kind; a number for `attributes` is the `dim`.

    Raises VerifyException naming the operand or attribute, the expected and the found value.
    """
    given = as_attributes(attributes)
    if given.dim is not None:
        rank = len(operands[0])
        if not 0 <= given.dim < rank:
            raise VerifyException(
                f"dim: expected one of operand {operator.operand_name(0)} "
                f"{shape_text(operands[0])}, found {given.dim}"
            )
    return _RULES[operator.kind](operator, operands, given)


def is_nonnegative(expression: SymExpr) -> bool:
    """
    Whether an expression is at least 0 for all positive integer sizes, as far as its signs show:
    those of its coefficients, or for a polynomial those after each size is written as 1 + s.
    """
    if _has_no_minus(expression):
        return True
    polynomial = expression.denominator == ONE_POLYNOMIAL and all(
        exponent > 0 for monomial, _ in expression.numerator for _, exponent in monomial
    )
    if not polynomial:
        return False
    return _has_no_minus(
        expression.substitute({name: SymExpr.symbol(name) + 1 for name in expression.symbols()})
    )


def _has_no_minus(expression: SymExpr) -> bool:
    return all(c > 0 for _, c in (*expression.numerator, *expression.denominator))


def kept_dims(source: Shape, target: Shape) -> dict[int, int]:
    """
    The dims that a row-major reshape carries over one to one: those of one size with equally many
    elements before them.
    """
    before: dict[SymExpr, int] = {}
    product = ONE
    for dim, size in enumerate(target):
        if size != ONE:
            before[product] = dim
        product *= size
    kept: dict[int, int] = {}
    product = ONE
    for dim, size in enumerate(source):
        if size != ONE and product in before and target[before[product]] == size:
            kept[dim] = before[product]
        product *= size
    return kept


def _same(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    return operands[0]


def _composite(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    """The first operand's shape; further operands broadcast into it."""
    for index, shape in enumerate(operands[1:], start=1):
        _meet(operator, operands[0], index, shape)
        for d, (size, expected) in enumerate(zip(shape, operands[0], strict=True)):
            if size not in (expected, ONE):
                raise VerifyException(
                    f"operand {operator.operand_name(index)}: expected size {expected} or 1 in "
                    f"dim {d}, found {shape_text(shape)}"
                )
    return operands[0]


def _meet(operator: Operator, left: Shape, index: int, right: Shape) -> None:
    """Checks that an operand has the rank of the first one."""
    if len(left) != len(right):
        raise VerifyException(
            f"operand {operator.operand_name(index)}: expected rank {len(left)} as of "
            f"{operator.operand_name(0)} {shape_text(left)}, found {shape_text(right)}"
        )


def _broadcast_binary(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    left, right = operands
    _meet(operator, left, 1, right)
    for d, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and ONE not in (a, b):
            raise VerifyException(
                f"operand rhs: expected size {a} or 1 in dim {d} to meet lhs {shape_text(left)}, "
                f"found {shape_text(right)}"
            )
    return tuple(b if a == ONE else a for a, b in zip(left, right, strict=True))


def _matmul(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    left, right = operands
    if len(left) < 2:
        raise VerifyException(f"operand lhs: expected rank 2 or more, found {shape_text(left)}")
    _meet(operator, left, 1, right)
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


def required(value: T | None, name: str) -> T:
    """An attribute that an operator takes. Raises VerifyException if it is not given."""
    if value is None:
        raise VerifyException(f"{name}: expected a value, found none")
    return value


def _with_dim(shape: Shape, dim: int, size: SymExpr) -> Shape:
    return (*shape[:dim], size, *shape[dim + 1 :])


def _reduce(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    (shape,) = operands
    dim = given.dim
    if dim is None:
        raise VerifyException(
            f"dim: expected one of operand input {shape_text(shape)}, found {dim}"
        )
    return _with_dim(shape, dim, ONE)


def _transpose(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    (shape,) = operands
    permutation = required(given.permutation, "perm")
    if sorted(permutation) != list(range(len(shape))):
        raise VerifyException(
            f"perm: expected each of the dims 0 to {len(shape) - 1} once, found {list(permutation)}"
        )
    return tuple(shape[dim] for dim in permutation)


def _slice(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    (shape,) = operands
    dim = required(given.dim, "dim")
    begin, end = required(given.bounds, "bounds")
    if not (
        is_nonnegative(begin)
        and is_nonnegative(end - begin)
        and begin != end
        and is_nonnegative(shape[dim] - end)
    ):
        raise VerifyException(
            f"bounds: expected a part of the {shape[dim]} elements of dim {dim} for all sizes, "
            f"found from {begin} to {end}"
        )
    return _with_dim(shape, dim, end - begin)


def _concat(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    first = operands[0]
    dim = required(given.dim, "dim")
    total = first[dim]
    for index, shape in enumerate(operands[1:], start=1):
        _meet(operator, first, index, shape)
        if _with_dim(shape, dim, ONE) != _with_dim(first, dim, ONE):
            raise VerifyException(
                f"operand {operator.operand_name(index)}: expected the sizes of "
                f"{operator.operand_name(0)} {shape_text(first)} but in dim {dim}, "
                f"found {shape_text(shape)}"
            )
        total += shape[dim]
    return _with_dim(first, dim, total)


def _broadcast(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    (shape,) = operands
    target = required(given.shape, "shape")
    fits = len(shape) == len(target) and all(
        size in (to, ONE) for size, to in zip(shape, target, strict=True)
    )
    if not fits:
        raise VerifyException(
            f"shape: expected the sizes of operand input {shape_text(shape)} where they are not 1, "
            f"found {shape_text(target)}"
        )
    return target


def _reshape(operator: Operator, operands: Sequence[Shape], given: Attributes) -> Shape:
    (shape,) = operands
    target = required(given.shape, "shape")
    elements = [ONE, ONE]
    for i, sizes in enumerate((shape, target)):
        for size in sizes:
            elements[i] *= size
    if elements[0] != elements[1]:
        raise VerifyException(
            f"shape: expected {elements[0]} elements as operand input {shape_text(shape)} has, "
            f"found {shape_text(target)}"
        )
    return target


_RULES: dict[Kind, Callable[[Operator, Sequence[Shape], Attributes], Shape]] = {
    Kind.UNARY: _same,
    Kind.SCALAR: _same,
    Kind.COMPOSITE: _composite,
    Kind.BINARY: _broadcast_binary,
    Kind.MATMUL: _matmul,
    Kind.SUM: _reduce,
    Kind.MAX: _reduce,
    Kind.TRANSPOSE: _transpose,
    Kind.SLICE: _slice,
    Kind.CONCAT: _concat,
    Kind.BROADCAST: _broadcast,
    Kind.RESHAPE: _reshape,
}
