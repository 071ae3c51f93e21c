"""
Extended-precision arithmetic: add, sub and mad with the carry flag (PTX ISA 9.7.2).

The flag CC.CF is a register of its own: `.cc` writes it, addc, subc and madc read it. Of a
subtraction it is the borrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.instructions.integer import multiply
from prism.simulator.instructions.table import Form, Opcode, Step, write
from prism.simulator.syntax import Instruction
from prism.simulator.types import STORAGE, TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_TYPES = ("u32", "s32", "u64", "s64")


def _sum(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """a + b + carry and the carry out of it."""
    partial = a + b
    total = partial + carry.astype(a.dtype)
    return total, (partial < a) | (total < partial)


def _difference(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """a - b - borrow and the borrow out of it."""
    partial = a - b
    total = partial - borrow.astype(a.dtype)
    return total, (a < b) | (partial < total)


def _build(decoder: Decoder, instruction: Instruction) -> Step:
    name = instruction.opcode
    words = list(instruction.modifiers)
    takes = name.endswith("c")
    product = name.startswith("mad")
    part = words.pop(0) if product and words and words[0] in ("lo", "hi") else ""
    gives = "cc" in words[:1]
    if gives:
        del words[0]
    if len(words) != 1 or words[0] not in _TYPES or product != bool(part):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    scalar = TYPES[words[0]]
    decoder.expect_operands(instruction, 4 if product else 3)
    d = decoder.destination(instruction.operands[0], scalar)
    sources = [decoder.source(operand, scalar) for operand in instruction.operands[1:]]
    carry = decoder.carry(reads=takes, writes=gives)
    none = decoder.slots.add(np.zeros((1, 1), STORAGE[1]))
    flag = carry if takes else none
    combine = _difference if name.startswith("sub") else _sum
    multiplied = multiply(Form(scalar, frozenset({part}))) if product else None

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        values = [r[s] for s in sources]
        if multiplied is not None:
            values = [multiplied(values[0], values[1]), values[2]]
        total, out = combine(values[0], values[1], r[flag])
        write(r, m, d, total)
        if gives:
            write(r, m, carry, out)

    return run


def with_carry(plain: Opcode) -> Opcode:
    """An instruction that has a form with `.cc` besides the table's own forms."""

    def build(decoder: Decoder, instruction: Instruction) -> Step:
        if "cc" in instruction.modifiers:
            return _build(decoder, instruction)
        return plain.build(decoder, instruction)

    return Opcode(plain.name, plain.kind, build)


WITH_CARRY = ("add", "sub", "mad")
"""Instructions of other files that also have a form with `.cc`."""

OPCODES: tuple[Opcode, ...] = (
    Opcode("addc", "alu", _build),
    Opcode("subc", "alu", _build),
    Opcode("madc", "alu", _build),
)
