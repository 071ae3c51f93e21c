"""Conversions: cvt and cvta (PTX ISA 9.7.9.21, 9.7.9.20)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.simulator.instructions import fp8
from prism.simulator.instructions.floating import pack, unpack
from prism.simulator.instructions.table import Opcode, Raw, Step, compute, unary
from prism.simulator.memory import LOCAL_WINDOW, SHARED_WINDOW
from prism.simulator.numerics import ROUND_INTEGER, float_to_int, flush, round_to, saturate
from prism.simulator.syntax import Instruction
from prism.simulator.types import STORAGE, TYPES, Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder

_TO_FLOAT = ("rn", "rz", "rm", "rp", "rna")
_TO_INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}
_PLAIN = ("f16", "bf16", "f32", "f64", "tf32")


def _cvt(decoder: Decoder, instruction: Instruction) -> Step:
    words = instruction.modifiers
    if len(words) >= 2 and (words[-2] in fp8.FORMATS or words[-1] in fp8.FORMATS):
        return fp8.build(decoder, instruction)
    if len(words) < 2 or words[-2] not in TYPES or words[-1] not in TYPES:
        raise decoder.error(f"unsupported type in '{instruction.mnemonic}'")
    to, source = TYPES[words[-2]], TYPES[words[-1]]
    flags = words[:-2]
    known = {*_TO_FLOAT, *_TO_INTEGRAL, "ftz", "sat", "relu", "satfinite"}
    unknown = [flag for flag in flags if flag not in known]
    roundings = [flag for flag in flags if flag in _TO_FLOAT or flag in _TO_INTEGRAL]
    if unknown or len(set(flags)) != len(flags) or len(roundings) > 1:
        raise decoder.error(f"unsupported modifier in '{instruction.mnemonic}'")
    mode = roundings[0] if roundings else ""
    if to.kind == "x" and source.name == "f32":
        return _cvt_pair(decoder, instruction, to, mode, frozenset(flags))
    decoder.expect_operands(instruction, 2)
    raw = conversion(to, source, mode, frozenset(flags))
    if raw is None:
        raise decoder.error(f"unsupported conversion '{instruction.mnemonic}'")
    d = decoder.destination(instruction.operands[0], to, wider=to.is_int)
    a = decoder.source(instruction.operands[1], source, wider=source.is_int)
    if d is None:
        return compute(raw, None, [a])
    held = STORAGE[decoder.width(instruction.operands[0], to)]
    return compute(_resized(raw, to, held, source), d, [a])


def _resized(raw: Raw, to: ScalarType, held: np.dtype[Any], source: ScalarType) -> Raw:
    """Fits a conversion between the types to registers that may be wider: chop, then extend."""
    narrow = source.dtype if source.is_int else None
    extended = to.dtype if to.is_int else None

    def run(a: Array) -> Array:
        if narrow is not None and a.dtype.itemsize != narrow.itemsize:
            a = a.astype(np.dtype(f"u{narrow.itemsize}"))
        result = raw(a)
        if extended is not None and result.dtype.itemsize != held.itemsize:
            result = result.view(extended).astype(held)
        return result

    return run


def conversion(to: ScalarType, source: ScalarType, mode: str, flags: frozenset[str]) -> Raw | None:
    """
    From bits of one type to bits of another (both of the type's own width), or None if unsupported.

    `mode` is the rounding modifier or ''.
    """
    if (
        "b" in (to.kind, source.kind)
        or "p" in (to.kind, source.kind)
        or "x" in (to.kind, source.kind)
    ):
        return None
    if (to.is_float and to.name not in _PLAIN) or (source.is_float and source.name not in _PLAIN):
        return None
    if to.is_int and source.is_int:
        return None if mode or flags - {"sat"} else _int_to_int(to, source, sat="sat" in flags)
    if to.is_int:
        return _float_to_int(to, source, mode, flags)
    if source.is_int:
        return _int_to_float(to, source, mode, flags)
    return _float_to_float(to, source, mode, flags)


def _int_to_int(to: ScalarType, source: ScalarType, *, sat: bool) -> Raw:
    unsigned = np.dtype(f"u{to.bytes}")
    if not sat:
        return unary(lambda a: a.view(source.dtype).astype(unsigned))
    low, high = np.iinfo(to.dtype).min, np.iinfo(to.dtype).max
    info = np.iinfo(source.dtype)
    low, high = max(int(low), int(info.min)), min(int(high), int(info.max))

    def clamp(a: Array) -> Array:
        value = a.view(source.dtype)
        bounded = np.clip(value, source.dtype.type(low), source.dtype.type(high))
        return bounded.astype(to.dtype).view(unsigned)

    return clamp


def _float_to_int(
    to: ScalarType, source: ScalarType, mode: str, flags: frozenset[str]
) -> Raw | None:
    if mode not in _TO_INTEGRAL or flags - {"ftz", "sat", mode} or source.name == "tf32":
        return None
    wide = source.name == "f64" or to.bits == 64
    nan = 1 << (to.bits - 1) if wide else 0
    ftz = "ftz" in flags
    unsigned = np.dtype(f"u{to.bytes}")

    def convert(a: Array) -> Array:
        value = unpack(source, a)
        value = flush(value) if ftz else value
        integers = float_to_int(value.astype(np.float64), to.dtype, _TO_INTEGRAL[mode], nan)
        return integers.astype(to.dtype).view(unsigned)

    return convert


def _int_to_float(
    to: ScalarType, source: ScalarType, mode: str, flags: frozenset[str]
) -> Raw | None:
    if mode not in ("rn", "rz", "rm", "rp") or flags - {mode, "sat", "ftz"} or to.name == "tf32":
        return None
    sat = "sat" in flags

    def convert(a: Array) -> Array:
        value = a.view(source.dtype)
        high = value.astype(np.float64)
        if source.bits == 64:
            # The error of the float64 nearest to a 64-bit integer, by its low and high halves.
            upper = (value >> value.dtype.type(32)).astype(np.float64) * 2.0**32
            lower = (a & np.uint64(0xFFFFFFFF)).astype(np.float64)
            error = (upper - high) + lower
        else:
            error = np.zeros_like(high)
        if to.name == "f64":
            result = high if mode == "rn" else _directed_f64(high, error, mode)
        else:
            result = round_to(high, error, to.name, mode)
        return pack(to, saturate(result) if sat else result)

    return convert


def _directed_f64(value: Array, error: Array, mode: str) -> Array:
    """Moves a nearest-rounded float64 by one place if the exact value asks for it."""
    down = (error < 0) & ((mode == "rm") | ((mode == "rz") & (value > 0)))
    up = (error > 0) & ((mode == "rp") | ((mode == "rz") & (value < 0)))
    return np.where(
        down, np.nextafter(value, -np.inf), np.where(up, np.nextafter(value, np.inf), value)
    )


def _float_to_float(
    to: ScalarType, source: ScalarType, mode: str, flags: frozenset[str]
) -> Raw | None:
    ftz, sat = "ftz" in flags, "sat" in flags
    if to.name == source.name or mode in _TO_INTEGRAL:
        integral = ROUND_INTEGER.get(_TO_INTEGRAL.get(mode, ""))
        if to.name != source.name or to.name == "tf32" or (mode and integral is None):
            return None

        def same(a: Array) -> Array:
            value = unpack(source, a)
            value = flush(value) if ftz else value
            value = value if integral is None else integral(value)
            return pack(to, saturate(value) if sat else value)

        return same
    widening = to.bits > source.bits
    if widening == bool(mode) or ((mode == "rna") != (to.name == "tf32") and to.name != "tf32"):
        return None
    if to.name in ("f16", "bf16") and source.name in ("f16", "bf16"):
        return None
    relu = "relu" in flags

    def convert(a: Array) -> Array:
        value = unpack(source, a)
        value = flush(value) if ftz and source.name == "f32" else value
        if not widening:
            value = round_to(value, None, to.name, mode)
        elif to.name == "f64":
            value = value.astype(np.float64)
        if relu:
            value = np.where(value > 0, value, np.where(np.isnan(value), value, 0))
        value = saturate(value) if sat else value
        return _canonical(to, pack_exact(to, value))

    return convert


def pack_exact(to: ScalarType, value: Array) -> Array:
    """Bits of values that the type holds exactly already."""
    if to.name == "tf32":
        return value.astype(np.float32).view(np.uint32)
    if to.name == "f16":
        return value.astype(np.float16).view(np.uint16)
    return pack(to, value)


def _canonical(to: ScalarType, bits: Array) -> Array:
    """16-bit NaNs become 0x7fff, as conversions give."""
    if to.name != "f16":
        return bits
    return np.where((bits & np.uint16(0x7FFF)) > np.uint16(0x7C00), np.uint16(0x7FFF), bits)


def _cvt_pair(
    decoder: Decoder, instruction: Instruction, to: ScalarType, mode: str, flags: frozenset[str]
) -> Step:
    """`cvt.{rn,rz}.{f16x2,bf16x2}.f32 d, a, b`: a goes to the upper half, b to the lower."""
    half = TYPES[to.name.removesuffix("x2")]
    if mode not in ("rn", "rz") or flags - {mode, "relu"}:
        raise decoder.error(f"unsupported conversion '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 3)
    one = _float_to_float(half, TYPES["f32"], mode, flags)
    if one is None:
        raise decoder.error(f"unsupported conversion '{instruction.mnemonic}'")
    convert = one
    d = decoder.destination(instruction.operands[0], to)
    sources = [decoder.source(operand, TYPES["f32"]) for operand in instruction.operands[1:]]

    def join(a: Array, b: Array) -> Array:
        return (convert(a).astype(np.uint32) << np.uint32(16)) | convert(b)

    return compute(join, d, sources)


_WINDOWS = {"global": 0, "const": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def _cvta(decoder: Decoder, instruction: Instruction) -> Step:
    """`cvta{.to}.space.u64`: between an address of a space and a generic one."""
    words = list(instruction.modifiers)
    to = bool(words) and words[0] == "to"
    words = words[1:] if to else words
    if len(words) != 2 or words[1] != "u64" or words[0].split("::")[0] not in _WINDOWS:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 2)
    window = _WINDOWS[words[0].split("::")[0]]
    u64 = TYPES["u64"]
    d = decoder.destination(instruction.operands[0], u64)
    a = decoder.source(instruction.operands[1], u64)
    shift = np.uint64((-window if to else window) % (1 << 64))
    if not window:
        return compute(np.positive, d, [a])
    return compute(unary(lambda value: value + shift), d, [a])


OPCODES: tuple[Opcode, ...] = (
    Opcode("cvt", "cvt", _cvt),
    Opcode("cvta", "alu", _cvta),
)
