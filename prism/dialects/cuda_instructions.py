"""
The table of PTX instructions that compute registers from registers: one entry per instruction.

The `cuda` dialect makes one op of each entry, named `cuda.` and the mnemonic; the PTX printer
prints the entry's template. Memory, matrix, shuffle and control instructions carry attributes and
stand in `prism/dialects/cuda.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import bf16, f16, f32, i1, i32, i64
from xdsl.ir import Attribute

from prism.dialects.cuda_types import GLOBAL, SHARED


@dataclass(frozen=True, slots=True)
class Instruction:
    """
    One pure PTX instruction (PTX ISA section in the table's comments).

    `template` has `{r0}`, `{r1}` for results, `{a0}`.. for operands and `{smem}` for the kernel's
    shared memory.
    """

    name: str
    operands: tuple[Attribute, ...]
    results: tuple[Attribute, ...]
    template: str


def _plain(
    mnemonic: str, operands: tuple[Attribute, ...], result: Attribute, name: str | None = None
) -> Instruction:
    """An instruction printed as `mnemonic result, operands;`."""
    registers = ["{r0}", *(f"{{a{index}}}" for index in range(len(operands)))]
    return Instruction(name or mnemonic, operands, (result,), f"{mnemonic} {', '.join(registers)};")


def _same(mnemonic: str, element: Attribute, arity: int) -> Instruction:
    """An instruction whose operands and result have one type."""
    return _plain(mnemonic, (element,) * arity, element)


def _special(register: str) -> Instruction:
    """A read of a special register (PTX ISA 10)."""
    return Instruction(register, (), (i32,), f"mov.u32 {{r0}}, %{register};")


_TABLE = (
    # 10: special registers
    _special("tid.x"),
    _special("ctaid.x"),
    _special("ctaid.y"),
    _special("ctaid.z"),
    # 9.7.1: integer arithmetic
    _same("add.s32", i32, 2),
    _same("sub.s32", i32, 2),
    _same("mul.lo.s32", i32, 2),
    _same("mad.lo.s32", i32, 3),
    _same("div.u32", i32, 2),
    _same("rem.u32", i32, 2),
    _same("min.s32", i32, 2),
    _same("add.s64", i64, 2),
    _plain("mul.wide.u32", (i32, i32), i64),
    _plain("mad.wide.u32", (i32, i32, i64), i64),
    # 9.7.8: logic and shift
    _same("and.b32", i32, 2),
    _same("or.b32", i32, 2),
    _same("xor.b32", i32, 2),
    _same("shl.b32", i32, 2),
    _same("shr.u32", i32, 2),
    _same("and.pred", i1, 2),
    # 9.7.6: comparison and selection
    _plain("setp.lt.s32", (i32, i32), i1),
    _plain("setp.eq.s32", (i32, i32), i1),
    _plain("selp.f32", (f32, f32, i1), f32),
    _plain("selp.b32", (i32, i32, i1), i32),
    # 9.7.3: floating point; approximate functions follow the full range of f32
    _same("add.f32", f32, 2),
    _same("sub.f32", f32, 2),
    _same("mul.f32", f32, 2),
    _same("fma.rn.f32", f32, 3),
    _same("div.full.f32", f32, 2),
    _same("neg.f32", f32, 1),
    _same("max.NaN.f32", f32, 2),
    _same("min.NaN.f32", f32, 2),
    _same("rcp.approx.f32", f32, 1),
    _same("sqrt.approx.f32", f32, 1),
    _same("rsqrt.approx.f32", f32, 1),
    _same("ex2.approx.f32", f32, 1),
    _same("lg2.approx.f32", f32, 1),
    # 9.7.9: conversion, packing
    _plain("cvt.f32.f16", (f16,), f32),
    _plain("cvt.rn.f16.f32", (f32,), f16),
    # the first operand of a packing conversion is the upper half
    _plain("cvt.rn.f16x2.f32", (f32, f32), i32),
    _plain("cvt.rn.bf16.f32", (f32,), bf16),
    _plain("cvt.rn.bf16x2.f32", (f32, f32), i32),
    # bf16 is the upper half of an f32: its bits, and those of an i32 as f32
    _plain("cvt.u32.u16", (bf16,), i32, "bits.bf16"),
    _plain("mov.b32", (i32,), f32, "bits.f32"),
    Instruction("unpack.f16", (i32,), (f16, f16), "mov.b32 {{{r0}, {r1}}}, {a0};"),
    # 6.4: addresses
    Instruction("shared.base", (), (SHARED,), "mov.u32 {r0}, {smem};"),
    _plain("add.s32", (SHARED, i32), SHARED, "advance.shared"),
    _plain("add.s64", (GLOBAL, i64), GLOBAL, "advance.global"),
)

INSTRUCTIONS: dict[str, Instruction] = {entry.name: entry for entry in _TABLE}
"""Every entry by name."""
