"""Integer and bit instructions (PTX ISA 9.7.1, 9.7.2, 9.7.8)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prism.simulator.instructions.table import (
    Form,
    Opcode,
    Raw,
    Variant,
    names,
    regular,
    ternary,
    unary,
)
from prism.simulator.types import STORAGE, TYPES, Array, ScalarType

INTS = names("s16 u16 s32 u32 s64 u64")
BITS = names("b16 b32 b64")

_U32 = TYPES["u32"]


def typed(function: Raw) -> Callable[[Form], Raw]:
    """A raw operation from one on arrays of the form's own (signed or unsigned) type."""

    def implement(form: Form) -> Raw:
        dtype, storage = form.type.dtype, STORAGE[form.type.bits]
        if dtype == storage:
            return function
        return lambda *args: function(*[a.view(dtype) for a in args]).view(storage)

    return implement


def bitwise(function: Raw) -> Callable[[Form], Raw]:
    """A raw operation that is the same for signed and unsigned."""
    return lambda form: function


def _add(form: Form) -> Raw:
    return _saturated(np.add) if "sat" in form.flags else np.add


def _sub(form: Form) -> Raw:
    return _saturated(np.subtract) if "sat" in form.flags else np.subtract


def _saturated(function: Raw) -> Raw:
    def clamp(a: Array, b: Array) -> Array:
        wide = function(a.view(np.int32).astype(np.int64), b.view(np.int32).astype(np.int64))
        return np.clip(wide, -(1 << 31), (1 << 31) - 1).astype(np.int32).view(np.uint32)

    return clamp


def _wide_type(form: Form) -> ScalarType:
    if "wide" not in form.flags:
        return form.type
    return TYPES[f"{form.type.kind}{2 * form.type.bits}"]


def multiply(form: Form) -> Raw:
    """`mul` of one of the parts lo, hi, wide."""
    if "lo" in form.flags:
        return np.multiply
    if form.type.bits == 64:
        return multiply_high_64(signed=form.type.kind == "s")
    narrow, double = form.type.dtype, TYPES[f"{form.type.kind}{2 * form.type.bits}"].dtype
    storage, double_storage = STORAGE[form.type.bits], STORAGE[2 * form.type.bits]

    def wide(a: Array, b: Array) -> Array:
        return np.multiply(a.view(narrow), b.view(narrow), dtype=double).view(double_storage)

    def high(a: Array, b: Array) -> Array:
        return (wide(a, b) >> double_storage.type(form.type.bits)).astype(storage)

    return wide if "wide" in form.flags else high


def multiply_high_64(*, signed: bool) -> Raw:
    """The upper 64 bits of a 64-bit product, by four 32-bit products."""
    half, low_mask = np.uint64(32), np.uint64(0xFFFFFFFF)

    def unsigned(a: Array, b: Array) -> Array:
        a0, a1, b0, b1 = a & low_mask, a >> half, b & low_mask, b >> half
        middle = (a0 * b0 >> half) + (a0 * b1 & low_mask) + (a1 * b0 & low_mask)
        return a1 * b1 + (a0 * b1 >> half) + (a1 * b0 >> half) + (middle >> half)

    def high(a: Array, b: Array) -> Array:
        zero = np.uint64(0)
        result = unsigned(a, b)
        if signed:
            result = result - np.where(a.view(np.int64) < 0, b, zero)
            result = result - np.where(b.view(np.int64) < 0, a, zero)
        return result

    return high


def _multiply_add(form: Form) -> Raw:
    product = multiply(form)
    if "sat" in form.flags:
        clamped = _saturated(np.add)
        return ternary(lambda a, b, c: clamped(product(a, b), c))
    return ternary(lambda a, b, c: product(a, b) + c)


def _mad_sources(form: Form) -> tuple[ScalarType, ...]:
    return form.type, form.type, _wide_type(form)


def _mul24(form: Form) -> Raw:
    dtype = form.type.dtype

    def product(a: Array, b: Array) -> Array:
        eight = np.uint32(8)
        x, y = ((v << eight).view(dtype) >> eight.astype(dtype) for v in (a, b))
        wide = x.astype(np.int64) * y.astype(np.int64)
        return (wide if "lo" in form.flags else wide >> 16).astype(np.uint32)

    return product


def _divide(form: Form) -> Raw:
    """Truncating division; x / 0 is all ones, as the hardware gives (undefined in the ISA)."""
    return _signed_division(form) if form.type.kind == "s" else _unsigned_divide


def _unsigned_divide(a: Array, b: Array) -> Array:
    zero = b == 0
    return np.where(zero, ~b, a // np.where(zero, b.dtype.type(1), b))


def _unsigned_remainder(a: Array, b: Array) -> Array:
    zero = b == 0
    return np.where(zero, a, a % np.where(zero, b.dtype.type(1), b))


def _magnitude(a: Array, negative: Array) -> Array:
    return np.where(negative, ~a + a.dtype.type(1), a)


def _signed_division(form: Form) -> Raw:
    dtype = form.type.dtype

    def divide(a: Array, b: Array) -> Array:
        a_negative, b_negative = a.view(dtype) < 0, b.view(dtype) < 0
        quotient = _unsigned_divide(_magnitude(a, a_negative), _magnitude(b, b_negative))
        return np.where(b == 0, ~(a ^ a), _magnitude(quotient, a_negative ^ b_negative))

    return divide


def _remainder(form: Form) -> Raw:
    """Remainder of the truncating division, of the sign of the dividend; x % 0 is x."""
    if form.type.kind == "u":
        return _unsigned_remainder
    dtype = form.type.dtype

    def remainder(a: Array, b: Array) -> Array:
        negative = a.view(dtype) < 0
        rest = _unsigned_remainder(_magnitude(a, negative), _magnitude(b, b.view(dtype) < 0))
        return _magnitude(rest, negative)

    return remainder


def _shift_left(form: Form) -> Raw:
    bits, storage = form.type.bits, STORAGE[form.type.bits]

    def shift(a: Array, by: Array) -> Array:
        if by.size == 1:
            amount = int(by[0, 0])
            return a << storage.type(amount) if amount < bits else np.zeros_like(a)
        small = by < bits
        return np.where(small, a << np.where(small, by, 0).astype(storage), storage.type(0))

    return shift


def _shift_right(form: Form) -> Raw:
    """Amounts of the width and more give 0, or all sign bits."""
    bits, storage = form.type.bits, STORAGE[form.type.bits]
    dtype = form.type.dtype

    def shift(a: Array, by: Array) -> Array:
        amount = np.minimum(by, np.uint32(bits)).astype(dtype)
        if form.type.kind == "s":
            return (a.view(dtype) >> np.minimum(amount, dtype.type(bits - 1))).view(storage)
        small = amount < bits
        return np.where(small, a >> np.where(small, amount, dtype.type(0)), storage.type(0))

    def shift_uniform(a: Array, by: Array) -> Array:
        amount = int(by[0, 0]) if by.size == 1 else -1
        if 0 <= amount < bits:
            return (a.view(dtype) >> dtype.type(amount)).view(storage)
        return shift(a, by)

    return shift_uniform


def _shift_sources(form: Form) -> tuple[ScalarType, ...]:
    return form.type, _U32


def _count_result(form: Form) -> ScalarType:
    return _U32


def _popc(form: Form) -> Raw:
    return unary(lambda a: np.bitwise_count(a).astype(np.uint32))


def bit_length(a: Array) -> Array:
    """How many bits the unsigned values need, as uint32; 0 for 0."""
    high = (a >> a.dtype.type(16)).astype(np.uint64)
    # frexp of an integer below 2**53 gives its bit length exactly; 64 bits go in two parts.
    upper = np.frexp((high >> np.uint64(16)).astype(np.float64))[1]
    lower = np.frexp((a.astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.float64))[1]
    return np.where(upper > 0, upper + 32, lower).astype(np.uint32)


def _clz(form: Form) -> Raw:
    bits = np.uint32(form.type.bits)
    return unary(lambda a: bits - bit_length(a))


def _bfind(form: Form) -> Raw:
    dtype, bits = form.type.dtype, np.uint32(form.type.bits)

    def find(a: Array) -> Array:
        positive = np.where(a.view(dtype) < 0, ~a, a)
        length = bit_length(positive)
        place = bits - length if "shiftamt" in form.flags else length - np.uint32(1)
        return np.where(length == 0, np.uint32(0xFFFFFFFF), place)

    return find


def _brev(form: Form) -> Raw:
    bits, storage = form.type.bits, STORAGE[form.type.bits]

    def reverse(a: Array) -> Array:
        width = bits // 2
        while width:
            # Swap neighbouring fields of `width` bits.
            low = sum(((1 << width) - 1) << at for at in range(0, bits, 2 * width))
            shift = storage.type(width)
            a = ((a >> shift) & storage.type(low)) | ((a & storage.type(low)) << shift)
            width //= 2
        return a

    return reverse


def _low_ones(count: Array, bits: int) -> Array:
    """Masks of the `count` low bits, 0 to all of them."""
    one = np.ones_like(count)
    return np.where(count >= bits, ~np.zeros_like(count), (one << (count % bits)) - one)


def _extract(form: Form) -> Raw:
    """`bfe`: a field, zero- or sign-extended; beyond the top it repeats the top (sign) bit."""
    bits, dtype, storage = form.type.bits, form.type.dtype, STORAGE[form.type.bits]

    def extract(a: Array, start: Array, length: Array) -> Array:
        low = start & np.uint32(0xFF)
        count = length & np.uint32(0xFF)
        inside = np.minimum(low, np.uint32(bits - 1)).astype(storage)
        if form.type.kind == "u":
            field = np.where(low < bits, a >> inside, storage.type(0))
            keep = np.minimum(count, np.uint32(bits)).astype(storage)
            mask = _low_ones(keep, bits)
            return field & mask
        # Shift the field to the top (its sign bit becomes the top bit) and back down.
        field = (a.view(dtype) >> inside.astype(dtype)).view(storage)
        up = (bits - np.minimum(np.maximum(count, np.uint32(1)), np.uint32(bits))).astype(storage)
        result = ((field << up).view(dtype) >> up.astype(dtype)).view(storage)
        return np.where(count == 0, storage.type(0), result)

    return extract


def _field_sources(form: Form) -> tuple[ScalarType, ...]:
    return form.type, _U32, _U32


def _insert(form: Form) -> Raw:
    """`bfi d, a, b, start, length`: the low bits of a go into a field of b."""
    bits, storage = form.type.bits, STORAGE[form.type.bits]

    def insert(a: Array, b: Array, start: Array, length: Array) -> Array:
        low, count = start & np.uint32(0xFF), length & np.uint32(0xFF)
        shift = np.minimum(low, np.uint32(bits - 1)).astype(storage)
        keep = np.minimum(count, np.uint32(bits)).astype(storage)
        mask = np.where(low < bits, _low_ones(keep, bits) << shift, storage.type(0))
        return ((a << shift) & mask) | (b & ~mask)

    return insert


def _insert_sources(form: Form) -> tuple[ScalarType, ...]:
    return form.type, form.type, _U32, _U32


def _absolute_difference(form: Form) -> Raw:
    dtype = form.type.dtype

    def difference(a: Array, b: Array, c: Array) -> Array:
        return c + np.where(a.view(dtype) < b.view(dtype), b - a, a - b)

    return difference


def _negate(form: Form) -> Raw:
    return unary(lambda a: ~a + a.dtype.type(1))


def _cnot(a: Array) -> Array:
    return (a == 0).astype(a.dtype)


def _logic(name: str, function: Raw) -> Opcode:
    arity = 1 if name == "not" else 2
    return regular(name, "alu", Variant(names("pred b16 b32 b64"), arity, bitwise(function)))


_PARTS = names("lo hi wide")

INTEGER: dict[str, tuple[Variant, ...]] = {
    "add": (Variant(INTS, 2, _add), Variant(("s32",), 2, _add, flags=("sat",))),
    "sub": (Variant(INTS, 2, _sub), Variant(("s32",), 2, _sub, flags=("sat",))),
    "mul": (
        Variant(names("s16 u16 s32 u32"), 2, multiply, required=_PARTS, result=_wide_type),
        Variant(names("s64 u64"), 2, multiply, required=("lo", "hi")),
    ),
    "mad": (
        Variant(
            names("s16 u16 s32 u32"),
            3,
            _multiply_add,
            required=_PARTS,
            result=_wide_type,
            sources=_mad_sources,
        ),
        Variant(names("s64 u64"), 3, _multiply_add, required=("lo", "hi")),
    ),
    "div": (Variant(INTS, 2, _divide),),
    "min": (Variant(INTS, 2, typed(np.minimum)),),
    "max": (Variant(INTS, 2, typed(np.maximum)),),
    "abs": (Variant(names("s16 s32 s64"), 1, typed(np.abs)),),
    "neg": (Variant(names("s16 s32 s64"), 1, _negate),),
}
"""Integer variants of instructions that have float ones as well."""

OPCODES: tuple[Opcode, ...] = (
    regular("rem", "alu", Variant(INTS, 2, _remainder)),
    regular("mul24", "alu", Variant(names("s32 u32"), 2, _mul24, required=("lo", "hi"))),
    regular("sad", "alu", Variant(INTS, 3, _absolute_difference)),
    _logic("and", np.bitwise_and),
    _logic("or", np.bitwise_or),
    _logic("xor", np.bitwise_xor),
    _logic("not", np.invert),
    regular("cnot", "alu", Variant(BITS, 1, bitwise(_cnot))),
    regular("shl", "alu", Variant(BITS, 2, _shift_left, sources=_shift_sources)),
    regular(
        "shr",
        "alu",
        Variant(
            names("b16 b32 b64 u16 u32 u64 s16 s32 s64"), 2, _shift_right, sources=_shift_sources
        ),
    ),
    regular("popc", "alu", Variant(names("b32 b64"), 1, _popc, result=_count_result)),
    regular("clz", "alu", Variant(names("b32 b64"), 1, _clz, result=_count_result)),
    regular("brev", "alu", Variant(names("b32 b64"), 1, _brev)),
    regular(
        "bfind",
        "alu",
        Variant(names("s32 u32 s64 u64"), 1, _bfind, flags=("shiftamt",), result=_count_result),
    ),
    regular("bfe", "alu", Variant(names("s32 u32 s64 u64"), 3, _extract, sources=_field_sources)),
    regular("bfi", "alu", Variant(names("b32 b64"), 4, _insert, sources=_insert_sources)),
)
