"""cp.async and its groups (PTX ISA 9.7.9.25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.copies import Copy
from prism.simulator.instructions.mbarrier import bulk, track_copies
from prism.simulator.instructions.table import Opcode, Step
from prism.simulator.memory import check_alignment
from prism.simulator.sanitizer import PENDING
from prism.simulator.syntax import Address, Instruction, Negated, Operand, Register
from prism.simulator.types import TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_SIZES = {"ca": (4, 8, 16), "cg": (16,)}
_HINTS = ("L2::64B", "L2::128B", "L2::256B")


def _cp(decoder: Decoder, instruction: Instruction) -> Step:
    words = instruction.modifiers
    if words[:1] != ("async",):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    if words[1:2] == ("bulk",):
        return bulk(decoder, instruction)
    if words[1:2] == ("mbarrier",):
        return track_copies(decoder, instruction)
    if words == ("async", "commit_group"):
        return _commit(decoder, instruction)
    if words in (("async", "wait_group"), ("async", "wait_all")):
        return _wait(decoder, instruction)
    rest = [w for w in words[1:] if w not in _HINTS and w not in ("L2::cache_hint",)]
    if (
        len(rest) != 3
        or rest[0] not in _SIZES
        or rest[1:]
        not in (
            ["shared", "global"],
            ["shared::cta", "global"],
        )
    ):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    return _copy(decoder, instruction, rest[0])


def _copy(decoder: Decoder, instruction: Instruction, cache: str) -> Step:
    """`cp.async.{ca,cg}.shared.global [dst], [src], size{, src-size}{, cache-policy}`."""
    operands = list(instruction.operands)
    if "L2::cache_hint" in instruction.modifiers:
        policy = operands.pop() if len(operands) > 3 else None
        if not isinstance(policy, Register) or policy.type.bits != 64:
            raise decoder.error("expected a cache policy of 64 bits")
    if not 3 <= len(operands) <= 4 or not isinstance(operands[1], Address):
        raise decoder.error(f"'{instruction.mnemonic}' takes 3 or 4 operands")
    size = decoder.constant_value(operands[2], "the copy size")
    if size not in _SIZES[cache]:
        raise decoder.error(f"copy size {size} of '.{cache}' is not one of {_SIZES[cache]}")
    target, target_shift = decoder.address(operands[0], "shared")
    source, source_shift = decoder.address(operands[1], "global")
    count = _count(decoder, operands[3]) if len(operands) > 3 else None
    line = instruction.line

    def start(r: list[Array], m: Array | None, x: Machine) -> None:
        to = x.shared.offsets(x, r[target], target_shift, size, line)
        x.meter.shared(x, to, size)
        if x.shared_state is not None:
            x.shared_state.mark(x, to, size, PENDING, line)
        if x.races is not None:
            x.races.write(x, to, size, line)
        number = None if count is None else _bytes(r[count[0]], count[1], size)
        at = _source_offsets(x, r[source], source_shift, size, number, line)
        moved = size * x.active // max(x.active_blocks(), 1)
        copy = Copy(size, to, at, number, x.exact, x.copies.committed, line, moved)
        x.copies.start(x, copy)

    return start


def _count(decoder: Decoder, operand: Operand) -> tuple[int, bool | None]:
    """Slot of the source size; None: read it as a size, else as an ignore-src of that value."""
    if isinstance(operand, Negated):
        return decoder.source(operand.register, TYPES["pred"]), False
    if isinstance(operand, Register) and operand.type.kind == "p":
        return decoder.source(operand, TYPES["pred"]), True
    return decoder.source(operand, TYPES["b32"]), None


def _bytes(value: Array, ignoring: bool | None, size: int) -> Array:
    """How many bytes come from the source, by lane."""
    if ignoring is None:
        return np.minimum(value, np.uint32(size)).astype(np.int64)
    return np.where(value == ignoring, 0, size).astype(np.int64)


def _source_offsets(
    x: Machine, address: Array, shift: int, size: int, count: Array | None, line: int
) -> Array:
    """Checked source offsets; lanes that read nothing may hold any address."""
    if count is None or (count.size == 1 and int(count.flat[0]) >= size):
        at = x.memory.offsets(x, address, shift, size, line)
        x.meter.read(x, at, size)
        x.memory.check_written(x, at, size, line)
        return at
    exact, active = x.exact, x.active
    whole = np.zeros(np.broadcast_shapes(address.shape, count.shape), np.int64)
    try:
        # Lanes by how much they read, each amount checked as an access of that size.
        for amount in np.unique(count):
            lanes = count == amount if exact is None else (count == amount) & exact
            if amount == 0 or not lanes.any():
                continue
            x.exact, x.active = lanes, x.lanes(lanes)
            at = x.memory.offsets(x, address, shift, 1, line)
            check_alignment(x, at, size, line, "global")
            x.memory.offsets(x, address, shift + int(amount) - 1, 1, line)
            x.meter.read(x, at, int(amount))
            whole = np.where(lanes, at, whole)
    finally:
        x.exact, x.active = exact, active
    return whole


def _commit(decoder: Decoder, instruction: Instruction) -> Step:
    decoder.expect_operands(instruction, 0)

    def commit(r: list[Array], m: Array | None, x: Machine) -> None:
        x.copies.commit(x, m)

    return commit


def _wait(decoder: Decoder, instruction: Instruction) -> Step:
    everything = instruction.modifiers[1] == "wait_all"
    decoder.expect_operands(instruction, 0 if everything else 1)
    most = (
        None if everything else decoder.constant_value(instruction.operands[0], "the group count")
    )
    if most is not None and most < 0:
        raise decoder.error(f"the group count {most} is negative")

    def wait(r: list[Array], m: Array | None, x: Machine) -> None:
        x.copies.wait(x, most)

    return wait


OPCODES: tuple[Opcode, ...] = (Opcode("cp", "cp.async", _cp),)
