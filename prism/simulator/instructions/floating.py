"""
Float instructions (PTX ISA 9.7.3 and 9.7.4), and those that share their name with integer ones.

Values of 16 bits compute in float32 and round once, which is exact for one operation. Approximate
functions (`.approx`, `.full`) compute in float64 and round once: more exact than the hardware,
whose errors the ISA only bounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prism.simulator.directed import directed
from prism.simulator.instructions.integer import INTEGER
from prism.simulator.instructions.table import (
    ROUNDINGS,
    Form,
    Opcode,
    Raw,
    Variant,
    binary,
    names,
    regular,
    unary,
)
from prism.simulator.numerics import (
    bf16_to_f32,
    f16_to_f32,
    f32_to_bf16,
    flush,
    fma_f32,
    fma_f64,
    fma_half,
    round_to,
    saturate,
    two_product,
    two_sum,
)
from prism.simulator.syntax import Instruction
from prism.simulator.types import TYPES, Array, ScalarType

HALF = names("f16 bf16")
PACKED = names("f16x2 bf16x2")
SMALL = HALF + PACKED


def unpack(scalar: ScalarType, raw: Array) -> Array:
    """Register bits to what computes: float32, or float64 for f64. Pairs get an axis."""
    if scalar.name == "f32":
        return raw.view(np.float32)
    if scalar.name == "f64":
        return raw.view(np.float64)
    if scalar.kind == "x":
        raw = np.ascontiguousarray(raw)[..., None].view(np.uint16)
    return f16_to_f32(raw) if scalar.name.startswith("f16") else bf16_to_f32(raw)


def pack(scalar: ScalarType, value: Array) -> Array:
    """The inverse of `unpack`, rounding to nearest even where the type is narrower."""
    if scalar.name == "f32":
        return value.astype(np.float32, copy=False).view(np.uint32)
    if scalar.name == "f64":
        return value.view(np.uint64)
    if scalar.name.startswith("f16"):
        bits = value.astype(np.float16).view(np.uint16)
    elif value.dtype == np.float64:
        bits = (round_to(value, None, "bf16", "rn").view(np.uint32) >> 16).astype(np.uint16)
        bits = np.where(np.isnan(value), np.uint16(0x7FFF), bits)
    else:
        bits = f32_to_bf16(value)
    if scalar.kind == "x":
        return np.ascontiguousarray(bits).view(np.uint32)[..., 0]
    return bits


def floats(function: Callable[..., Array]) -> Callable[[Form], Raw]:
    """A raw operation from one on float arrays, with `.ftz`, `.sat` and `.relu` around it."""

    def implement(form: Form) -> Raw:
        scalar = form.type
        ftz = "ftz" in form.flags and scalar.name == "f32"
        sat, relu = "sat" in form.flags, "relu" in form.flags

        def run(*raws: Array) -> Array:
            values = [unpack(scalar, raw) for raw in raws]
            if ftz:
                values = [flush(value) for value in values]
            result = function(*values)
            if ftz:
                result = flush(result.astype(np.float32, copy=False))
            if sat:
                result = saturate(result)
            if relu:
                # In the type it has: rounding to float32 in between could round twice.
                result = np.where(result < 0, result.dtype.type(0), result)
            return pack(scalar, result)

        if scalar.name == "f32" and not (ftz or sat or relu):

            def plain(*raws: Array) -> Array:
                result = function(*[raw.view(np.float32) for raw in raws])
                return result.astype(np.float32, copy=False).view(np.uint32)

            return plain
        return run

    return implement


def rounded(
    nearest: Callable[..., Array], exact: Callable[..., tuple[Array, Array]], name: str = ""
) -> Callable[[Form], Raw]:
    """
    An operation with a rounding modifier; `exact` gives its result as a pair of float64.

    Directed rounding is there for f32 and f64; `name` is the operation of `directed` for f64.
    """

    def implement(form: Form) -> Raw:
        mode = form.one_of(*ROUNDINGS) or "rn"
        if mode == "rn":
            return floats(nearest)(form)
        if form.type.name == "f64":
            return floats(directed(name, mode))(form)

        def narrow(*values: Array) -> Array:
            wide = [value.astype(np.float64) for value in values]
            return round_to(*exact(*wide), "f32", mode)

        return floats(narrow)(form)

    return implement


def _exact_sub(a: Array, b: Array) -> tuple[Array, Array]:
    return two_sum(a, -b)


def _exact_mul(a: Array, b: Array) -> tuple[Array, Array]:
    # Two 24-bit mantissas: the float64 product has no error.
    return a * b, np.zeros(np.broadcast_shapes(a.shape, b.shape))


def _exact_fma(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    return two_sum(a * b, c)


def _exact_div(a: Array, b: Array) -> tuple[Array, Array]:
    quotient = a / b
    product, error = two_product(quotient, b)
    # The sign of the remainder is what directed rounding needs of the quotient's error.
    return quotient, ((a - product) - error) / b


def _exact_sqrt(a: Array) -> tuple[Array, Array]:
    root = np.sqrt(a)
    square, error = two_product(root, root)
    return root, np.where(root > 0, ((a - square) - error) / (2 * root), 0.0)


def _fma(form: Form) -> Raw:
    if form.type.name == "f64":
        return rounded(fma_f64, _exact_fma, "fma")(form)
    if form.type.name == "f32":
        return rounded(fma_f32, _exact_fma)(form)
    return floats(fma_half)(form)


def _float_min_max(which: str) -> Callable[[Form], Raw]:
    """
    IEEE minimumNumber and maximumNumber; `.NaN` lets a NaN win instead. -0 is less than +0.

    A NaN result is the canonical one.
    """
    ignoring, keeping = (np.fmin, np.minimum) if which == "min" else (np.fmax, np.maximum)

    def implement(form: Form) -> Raw:
        def choose(a: Array, b: Array) -> Array:
            result = (keeping if "NaN" in form.flags else ignoring)(a, b)
            tie = (a == b) & (a == 0)
            if tie.any():
                negative = np.signbit(a) | np.signbit(b)
                if which == "max":
                    negative = np.signbit(a) & np.signbit(b)
                result = np.where(tie, np.where(negative, -0.0, 0.0).astype(a.dtype), result)
            return result

        return floats(choose)(form)

    return implement


def approximate(function: Callable[[Array], Array]) -> Callable[[Form], Raw]:
    """A function computed in float64; packing rounds it once."""
    return floats(unary(lambda a: function(a.astype(np.float64))))


def _sign_bits(form: Form) -> tuple[int, int]:
    """The sign bit (or both of a pair) and all others, of a float type."""
    bits = form.type.bits
    sign = 0x80008000 if form.type.kind == "x" else 1 << (bits - 1)
    return sign, ((1 << bits) - 1) ^ sign


def _negate(form: Form) -> Raw:
    sign = _sign_bits(form)[0]

    def negate(a: Array) -> Array:
        return a ^ a.dtype.type(sign)

    if "ftz" in form.flags:
        return floats(np.negative)(form)
    return negate


def _absolute(form: Form) -> Raw:
    rest = _sign_bits(form)[1]

    def absolute(a: Array) -> Array:
        return a & a.dtype.type(rest)

    if "ftz" in form.flags:
        return floats(np.abs)(form)
    return absolute


def _copysign(form: Form) -> Raw:
    """`copysign d, a, b`: the sign of a and the magnitude of b."""
    sign, rest = _sign_bits(form)
    return binary(lambda a, b: (a & a.dtype.type(sign)) | (b & b.dtype.type(rest)))


def _reciprocal_root(a: Array) -> Array:
    return 1.0 / np.sqrt(a)


def _reciprocal(a: Array) -> Array:
    return a.dtype.type(1) / a


def _exact_reciprocal(a: Array) -> tuple[Array, Array]:
    return _exact_div(np.ones_like(a), a)


def _quotient(a: Array, b: Array) -> Array:
    return (a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)


_FLOAT_ADD = names("rn ftz sat")

FLOAT: dict[str, tuple[Variant, ...]] = {
    "add": (
        Variant(("f32",), 2, rounded(np.add, two_sum), flags=(*ROUNDINGS, "ftz", "sat")),
        Variant(SMALL, 2, floats(np.add), flags=_FLOAT_ADD),
        Variant(("f64",), 2, rounded(np.add, two_sum, "add"), flags=ROUNDINGS),
    ),
    "sub": (
        Variant(("f32",), 2, rounded(np.subtract, _exact_sub), flags=(*ROUNDINGS, "ftz", "sat")),
        Variant(SMALL, 2, floats(np.subtract), flags=_FLOAT_ADD),
        Variant(("f64",), 2, rounded(np.subtract, _exact_sub, "sub"), flags=ROUNDINGS),
    ),
    "mul": (
        Variant(("f32",), 2, rounded(np.multiply, _exact_mul), flags=(*ROUNDINGS, "ftz", "sat")),
        Variant(SMALL, 2, floats(np.multiply), flags=_FLOAT_ADD),
        Variant(("f64",), 2, rounded(np.multiply, _exact_mul, "mul"), flags=ROUNDINGS),
    ),
    "fma": (
        Variant(("f32",), 3, _fma, flags=("ftz", "sat"), required=ROUNDINGS),
        Variant(SMALL, 3, _fma, flags=("ftz", "sat", "relu"), required=("rn",)),
        Variant(("f64",), 3, _fma, required=ROUNDINGS),
    ),
    "mad": (
        Variant(("f32",), 3, _fma, flags=("ftz", "sat"), required=ROUNDINGS),
        Variant(("f64",), 3, _fma, required=ROUNDINGS),
    ),
    "div": (
        Variant(("f32",), 2, rounded(np.divide, _exact_div), flags=("ftz",), required=ROUNDINGS),
        Variant(("f32",), 2, floats(_quotient), flags=("ftz",), required=("approx", "full")),
        Variant(("f64",), 2, rounded(np.divide, _exact_div, "div"), required=ROUNDINGS),
    ),
    "min": (
        Variant(("f32", *SMALL), 2, _float_min_max("min"), flags=("ftz", "NaN")),
        Variant(("f64",), 2, _float_min_max("min")),
    ),
    "max": (
        Variant(("f32", *SMALL), 2, _float_min_max("max"), flags=("ftz", "NaN")),
        Variant(("f64",), 2, _float_min_max("max")),
    ),
    "abs": (Variant(("f32", "f64", *SMALL), 1, _absolute, flags=("ftz",)),),
    "neg": (Variant(("f32", "f64", *SMALL), 1, _negate, flags=("ftz",)),),
}


def _gross_reciprocal(form: Form) -> Raw:
    """`rcp.approx.ftz.f64`: of the upper 32 bits of the operand, and with those only."""
    upper = np.uint64(0xFFFFFFFF00000000)
    tiny = 2.0**-1022

    def gross(a: Array) -> Array:
        value = (a & upper).view(np.float64)
        value = np.where(np.abs(value) < tiny, np.copysign(0.0, value), value)
        result = 1.0 / value
        result = np.where(np.abs(result) < tiny, np.copysign(0.0, result), result)
        return result.view(np.uint64) & upper

    return gross


def _shared(name: str, float_kind: str = "alu") -> Opcode:
    """An instruction with integer and float variants, perhaps counted differently."""

    def kind(instruction: Instruction) -> str:
        scalar = TYPES.get(instruction.modifiers[-1])
        return float_kind if scalar is not None and scalar.is_float else "alu"

    return regular(name, kind, *INTEGER.get(name, ()), *FLOAT.get(name, ()))


def _special(name: str, function: Callable[[Array], Array], types: str = "f32") -> Opcode:
    """A function that there is only in its approximate form."""
    small = tuple(t for t in names(types) if t in SMALL)
    variants = [
        Variant(("f32",), 1, approximate(function), flags=("ftz",), required=("approx",)),
        Variant(small, 1, approximate(function), flags=("ftz",), required=("approx",)),
    ]
    return regular(name, "sfu", *variants)


def _root(
    name: str,
    function: Callable[[Array], Array],
    exact: Callable[..., tuple[Array, Array]],
    *others: Variant,
) -> Opcode:
    return regular(
        name,
        "sfu",
        Variant(("f32",), 1, approximate(function), flags=("ftz",), required=("approx",)),
        Variant(("f32",), 1, rounded(function, exact), flags=("ftz",), required=ROUNDINGS),
        Variant(("f64",), 1, rounded(function, exact, name), required=ROUNDINGS),
        *others,
    )


OPCODES: tuple[Opcode, ...] = (
    _shared("add"),
    _shared("sub"),
    _shared("mul"),
    _shared("mad", "fma"),
    _shared("fma", "fma"),
    _shared("div", "sfu"),
    _shared("min"),
    _shared("max"),
    _shared("abs"),
    _shared("neg"),
    regular("copysign", "alu", Variant(("f32", "f64"), 2, _copysign)),
    _root(
        "rcp",
        _reciprocal,
        _exact_reciprocal,
        Variant(("f64",), 1, _gross_reciprocal, flags=("ftz",), required=("approx",)),
    ),
    _root("sqrt", np.sqrt, _exact_sqrt),
    regular(
        "rsqrt",
        "sfu",
        Variant(
            ("f32", "f64"), 1, approximate(_reciprocal_root), flags=("ftz",), required=("approx",)
        ),
    ),
    _special("ex2", np.exp2, "f32 f16 f16x2 bf16 bf16x2"),
    _special("lg2", np.log2),
    _special("sin", np.sin),
    _special("cos", np.cos),
    _special("tanh", np.tanh, "f32 f16 f16x2 bf16 bf16x2"),
)
