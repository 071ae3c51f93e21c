"""Conversions of packed 8-bit floats e4m3 and e5m2 (PTX ISA 9.7.9.21, cvt)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.instructions.floating import unpack
from prism.simulator.instructions.table import Step, compute
from prism.simulator.syntax import Instruction
from prism.simulator.types import TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder


@dataclass(frozen=True)
class Format:
    """A float of 8 bits: mantissa bits, exponent bias, its largest value and its NaN."""

    mantissa: int
    bias: int
    largest: float
    nan: int


FORMATS: dict[str, Format] = {
    "e4m3x2": Format(3, 7, 448.0, 0x7F),
    "e5m2x2": Format(2, 15, 57344.0, 0x7F),
}


def decode(form: Format) -> Array:
    """The float16 of each of the 256 bit patterns, exactly."""
    bits = np.arange(256)
    exponent, fraction = (bits & 0x7F) >> form.mantissa, bits & ((1 << form.mantissa) - 1)
    scale = np.ldexp(1.0, np.maximum(exponent, 1) - form.bias - form.mantissa)
    value = np.where(exponent > 0, fraction + (1 << form.mantissa), fraction) * scale
    if form.mantissa == 3:
        value = np.where((bits & 0x7F) == 0x7F, np.nan, value)
    else:
        value = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), value)
    return np.where(bits & 0x80, -value, value).astype(np.float16)


def encode(form: Format, value: Array, *, relu: bool) -> Array:
    """Bits of float32 values rounded to nearest even; what is too large becomes the largest."""
    size = np.abs(value.astype(np.float64))
    _, exponent = np.frexp(size)
    unit = np.ldexp(1.0, np.maximum(exponent - 1, 1 - form.bias) - form.mantissa)
    size = np.minimum(
        np.rint(np.where(np.isfinite(size), size, form.largest) / unit) * unit, form.largest
    )
    _, exponent = np.frexp(size)
    normal = (exponent - 1 >= 1 - form.bias) & (size > 0)
    scale = np.where(normal, exponent - 1, 1 - form.bias) - form.mantissa
    steps = np.ldexp(size, -scale).astype(np.int64)
    stored = np.where(normal, exponent - 1 + form.bias, 0) << form.mantissa
    bits = stored + np.where(normal, steps - (1 << form.mantissa), steps)
    bits = np.where(np.signbit(value), bits | 0x80, bits)
    if relu:
        bits = np.where(np.signbit(value), 0, bits)
    return np.where(np.isnan(value), form.nan, bits).astype(np.uint16)


def build(decoder: Decoder, instruction: Instruction) -> Step:
    """`cvt.rn{.satfinite}{.relu}` between a pair of 8-bit floats and f32 (two sources) or f16x2."""
    *flags, to, source = instruction.modifiers
    relu = "relu" in flags
    rest = [flag for flag in flags if flag != "relu"]
    narrows = to in FORMATS
    if rest != (["rn", "satfinite"] if narrows else ["rn"]):
        raise decoder.error(f"unsupported conversion '{instruction.mnemonic}'")
    if narrows and source in ("f32", "f16x2"):
        return _narrow(decoder, instruction, FORMATS[to], source, relu=relu)
    if not narrows and to == "f16x2":
        return _widen(decoder, instruction, FORMATS[source], relu=relu)
    raise decoder.error(f"unsupported conversion '{instruction.mnemonic}'")


def _narrow(
    decoder: Decoder, instruction: Instruction, form: Format, source: str, *, relu: bool
) -> Step:
    operands = 3 if source == "f32" else 2
    decoder.expect_operands(instruction, operands)
    d = decoder.destination(instruction.operands[0], TYPES["b16"])
    scalar = TYPES[source]
    sources = [decoder.source(operand, scalar) for operand in instruction.operands[1:]]

    def join(*values: Array) -> Array:
        if len(values) == 2:
            high, low = (unpack(scalar, value) for value in values)
        else:
            both = unpack(scalar, values[0])
            low, high = both[..., 0], both[..., 1]
        upper = encode(form, high, relu=relu) << np.uint16(8)
        return upper | encode(form, low, relu=relu)

    return compute(join, d, sources)


def _widen(decoder: Decoder, instruction: Instruction, form: Format, *, relu: bool) -> Step:
    decoder.expect_operands(instruction, 2)
    d = decoder.destination(instruction.operands[0], TYPES["f16x2"])
    a = decoder.source(instruction.operands[1], TYPES["b16"])
    table = decode(form)
    bits = np.where(np.isnan(table), np.uint16(0x7FFF), table.view(np.uint16))
    if relu:
        bits = np.where(np.signbit(table) & ~np.isnan(table), np.uint16(0), bits)
    wide = bits.astype(np.uint32)

    def split(value: Array) -> Array:
        low, high = wide.take(value & np.uint16(0xFF)), wide.take(value >> np.uint16(8))
        return low | (high << np.uint32(16))

    return compute(split, d, [a])
