"""Packed small integers: dp2a, vabsdiff4, min and max of s16x2, fns (PTX ISA 9.7.1, 9.7.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.instructions.table import Opcode, Raw, Step, compute
from prism.simulator.syntax import Instruction
from prism.simulator.types import TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder

_B32 = TYPES["b32"]


def _operands(
    decoder: Decoder, instruction: Instruction, count: int
) -> tuple[int | None, list[int]]:
    decoder.expect_operands(instruction, count + 1)
    d = decoder.destination(instruction.operands[0], _B32)
    return d, [decoder.source(operand, _B32) for operand in instruction.operands[1:]]


def _dp2a(decoder: Decoder, instruction: Instruction) -> Step:
    """`dp2a.{lo,hi}.atype.btype d, a, b, c`: two halves of a by two bytes of b, plus c."""
    words = instruction.modifiers
    halves = {"s32": np.int16, "u32": np.uint16}
    bytes_ = {"s32": np.int8, "u32": np.uint8}
    known = len(words) == 3 and words[0] in ("lo", "hi")
    if not known or words[1] not in halves or words[2] not in halves:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    first, second = halves[words[1]], bytes_[words[2]]
    start = 0 if words[0] == "lo" else 16

    def dot(a: Array, b: Array, c: Array) -> Array:
        total = c.astype(np.int64)
        for i in range(2):
            left = (a >> np.uint32(16 * i)).astype(np.uint16).view(first).astype(np.int64)
            right = (b >> np.uint32(start + 8 * i)).astype(np.uint8).view(second).astype(np.int64)
            total = total + left * right
        return total.astype(np.uint32)

    return compute(dot, *_operands(decoder, instruction, 3))


def _vabsdiff4(decoder: Decoder, instruction: Instruction) -> Step:
    """`vabsdiff4.dtype.atype.btype{.sat}{.add} d, a, b, c`: of four bytes, packed or added up."""
    *types, mode = (*instruction.modifiers, "")
    if mode == "" and len(types) == 4 and types[3] in ("add", "sat"):
        *types, mode = types
    kinds = {"s32": np.int8, "u32": np.uint8}
    if len(types) != 3 or any(name not in kinds for name in types):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    first, second = kinds[types[1]], kinds[types[2]]
    highest = 127 if types[0] == "s32" else 255

    def differ(a: Array, b: Array, c: Array) -> Array:
        total = c.astype(np.int64) if mode == "add" else np.int64(0)
        for i in range(4):
            shift = np.uint32(8 * i)
            left = (a >> shift).astype(np.uint8).view(first).astype(np.int64)
            right = (b >> shift).astype(np.uint8).view(second).astype(np.int64)
            part = np.abs(left - right)
            if mode == "add":
                total = total + part
                continue
            part = np.minimum(part, highest) if mode == "sat" else part & 0xFF
            total = total | (part << (8 * i))
        return np.asarray(total).astype(np.uint32)

    return compute(differ, *_operands(decoder, instruction, 3))


def pairs(function: Raw, kind: str) -> Raw:
    """An operation on the two 16-bit integers of a register."""
    dtype = np.dtype(np.int16 if kind == "s16x2" else np.uint16)

    def run(a: Array, b: Array) -> Array:
        left, right = (np.ascontiguousarray(v)[..., None].view(dtype) for v in (a, b))
        return np.ascontiguousarray(function(left, right)).view(np.uint32)[..., 0]

    return run


PAIRS: dict[str, np.ufunc] = {"add": np.add, "min": np.minimum, "max": np.maximum}
"""Instructions of other files that also have a form for pairs of 16-bit integers."""


def with_pairs(plain: Opcode) -> Opcode:
    """Adds the form `name.{s16x2,u16x2} d, a, b` to an instruction."""

    def build(decoder: Decoder, instruction: Instruction) -> Step:
        if instruction.modifiers in (("s16x2",), ("u16x2",)):
            function = pairs(PAIRS[plain.name], instruction.modifiers[0])
            return compute(function, *_operands(decoder, instruction, 2))
        return plain.build(decoder, instruction)

    return Opcode(plain.name, plain.kind, build)


def _fns(decoder: Decoder, instruction: Instruction) -> Step:
    """`fns.b32 d, mask, base, offset`: where the offset-th set bit from base is, or all ones."""
    if instruction.modifiers != ("b32",):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")

    def find(mask: Array, base: Array, offset: Array) -> Array:
        mask, base, offset = np.broadcast_arrays(mask, base & np.uint32(31), offset.view(np.int32))
        bit = np.arange(32)
        on = ((mask[..., None] >> bit.astype(np.uint32)) & np.uint32(1)) != 0
        start = base[..., None].astype(np.int64)
        up = offset[..., None] >= 0
        inside = on & np.where(up, bit >= start, bit <= start)
        # The bit at base counts for offset 0 only if it is set; then it is bit 1 of both ways.
        after, before = np.cumsum(inside, axis=-1), np.cumsum(inside[..., ::-1], axis=-1)[..., ::-1]
        wanted = np.maximum(np.abs(offset[..., None].astype(np.int64)), 1)
        hit: Array = inside & (np.where(up, after, before) == wanted)
        hit = np.asarray(np.where(offset[..., None] == 0, on & (bit == start), hit), np.bool_)
        place = np.argmax(hit, axis=-1).astype(np.uint32)
        return np.where(np.logical_or.reduce(hit, axis=-1), place, np.uint32(0xFFFFFFFF))

    return compute(find, *_operands(decoder, instruction, 3))


OPCODES: tuple[Opcode, ...] = (
    Opcode("dp2a", "alu", _dp2a),
    Opcode("vabsdiff4", "alu", _vabsdiff4),
    Opcode("fns", "alu", _fns),
)
