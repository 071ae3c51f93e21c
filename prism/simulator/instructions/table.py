"""What an entry of the instruction table is made of, and how regular instructions become steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.syntax import Instruction
from prism.simulator.types import TYPES, Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

Step = Callable[[list[Array], Array | None, "Machine"], None]
"""
One decoded instruction, called as step(registers, merge mask, machine).

The merge mask says which lanes take a result; None means that no lane that can still run is left
out. Steps that touch anything but registers look at `machine.exact`, which leaves out finished
lanes too.
"""

Raw = Callable[..., Array]
"""An operation from raw register arrays to a raw register array, lane by lane."""


def unary(function: Callable[[Array], Array]) -> Raw:
    """Gives a lambda of one operand its type."""
    return function


def binary(function: Callable[[Array, Array], Array]) -> Raw:
    """Gives a lambda of two operands its type."""
    return function


def ternary(function: Callable[[Array, Array, Array], Array]) -> Raw:
    """Gives a lambda of three operands its type."""
    return function


KindOf = str | Callable[[Instruction], str]


@dataclass(frozen=True)
class Opcode:
    """
    One instruction of the table.

    `kind` is how the meter counts it. `warp` marks instructions that wait for other lanes of the
    warp; `members` gives the operand with the mask of lanes to wait for (None: all 32).
    `flops` counts the arithmetic of a matrix instruction, for a whole warp.
    """

    name: str
    kind: KindOf
    build: Callable[[Decoder, Instruction], Step]
    warp: bool = False
    members: Callable[[Decoder, Instruction], int | None] | None = None
    flops: Callable[[Instruction], int] | None = None

    def kind_of(self, instruction: Instruction) -> str:
        return self.kind if isinstance(self.kind, str) else self.kind(instruction)


@dataclass(frozen=True)
class Form:
    """The modifiers of a regular instruction: its type and its flags."""

    type: ScalarType
    flags: frozenset[str]

    def one_of(self, *names: str) -> str:
        """The flag among `names` that is set, or ''."""
        return next((name for name in names if name in self.flags), "")


def _same(form: Form) -> ScalarType:
    return form.type


@dataclass(frozen=True)
class Variant:
    """
    A group of types for which a regular instruction has one implementation.

    `required`: exactly one of these modifiers must be there; `flags`: these may be. `result` and
    `sources` give the types of the operands where they differ from the instruction's type.
    """

    types: tuple[str, ...]
    arity: int
    implement: Callable[[Form], Raw]
    flags: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    result: Callable[[Form], ScalarType] = _same
    sources: Callable[[Form], tuple[ScalarType, ...]] | None = None


ROUNDINGS = ("rn", "rz", "rm", "rp")
"""Rounding modifiers for floats: to nearest even, toward zero, down, up."""


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def regular(name: str, kind: KindOf, *variants: Variant) -> Opcode:
    """An instruction `name.flags.type d, a, b, ...` that computes lane by lane."""

    def build(decoder: Decoder, instruction: Instruction) -> Step:
        *flags, type_name = instruction.modifiers or ("",)
        variant = next((v for v in variants if _fits(v, type_name, flags)), None)
        if variant is None:
            raise decoder.error(_complaint(variants, instruction, type_name, flags))
        form = Form(TYPES[type_name], frozenset(flags))
        if len(form.flags) != len(flags):
            raise decoder.error(f"a modifier is repeated in '{instruction.mnemonic}'")
        decoder.expect_operands(instruction, variant.arity + 1)
        types = (form.type,) * variant.arity if variant.sources is None else variant.sources(form)
        destination = decoder.destination(instruction.operands[0], variant.result(form))
        sources = [
            decoder.source(operand, scalar)
            for operand, scalar in zip(instruction.operands[1:], types, strict=True)
        ]
        return compute(variant.implement(form), destination, sources)

    return Opcode(name, kind, build)


def _fits(variant: Variant, type_name: str, flags: Iterable[str]) -> bool:
    flags = list(flags)
    required = sum(flag in variant.required for flag in flags)
    # At most one rounding, also where it may be left out.
    if sum(flag in ROUNDINGS for flag in flags) > 1:
        return False
    known = all(flag in variant.flags or flag in variant.required for flag in flags)
    return type_name in variant.types and known and required == bool(variant.required)


def _complaint(
    variants: tuple[Variant, ...], instruction: Instruction, type_name: str, flags: list[str]
) -> str:
    of_type = [v for v in variants if type_name in v.types]
    if not of_type:
        return f"'{instruction.opcode}' does not support the type '.{type_name}'"
    known = {flag for v in of_type for flag in (*v.flags, *v.required)}
    unknown = [flag for flag in flags if flag not in known]
    if unknown:
        return f"unsupported modifier '.{unknown[0]}' of '{instruction.opcode}.{type_name}'"
    return f"unsupported or missing modifier in '{instruction.mnemonic}'"


def compute(function: Raw, destination: int | None, sources: list[int]) -> Step:
    """A step that applies a raw function to registers; `destination` None drops the result."""
    if destination is None:
        return nothing
    d = destination
    if len(sources) == 1:
        (a,) = sources

        def step1(r: list[Array], m: Array | None, x: Machine) -> None:
            value = function(r[a])
            r[d] = value if m is None else np.where(m, value, r[d])

        return step1
    if len(sources) == 2:
        a, b = sources

        def step2(r: list[Array], m: Array | None, x: Machine) -> None:
            value = function(r[a], r[b])
            r[d] = value if m is None else np.where(m, value, r[d])

        return step2
    if len(sources) == 3:
        a, b, c = sources

        def step3(r: list[Array], m: Array | None, x: Machine) -> None:
            value = function(r[a], r[b], r[c])
            r[d] = value if m is None else np.where(m, value, r[d])

        return step3

    def general(r: list[Array], m: Array | None, x: Machine) -> None:
        value = function(*[r[s] for s in sources])
        r[d] = value if m is None else np.where(m, value, r[d])

    return general


def nothing(r: list[Array], m: Array | None, x: Machine) -> None:
    """An instruction without effect here: a hint, a fence, a dropped result."""


def write(r: list[Array], m: Array | None, destination: int | None, value: Array) -> None:
    """Gives a register its new value in the lanes of the merge mask."""
    if destination is not None:
        r[destination] = value if m is None else np.where(m, value, r[destination])
