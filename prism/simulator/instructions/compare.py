"""Comparison and selection: setp, set, selp, slct, testp (PTX ISA 9.7.6, 9.7.3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.instructions.floating import unpack
from prism.simulator.instructions.table import (
    Form,
    Opcode,
    Raw,
    Step,
    Variant,
    binary,
    compute,
    names,
    regular,
    ternary,
    unary,
    write,
)
from prism.simulator.numerics import flush
from prism.simulator.syntax import Instruction, Negated, Operand, Pair, Sink
from prism.simulator.types import STORAGE, TYPES, Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_ORDERED: dict[str, Raw] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_COMBINE: dict[str, Raw] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _either_nan(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def comparison(scalar: ScalarType, operator: str, *, ftz: bool) -> Raw | None:
    """The comparison of raw registers as a type, or None if the type has no such operator."""
    if scalar.is_float:
        compare = _float_comparison(operator)
        if compare is None:
            return None
        if ftz:
            return binary(lambda a, b: compare(flush(unpack(scalar, a)), flush(unpack(scalar, b))))
        return binary(lambda a, b: compare(unpack(scalar, a), unpack(scalar, b)))
    if scalar.kind == "u":
        operator = _UNSIGNED.get(operator, operator)
    function = _ORDERED.get(operator)
    if function is None or (scalar.kind == "b" and operator not in ("eq", "ne")):
        return None
    dtype = scalar.dtype
    if dtype == STORAGE[scalar.bits]:
        return function
    return binary(lambda a, b: function(a.view(dtype), b.view(dtype)))


def _float_comparison(operator: str) -> Raw | None:
    if operator == "nan":
        return _either_nan
    if operator == "num":
        return binary(lambda a, b: ~_either_nan(a, b))
    if operator == "ne":
        # The ordered form is false for NaN, unlike numpy's and C's.
        return binary(lambda a, b: (a != b) & ~_either_nan(a, b))
    if operator in _UNORDERED:
        function = _ORDERED[_UNORDERED[operator]]
        return binary(lambda a, b: function(a, b) | _either_nan(a, b))
    return _ORDERED.get(operator)


def _predicate(decoder: Decoder, operand: Operand) -> tuple[int, bool]:
    if isinstance(operand, Negated):
        return decoder.source(operand.register, TYPES["pred"]), True
    return decoder.source(operand, TYPES["pred"]), False


def _parse_comparison(
    decoder: Decoder, instruction: Instruction, type_name: str, flags: list[str]
) -> tuple[ScalarType, Raw, Raw | None]:
    """Type, comparison and Boolean operator of `.cmp{.bool}{.ftz}.type`."""
    ftz = "ftz" in flags
    words = [flag for flag in flags if flag != "ftz"]
    scalar = TYPES.get(type_name)
    if scalar is None or scalar.bits in (1, 8) or scalar.kind == "x" or scalar.name == "tf32":
        raise decoder.error(f"unsupported type in '{instruction.mnemonic}'")
    compare = comparison(scalar, words[0] if words else "", ftz=ftz)
    combine = _COMBINE.get(words[1]) if len(words) == 2 else None
    if compare is None or len(words) > 2 or (len(words) == 2 and combine is None):
        raise decoder.error(f"unsupported modifier in '{instruction.mnemonic}'")
    if ftz and scalar.name != "f32":
        raise decoder.error(f"unsupported modifier '.ftz' in '{instruction.mnemonic}'")
    return scalar, compare, combine


def _setp(decoder: Decoder, instruction: Instruction) -> Step:
    """`setp.cmp{.bool}.type p{|q}, a, b{, {!}c}`: p = (a cmp b) bool c, q = !(a cmp b) bool c."""
    *flags, type_name = instruction.modifiers or ("",)
    scalar, compare, combine = _parse_comparison(decoder, instruction, type_name, flags)
    decoder.expect_operands(instruction, 3 if combine is None else 4)
    target = instruction.operands[0]
    p, q = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    positive = decoder.destination(p, TYPES["pred"])
    negative = decoder.destination(q, TYPES["pred"])
    a = decoder.source(instruction.operands[1], scalar)
    b = decoder.source(instruction.operands[2], scalar)
    if combine is None and negative is None and positive is not None:
        d = positive

        def simple(r: list[Array], m: Array | None, x: Machine) -> None:
            value = compare(r[a], r[b])
            r[d] = value if m is None else np.where(m, value, r[d])

        return simple
    c, inverted = (-1, False)
    if combine is not None:
        c, inverted = _predicate(decoder, instruction.operands[3])

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        value = compare(r[a], r[b])
        opposite = ~value
        if combine is not None:
            other = ~r[c] if inverted else r[c]
            value, opposite = combine(value, other), combine(opposite, other)
        write(r, m, positive, value)
        write(r, m, negative, opposite)

    return run


def _set(decoder: Decoder, instruction: Instruction) -> Step:
    """`set.cmp{.bool}.dtype.stype d, a, b{, {!}c}`: all ones or 1.0 where it holds, else 0."""
    *flags, result_name, type_name = ("", "", *instruction.modifiers)[
        -max(len(instruction.modifiers), 2) :
    ]
    if type_name in ("f16x2", "bf16x2"):
        return _set_pair(decoder, instruction, flags, result_name, type_name)
    scalar, compare, combine = _parse_comparison(decoder, instruction, type_name, flags)
    if result_name not in _TRUE or (TYPES[result_name].bits == 16) > (scalar.bits == 16):
        raise decoder.error(f"unsupported type in '{instruction.mnemonic}'")
    storage = STORAGE[TYPES[result_name].bits]
    zero, yes = np.zeros((), storage), np.array(_TRUE[result_name], storage)
    decoder.expect_operands(instruction, 3 if combine is None else 4)
    d = decoder.destination(instruction.operands[0], TYPES[result_name])
    a = decoder.source(instruction.operands[1], scalar)
    b = decoder.source(instruction.operands[2], scalar)
    c, inverted = (-1, False)
    if combine is not None:
        c, inverted = _predicate(decoder, instruction.operands[3])

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        value = compare(r[a], r[b])
        if combine is not None:
            value = combine(value, ~r[c] if inverted else r[c])
        write(r, m, d, np.where(value, yes, zero))

    return run


_TRUE: dict[str, int] = {
    "u32": 0xFFFFFFFF,
    "s32": 0xFFFFFFFF,
    "f32": 0x3F800000,
    "u16": 0xFFFF,
    "s16": 0xFFFF,
    "f16": 0x3C00,
    "bf16": 0x3F80,
}
"""What `set` gives where the comparison holds."""


def _set_pair(
    decoder: Decoder, instruction: Instruction, flags: list[str], result_name: str, type_name: str
) -> Step:
    """`set.cmp.dtype.f16x2`: half by half; all ones for an integer result, 1.0 for a float one."""
    half = type_name.removesuffix("x2")
    _, compare, combine = _parse_comparison(decoder, instruction, half, flags)
    if combine is not None or result_name not in ("u32", "s32", type_name):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 3)
    yes = np.uint16(_TRUE[half] if result_name == type_name else 0xFFFF)
    d = decoder.destination(instruction.operands[0], TYPES[result_name])
    sources = [decoder.source(operand, TYPES[type_name]) for operand in instruction.operands[1:]]

    def pair(a: Array, b: Array) -> Array:
        low = compare(a.astype(np.uint16), b.astype(np.uint16))
        upper = np.uint32(16)
        high = compare((a >> upper).astype(np.uint16), (b >> upper).astype(np.uint16))
        halves = [np.where(h, yes, np.uint16(0)).astype(np.uint32) for h in (low, high)]
        return halves[0] | (halves[1] << upper)

    return compute(pair, d, sources)


def _select(form: Form) -> Raw:
    return ternary(lambda a, b, p: np.where(p, a, b))


def _select_sources(form: Form) -> tuple[ScalarType, ...]:
    return form.type, form.type, TYPES["pred"]


def _slct(decoder: Decoder, instruction: Instruction) -> Step:
    """`slct.dtype.{s32,f32} d, a, b, c`: a where c >= 0, else b."""
    words = [w for w in instruction.modifiers if w != "ftz"]
    if len(words) != 2 or words[1] not in ("s32", "f32") or words[0] not in _SELECT:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 4)
    scalar, test = TYPES[words[0]], TYPES[words[1]]
    d = decoder.destination(instruction.operands[0], scalar)
    a = decoder.source(instruction.operands[1], scalar)
    b = decoder.source(instruction.operands[2], scalar)
    c = decoder.source(instruction.operands[3], test)

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        write(r, m, d, np.where(r[c].view(test.dtype) >= 0, r[a], r[b]))

    return run


def _testp(form: Form) -> Raw:
    name = form.one_of(*_TESTS)
    scalar = form.type
    tiny = {"f32": 2.0**-126, "f64": 2.0**-1022}[scalar.name]

    def subnormal(a: Array) -> Array:
        return (np.abs(a) < tiny) & (a != 0)

    tests: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": subnormal,
    }
    return unary(lambda a: tests[name](unpack(scalar, a)))


_TESTS = names("finite infinite number notanumber normal subnormal")
_SELECT = names("b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64")

OPCODES: tuple[Opcode, ...] = (
    Opcode("setp", "alu", _setp),
    Opcode("set", "alu", _set),
    regular("selp", "alu", Variant(_SELECT, 3, _select, sources=_select_sources)),
    Opcode("slct", "alu", _slct),
    regular(
        "testp",
        "alu",
        Variant(("f32", "f64"), 1, _testp, required=_TESTS, result=lambda form: TYPES["pred"]),
    ),
)
