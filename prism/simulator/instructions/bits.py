"""Instructions that rearrange bits and bytes: prmt, lop3, shf, dp4a (PTX ISA 9.7.1, 9.7.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.instructions.table import (
    Form,
    Opcode,
    Raw,
    Step,
    Variant,
    compute,
    names,
    regular,
)
from prism.simulator.syntax import Instruction
from prism.simulator.types import TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder

_PERMUTE_MODES: dict[str, tuple[tuple[int, ...], ...]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}
"""Source bytes (lowest first) of the named modes of `prmt`, by the two low bits of the selector."""


def permute(a: Array, b: Array, selector: Array) -> Array:
    """Byte i of the result is the byte of {b, a} that nibble i of the selector names."""
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.uint32(0)
    for i in range(4):
        nibble = (selector >> np.uint32(4 * i)) & np.uint32(0xF)
        byte = (both >> ((nibble & np.uint32(7)).astype(np.uint64) * np.uint64(8))).astype(
            np.uint32
        )
        byte = byte & np.uint32(0xFF)
        sign = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        byte = np.where(nibble & np.uint32(8), sign, byte)
        result = result | (byte << np.uint32(8 * i))
    return np.asarray(result)


def _prmt(decoder: Decoder, instruction: Instruction) -> Step:
    if not instruction.modifiers or instruction.modifiers[0] != "b32":
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    mode = instruction.modifiers[1:]
    if len(mode) > 1 or (mode and mode[0] not in _PERMUTE_MODES):
        raise decoder.error(f"unsupported mode in '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 4)
    b32 = TYPES["b32"]
    destination = decoder.destination(instruction.operands[0], b32)
    sources = [decoder.source(operand, b32) for operand in instruction.operands[1:]]
    if not mode:
        return compute(permute, destination, sources)
    table = np.array(
        [sum(byte << (4 * i) for i, byte in enumerate(row)) for row in _PERMUTE_MODES[mode[0]]],
        np.uint32,
    )

    def permute_by_mode(a: Array, b: Array, c: Array) -> Array:
        return permute(a, b, table.take(c & np.uint32(3)))

    return compute(permute_by_mode, destination, sources)


def _lop3(decoder: Decoder, instruction: Instruction) -> Step:
    """`lop3.b32 d, a, b, c, table`: bit by bit, the table's bit at index 4a + 2b + c."""
    if instruction.modifiers != ("b32",):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 5)
    table = decoder.constant_value(instruction.operands[4], "the look-up table")
    if not 0 <= table <= 255:
        raise decoder.error(f"the look-up table {table} is not within 0 to 255")
    b32 = TYPES["b32"]
    destination = decoder.destination(instruction.operands[0], b32)
    sources = [decoder.source(operand, b32) for operand in instruction.operands[1:4]]

    def combine(a: Array, b: Array, c: Array) -> Array:
        shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
        result = np.zeros(shape, np.uint32)
        for index in range(8):
            if table >> index & 1:
                term = a if index & 4 else ~a
                term = term & (b if index & 2 else ~b)
                result = result | (term & (c if index & 1 else ~c))
        return result

    return compute(combine, destination, sources)


def _funnel(decoder: Decoder, instruction: Instruction) -> Step:
    """`shf.{l,r}.{clamp,wrap}.b32 d, low, high, amount`."""
    way, mode = (*instruction.modifiers, "", "")[:2]
    if (
        way not in ("l", "r")
        or mode not in ("clamp", "wrap")
        or instruction.modifiers[2:] != ("b32",)
    ):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 4)
    b32 = TYPES["b32"]
    destination = decoder.destination(instruction.operands[0], b32)
    sources = [decoder.source(operand, b32) for operand in instruction.operands[1:]]

    def shift(low: Array, high: Array, amount: Array) -> Array:
        both = low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))
        n = np.minimum(amount, np.uint32(32)) if mode == "clamp" else amount & np.uint32(31)
        n = n.astype(np.uint64)
        if way == "r":
            return (both >> n).astype(np.uint32)
        return (both >> (np.uint64(32) - n)).astype(np.uint32)

    return compute(shift, destination, sources)


def _dot(decoder: Decoder, instruction: Instruction) -> Step:
    """`dp4a.atype.btype d, a, b, c`: the dot product of four bytes each, plus c."""
    kinds = {"s32": np.int8, "u32": np.uint8}
    if len(instruction.modifiers) != 2 or any(m not in kinds for m in instruction.modifiers):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 4)
    first, second = (kinds[m] for m in instruction.modifiers)
    b32 = TYPES["b32"]
    destination = decoder.destination(instruction.operands[0], b32)
    sources = [decoder.source(operand, b32) for operand in instruction.operands[1:]]

    def dot(a: Array, b: Array, c: Array) -> Array:
        total = c.astype(np.int64)
        for i in range(4):
            shift = np.uint32(8 * i)
            left = (a >> shift).astype(np.uint8).view(first).astype(np.int64)
            right = (b >> shift).astype(np.uint8).view(second).astype(np.int64)
            total = total + left * right
        return total.astype(np.uint32)

    return compute(dot, destination, sources)


def _szext(form: Form) -> Raw:
    """Sign- or zero-extends the low b bits of a, as `bfe` from bit 0 would."""
    signed = form.type.kind == "s"

    def extend(a: Array, b: Array) -> Array:
        bits = b & np.uint32(31) if "wrap" in form.flags else np.minimum(b, np.uint32(32))
        up = (np.uint32(32) - bits).astype(np.uint64)
        high = (a.astype(np.uint64) << up).astype(np.uint32)
        down = np.minimum(up, np.uint64(31)).astype(np.uint32)
        if signed:
            value = (high.view(np.int32) >> down.view(np.int32)).view(np.uint32)
        else:
            value = high >> down
        return np.where(bits == 0, np.uint32(0), value)

    return extend


def _bmsk(form: Form) -> Raw:
    """A mask of b bits from bit a on."""

    def mask(a: Array, b: Array) -> Array:
        wraps = "wrap" in form.flags
        start, count = (
            (v & np.uint32(31)) if wraps else np.minimum(v, np.uint32(32)) for v in (a, b)
        )
        ones = (np.uint64(1) << count.astype(np.uint64)) - np.uint64(1)
        return (ones << start.astype(np.uint64)).astype(np.uint32)

    return mask


OPCODES: tuple[Opcode, ...] = (
    Opcode("prmt", "alu", _prmt),
    Opcode("lop3", "alu", _lop3),
    Opcode("shf", "alu", _funnel),
    Opcode("dp4a", "alu", _dot),
    regular("bmsk", "alu", Variant(("b32",), 2, _bmsk, required=("clamp", "wrap"))),
    regular("szext", "alu", Variant(names("s32 u32"), 2, _szext, required=("clamp", "wrap"))),
)
