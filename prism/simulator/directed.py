"""
Directed rounding of float64, in exact rational arithmetic, lane by lane: slow, and rarely used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from prism.simulator.types import Array

_LARGEST = Fraction(np.finfo(np.float64).max)

EXACT: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "add": lambda v: v[0] + v[1],
    "sub": lambda v: v[0] - v[1],
    "mul": lambda v: v[0] * v[1],
    "div": lambda v: v[0] / v[1],
    "fma": lambda v: v[0] * v[1] + v[2],
    "rcp": lambda v: 1 / v[0],
}
"""Operations with rational results."""

_NEAREST: dict[str, Callable[[Sequence[Array]], Array]] = {
    "add": lambda v: v[0] + v[1],
    "sub": lambda v: v[0] - v[1],
    "mul": lambda v: v[0] * v[1],
    "div": lambda v: v[0] / v[1],
    "fma": lambda v: v[0] * v[1] + v[2],
    "rcp": lambda v: 1.0 / v[0],
    "sqrt": lambda v: np.sqrt(v[0]),
}
"""What gives the result where it is not finite, and the sign of an exact zero."""


def directed(name: str, mode: str) -> Callable[..., Array]:
    """The operation on float64 arrays with rounding rz, rm or rp."""

    def run(*values: Array) -> Array:
        arrays = np.broadcast_arrays(*values)
        result = np.array(_NEAREST[name](arrays))
        finite = np.logical_and.reduce([np.isfinite(array) for array in arrays])
        if name in ("div", "rcp"):
            finite &= arrays[-1] != 0
        if name == "sqrt":
            finite &= arrays[0] > 0
        for index in zip(*np.nonzero(finite), strict=True):
            exact = [Fraction(float(array[index])) for array in arrays]
            if name == "sqrt":
                result[index] = _root(exact[0], mode)
                continue
            value = EXACT[name](exact)
            if value:
                result[index] = _round(value, mode)
            elif name in ("add", "sub", "fma"):
                result[index] = _zero(name, [float(array[index]) for array in arrays], mode)
        return result

    return run


def _zero(name: str, values: list[float], mode: str) -> float:
    """A sum that is exactly zero: -0 if both terms are, or if it cancels and rounds down."""
    first = values[0] * values[1] if name == "fma" else values[0]
    last = -values[-1] if name == "sub" else values[-1]
    signs = math.copysign(1, first), math.copysign(1, last)
    if signs[0] == signs[1]:
        return math.copysign(0.0, signs[0])
    return -0.0 if mode == "rm" else 0.0


def _round(value: Fraction, mode: str) -> float:
    """A non-zero exact value to float64."""
    sign = 1.0 if value > 0 else -1.0
    down = mode == "rm" or (mode == "rz" and value > 0)
    if abs(value) > _LARGEST:
        inward = down == (value > 0)
        return math.copysign(float(_LARGEST) if inward else math.inf, sign)
    nearest = value.numerator / value.denominator
    found = Fraction(nearest)
    if found == value:
        return nearest
    if down:
        moved = nearest if found < value else math.nextafter(nearest, -math.inf)
    else:
        moved = nearest if found > value else math.nextafter(nearest, math.inf)
    # A result that vanishes keeps the sign of the value.
    return math.copysign(moved, sign)


def _root(value: Fraction, mode: str) -> float:
    nearest = math.sqrt(value)
    square = Fraction(nearest) ** 2
    if square == value:
        return nearest
    if mode == "rp":
        return nearest if square > value else math.nextafter(nearest, math.inf)
    return nearest if square < value else math.nextafter(nearest, 0.0)
