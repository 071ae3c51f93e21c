"""
Exact numbers: rationals, enclosures of 200 bits for exp, log, roots and their like, or undefined.

Two numbers are equal when both are rational and the same, or when their enclosures meet; they
differ when these do not. What an enclosure leaves open (a division by one that contains zero)
raises `UndecidedError`: it is no evidence for or against anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, TypeAlias, cast

import numpy as np
from mpmath import libmp
from numpy.typing import NDArray

BITS = 200
"""The precision of enclosures."""

_MAX_EXPONENT = 10_000
"""exp of more is not computed: it says nothing that smaller numbers do not say."""

_mp: Any = libmp
"""mpmath has no types; an enclosure is a pair of its raw floats."""

Enclosure: TypeAlias = tuple[Any, Any]


class UndecidedError(ArithmeticError):
    """An enclosure is too wide, or a number too large, to decide what was asked."""


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """
    A real number, or undefined (`value` None). numpy arrays of dtype object hold it: the operators
    and the methods `exp`, `log`, ... are what numpy's functions of these names call.
    """

    value: Fraction | Enclosure | None
    empty: bool = False
    """
    Whether it is the maximum of no numbers: neutral in maxima and undefined in all else.
    """

    @property
    def defined(self) -> bool:
        """Whether it is a number."""
        return self.value is not None

    def __add__(self, other: Exact | int) -> Exact:
        return _binary(self, _number(other), lambda a, b: a + b, _mp.mpi_add)

    def __radd__(self, other: int) -> Exact:
        return _number(other) + self

    def __sub__(self, other: Exact | int) -> Exact:
        return _binary(self, _number(other), lambda a, b: a - b, _mp.mpi_sub)

    def __rsub__(self, other: int) -> Exact:
        return _number(other) - self

    def __mul__(self, other: Exact | int) -> Exact:
        return _binary(self, _number(other), lambda a, b: a * b, _mp.mpi_mul)

    def __rmul__(self, other: int) -> Exact:
        return _number(other) * self

    def __truediv__(self, other: Exact | int) -> Exact:
        divisor = _number(other)
        if divisor.value is None:
            return UNDEFINED
        sign = divisor.sign()
        if sign == 0:
            return UNDEFINED
        return _binary(self, divisor, lambda a, b: a / b, _mp.mpi_div)

    def __rtruediv__(self, other: int) -> Exact:
        return _number(other) / self

    def __neg__(self) -> Exact:
        return _number(0) - self

    def sign(self) -> int:
        """-1, 0 or 1. Raises UndecidedError, and ValueError if undefined."""
        match self.value:
            case None:
                raise ValueError("an undefined number has no sign")
            case Fraction() as value:
                return (value > 0) - (value < 0)
            case (low, high):
                if _mp.mpf_sign(low) > 0:
                    return 1
                if _mp.mpf_sign(high) < 0:
                    return -1
                if low == high:
                    return 0
                raise UndecidedError("the sign of an enclosure of zero")

    def same(self, other: Exact) -> bool:
        """Whether two numbers are equal as far as their enclosures say, or both undefined."""
        if self.value is None or other.value is None:
            return self.value is other.value and self.empty == other.empty
        if isinstance(self.value, Fraction) and isinstance(other.value, Fraction):
            return self.value == other.value
        (a, b), (c, d) = _enclosure(self), _enclosure(other)
        return bool(_mp.mpf_le(a, d)) and bool(_mp.mpf_le(c, b))

    def maximum(self, other: Exact) -> Exact:
        """The larger of two."""
        if self.empty or other.empty:
            return other if self.empty else self
        if self.value is None or other.value is None:
            return UNDEFINED
        if isinstance(self.value, Fraction) and isinstance(other.value, Fraction):
            return self if self.value >= other.value else other
        (a, b), (c, d) = _enclosure(self), _enclosure(other)
        return Exact((a if _mp.mpf_ge(a, c) else c, b if _mp.mpf_ge(b, d) else d))

    def minimum(self, other: Exact) -> Exact:
        """The smaller of two."""
        return -(-self).maximum(-other)

    def exp(self) -> Exact:
        """e to this power. Raises UndecidedError if too large."""
        if self.value is None or self.value == 0:
            return UNDEFINED if self.value is None else ONE
        low, high = _enclosure(self)
        if _mp.mpf_gt(_mp.mpf_abs(low), _LIMIT) or _mp.mpf_gt(_mp.mpf_abs(high), _LIMIT):
            raise UndecidedError("the exponential of a large number")
        return Exact(_mp.mpi_exp((low, high), BITS))

    def log(self) -> Exact:
        """The natural logarithm, undefined but for positive numbers."""
        if self.value is None or self.sign() <= 0:
            return UNDEFINED
        return ZERO if self.value == 1 else Exact(_mp.mpi_log(_enclosure(self), BITS))

    def sqrt(self) -> Exact:
        """The root, undefined for negative numbers, rational for squares of rationals."""
        if self.value is None or self.sign() < 0:
            return UNDEFINED
        if isinstance(self.value, Fraction):
            above, below = isqrt(self.value.numerator), isqrt(self.value.denominator)
            root = Fraction(above, below)
            if root * root == self.value:
                return Exact(root)
        return Exact(_mp.mpi_sqrt(_enclosure(self), BITS))

    def sigmoid(self) -> Exact:
        """1 / (1 + exp(-x))."""
        return ONE / (ONE + (-self).exp())

    def tanh(self) -> Exact:
        """The hyperbolic tangent."""
        power = (self + self).exp()
        return (power - ONE) / (power + ONE)

    def gelu(self) -> Exact:
        """x * (1 + erf(x / sqrt(2))) / 2."""
        return self * (ONE + (self / exact(2).sqrt()).erf()) / exact(2)

    def gelu_tanh(self) -> Exact:
        """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2."""
        pi = Exact((_mp.mpf_pi(BITS, _mp.round_floor), _mp.mpf_pi(BITS, _mp.round_ceiling)))
        inner = self + exact(Fraction(44715, 1000000)) * self * self * self
        return self * (ONE + ((exact(2) / pi).sqrt() * inner).tanh()) / exact(2)

    def erf(self) -> Exact:
        """The error function, which increases; its last 20 bits are not relied on."""
        if self.value is None or self.value == 0:
            return UNDEFINED if self.value is None else ZERO
        low, high = _enclosure(self)
        bits = BITS - 20
        return Exact(
            (_mp.mpf_erf(low, bits, _mp.round_floor), _mp.mpf_erf(high, bits, _mp.round_ceiling))
        )

    def relu(self) -> Exact:
        """max(x, 0)."""
        return self.maximum(ZERO)

    def __float__(self) -> float:
        match self.value:
            case None:
                return float("nan")
            case Fraction() as value:
                return float(value)
            case enclosure:
                return float(_mp.to_float(_mp.mpi_mid(enclosure, BITS)))


UNDEFINED = Exact(None)

NOTHING = Exact(None, empty=True)

ZERO = Exact(Fraction(0))

ONE = Exact(Fraction(1))

_LIMIT: Any = _mp.from_int(_MAX_EXPONENT)

ExactArray: TypeAlias = NDArray[np.object_]
"""An array of `Exact`."""


def exact(value: Fraction | int) -> Exact:
    """A rational number."""
    return Exact(Fraction(value))


def numbers(array: ExactArray) -> list[Exact]:
    """The elements of an array in row-major order."""
    return cast(list[Exact], array.ravel().tolist())


def same(left: ExactArray, right: ExactArray) -> bool:
    """Whether two arrays have one shape and the same numbers, undefined at the same places."""
    return left.shape == right.shape and all(
        a.same(b) for a, b in zip(numbers(left), numbers(right), strict=True)
    )


def each(function: Callable[..., Exact], *arrays: ExactArray) -> ExactArray:
    """Applies a function to each element of arrays, which broadcast."""
    joined = np.broadcast_arrays(*arrays)
    result = np.empty(joined[0].shape, dtype=object)
    items = zip(*(numbers(array) for array in joined), strict=True)
    result.ravel()[:] = [function(*item) for item in items]
    return result


def _number(value: Exact | int | Fraction) -> Exact:
    return value if isinstance(value, Exact) else Exact(Fraction(value))


def _enclosure(number: Exact) -> Enclosure:
    value = number.value
    if isinstance(value, Fraction):
        above, below = value.numerator, value.denominator
        return (
            _mp.from_rational(above, below, BITS, _mp.round_floor),
            _mp.from_rational(above, below, BITS, _mp.round_ceiling),
        )
    if value is None:
        raise ValueError("an undefined number has no enclosure")
    return value


def _binary(
    left: Exact,
    right: Exact,
    rational: Callable[[Fraction, Fraction], Fraction],
    enclosed: Callable[[Enclosure, Enclosure, int], Enclosure],
) -> Exact:
    a, b = left.value, right.value
    if a is None or b is None:
        return UNDEFINED
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return Exact(rational(a, b))
    return Exact(enclosed(_enclosure(left), _enclosure(right), BITS))
