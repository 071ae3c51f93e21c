"""
Exact float arithmetic that numpy does not have: fused multiply-add, directed rounding, bfloat16.

A value on its way to a narrower type is a pair (sum, error) of float64 whose exact sum is the real
result; rounding that pair once gives what the hardware gives.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from prism.simulator.types import Array

F16_TO_F32: Array = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""All float16 values by their bits; a look-up is twice as fast as numpy's conversion."""

_MANTISSA = {"f16": 10, "bf16": 7, "tf32": 10, "f32": 23}
_MIN_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "tf32": 2.0**-126, "f32": 2.0**-126}


def f16_to_f32(bits: Array) -> Array:
    """Float16 bits (uint16) to float32, exactly."""
    return F16_TO_F32.take(bits)


def bf16_to_f32(bits: Array) -> Array:
    """Bfloat16 bits (uint16) to float32, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(value: Array) -> Array:
    """Float32 to bfloat16 bits, to nearest even; every NaN becomes 0x7fff (PTX canonical NaN)."""
    bits = value.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16
    return np.where(np.isnan(value), np.uint32(0x7FFF), rounded).astype(np.uint16)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The float64 sum of a and b and its exact error (Knuth)."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The float64 product of a and b and its exact error (Dekker), barring over- and underflow."""
    product = a * b

    def split(x: Array) -> tuple[Array, Array]:
        scaled = x * 134217729.0
        high = scaled - (scaled - x)
        return high, x - high

    a_high, a_low = split(a)
    b_high, b_low = split(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def to_odd(total: Array, error: Array) -> Array:
    """
    Rounds the exact sum of a pair to odd in float64 (Boldo and Melquiond 2008).

    A later rounding to at most 51 bits of mantissa is then correct for the exact sum. Overflowed or
    NaN sums stay as they are.
    """
    error = np.where(np.isfinite(total), error, 0.0)
    bits = total.view(np.int64)
    even = ((bits & 1) == 0) & (error != 0)
    # Away from zero in magnitude is +1 in the bit pattern whatever the sign.
    away = (error > 0) == (total > 0)
    return np.where(even, bits + np.where(away, 1, -1), bits).view(np.float64)


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """Fused multiply-add of float32 arrays, correctly rounded."""
    # The product of two 24-bit mantissas is exact in float64; the sum may be rounded there.
    product = np.multiply(a, b, dtype=np.float64)
    total = product + c
    # Rounding twice is wrong only if the first rounding lands on a midpoint of float32.
    suspicious = (total.view(np.uint64) & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)
    magnitude = np.abs(total)
    suspicious |= (magnitude < 2.0**-125) & (magnitude > 0)
    if suspicious.any():
        total = to_odd(*two_sum(product, np.broadcast_to(c, product.shape).astype(np.float64)))
    return total.astype(np.float32)


def fma_half(a: Array, b: Array, c: Array) -> Array:
    """Multiply-add of float32 arrays that hold 16-bit floats, rounded to odd in float64."""
    product = np.multiply(a, b, dtype=np.float64)
    return to_odd(*two_sum(product, np.broadcast_to(c, product.shape).astype(np.float64)))


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Fused multiply-add of float64 arrays, correctly rounded (Boldo and Melquiond 2008)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    upper, lower = two_product(a, b)
    third, fourth = two_sum(c, lower)
    high, low = two_sum(upper, third)
    result = high + to_odd(*two_sum(fourth, low))
    sizes = np.abs(np.stack([a, b, c, upper]))
    extreme = ((sizes > 2.0**970) | ((sizes < 2.0**-900) & (sizes > 0))).any(axis=0)
    if extreme.any():
        # Splitting over- or underflows there: take the rare lanes one by one.
        result = np.where(np.isfinite(sizes).all(axis=0), result, a * b + c)
        flat = result.copy()
        for index in zip(*np.nonzero(extreme & np.isfinite([a, b, c]).all(axis=0)), strict=True):
            exact = Fraction(float(a[index])) * Fraction(float(b[index])) + Fraction(
                float(c[index])
            )
            flat[index] = (
                _fraction_to_f64(exact) if exact else float(a[index] * b[index] + c[index])
            )
        return flat
    return np.where(np.isfinite(upper) & np.isfinite(c), result, a * b + c)


def _fraction_to_f64(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def round_to(total: Array, error: Array | None, name: str, mode: str) -> Array:
    """
    Rounds the exact value total + error to a narrower type.

    `name` is f16, bf16, tf32 or f32; the result is float32 holding a value of that type, or float16
    for f16. `mode` is rn (nearest even), rna (nearest, ties away), rz, rm (down) or rp (up).
    """
    mantissa, least = _MANTISSA[name], _MIN_NORMAL[name]
    total = total.astype(np.float64)
    pair = to_odd(total, error) if error is not None else total
    if mode == "rn" and name == "f32":
        return pair.astype(np.float32)
    if mode == "rn" and name == "f16":
        return pair.astype(np.float16)
    # Quantize by the unit in the last place of the target at each value; exact in float64.
    _, exponent = np.frexp(pair)
    unit = np.maximum(np.ldexp(1.0, exponent - 1 - mantissa), least * 2.0**-mantissa)
    scaled = pair / unit
    rounded = ROUND_INTEGER[mode](scaled) * unit
    largest = {"f16": 65504.0, "bf16": (2 - 2.0**-7) * 2.0**127}.get(
        name, (2 - 2.0**-mantissa) * 2.0**127
    )
    over = np.abs(rounded) > largest
    toward_zero = (mode == "rz") | ((mode == "rm") & (pair > 0)) | ((mode == "rp") & (pair < 0))
    limit = np.where(toward_zero, largest, np.inf)
    rounded = np.where(over, np.copysign(limit, pair), np.copysign(rounded, pair))
    rounded = np.where(np.isfinite(pair), rounded, pair)
    return rounded.astype(np.float16 if name == "f16" else np.float32)


def _nearest_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


ROUND_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint,
    "rna": _nearest_away,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
}
"""Rounding to an integral value, by the modifier's name without its `i`."""


def flush(value: Array) -> Array:
    """Subnormal float32 values become zeros of their sign (.ftz)."""
    small = np.abs(value) < np.float32(2.0**-126)
    return np.where(small, np.copysign(np.float32(0), value), value) if small.any() else value


def saturate(value: Array) -> Array:
    """Clamps to [0, 1]; NaN gives 0 (.sat)."""
    return np.clip(np.where(np.isnan(value), 0, value), 0, 1).astype(value.dtype)


def float_to_int(value: Array, dtype: np.dtype[Any], mode: str, nan: int) -> Array:
    """
    Rounds float64 values to integers of `dtype`, clamping to its range.

    `nan` is what NaN gives: 0, or the top bit alone for 64-bit types (PTX ISA 9.7.9.21, cvt).
    """
    info = np.iinfo(dtype)
    rounded = ROUND_INTEGER[mode](value)
    # 2**63 and 2**64 are exact in float64 and their predecessors are in range.
    high = float(info.max) + (1.0 if info.bits < 64 else 0.0)
    over, under = rounded >= high, rounded < float(info.min)
    inside = np.where(over | under | np.isnan(rounded), 0.0, rounded).astype(dtype)
    inside = np.where(over, dtype.type(info.max), np.where(under, dtype.type(info.min), inside))
    return np.where(np.isnan(value), np.array(nan, np.uint64).astype(dtype), inside)
