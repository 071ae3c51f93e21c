"""mbarrier (PTX ISA 9.7.13.15) and bulk copies that it tracks (9.7.9.25.5, not the tensor ones)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.access import spaces_of
from prism.simulator.errors import SimulatorError
from prism.simulator.instructions.table import Opcode, Step, nothing, write
from prism.simulator.phases import bulk_offsets, decode, store_bulk
from prism.simulator.syntax import Instruction, Operand, Sink
from prism.simulator.types import TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_ORDERS = {"relaxed", "acquire", "release", "acq_rel", "cta", "cluster"}
_SHARED = ("shared", "shared::cta", "shared::cluster")
"""A block is a cluster of its own here, so its addresses are those of the cluster."""


class _Place:
    """The address operand of an mbarrier instruction."""

    def __init__(self, decoder: Decoder, operand: Operand, space: str, line: int) -> None:
        self.slot, self.shift = decoder.address(operand, space)
        self.generic = not space
        self.line = line

    def offsets(self, x: Machine, *, begins: bool = False) -> Array:
        address = x.registers[self.slot]
        if self.generic:
            spaces = spaces_of(x, address, self.line)
            if len(spaces) != 1 or spaces[0][0] != "shared":
                x.fault(SimulatorError, self.line, "an mbarrier lies in shared memory")
            address = spaces[0][1]
        return x.phases.offsets(x, address, self.shift, self.line, begins=begins)


def _mbarrier(decoder: Decoder, instruction: Instruction) -> Step:
    words = [w for w in instruction.modifiers if w not in _ORDERS]
    space = "shared" if any(w in _SHARED for w in words) else ""
    words = [w for w in words if w not in _SHARED]
    if not words or words[-1] != "b64":
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    name, *flags = words[:-1]
    if name in ("init", "inval", "expect_tx", "complete_tx") and not flags:
        return _plain(decoder, instruction, name, space)
    if name in ("arrive", "arrive_drop") and flags in ([], ["expect_tx"], ["noComplete"]):
        return _arrive(decoder, instruction, space, flags, drops=name == "arrive_drop")
    if name in ("test_wait", "try_wait") and flags in ([], ["parity"]):
        return _wait(decoder, instruction, space, by_parity=bool(flags))
    if name == "pending_count" and not flags and not space:
        return _pending(decoder, instruction)
    raise decoder.error(f"unsupported '{instruction.mnemonic}'")


def _plain(decoder: Decoder, instruction: Instruction, name: str, space: str) -> Step:
    decoder.expect_operands(instruction, 1 if name == "inval" else 2)
    place = _Place(decoder, instruction.operands[0], space, instruction.line)
    value = decoder.slots.constant(0, 32)
    if name != "inval":
        value = decoder.source(instruction.operands[1], TYPES["u32"])
    none = decoder.slots.constant(0, 32)
    line = instruction.line

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        offset = place.offsets(x, begins=name == "init")
        if name == "init":
            x.phases.initialize(x, offset, r[value], line)
        elif name != "inval":
            amount = r[value].astype(np.int64)
            amount = amount if name == "expect_tx" else -amount
            x.phases.arrive(x, offset, r[none], amount, line, drops=False)

    return run


def _arrive(
    decoder: Decoder, instruction: Instruction, space: str, flags: list[str], *, drops: bool
) -> Step:
    """`mbarrier.arrive state, [p]{, count}`, with `.expect_tx` the bytes to come instead."""
    least = 3 if flags else 2
    operands = list(instruction.operands)
    decoder.expect_operands(instruction, least, 3)
    target = operands.pop(0)
    d = None if isinstance(target, Sink) else decoder.destination(target, TYPES["b64"])
    place = _Place(decoder, operands[0], space, instruction.line)
    one, none = decoder.slots.constant(1, 32), decoder.slots.constant(0, 32)
    value = decoder.source(operands[1], TYPES["u32"]) if len(operands) == 2 else one
    expects = flags == ["expect_tx"]
    line = instruction.line

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        offset = place.offsets(x)
        count, to_come = (r[one], r[value]) if expects else (r[value], r[none])
        state = x.phases.arrive(x, offset, count, to_come, line, drops=drops)
        if d is not None:
            r[d] = state if x.exact is None else np.where(x.exact, state, r[d])

    return run


def _wait(decoder: Decoder, instruction: Instruction, space: str, *, by_parity: bool) -> Step:
    """`mbarrier.try_wait p, [p], state or parity{, time}`: never suspends, so it may be false."""
    decoder.expect_operands(instruction, 3, 4)
    d = decoder.destination(instruction.operands[0], TYPES["pred"])
    place = _Place(decoder, instruction.operands[1], space, instruction.line)
    state = decoder.source(instruction.operands[2], TYPES["u32" if by_parity else "b64"])
    if len(instruction.operands) == 4:
        decoder.source(instruction.operands[3], TYPES["u32"])
    line = instruction.line

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        offset = place.offsets(x)
        phase = (r[state] & np.uint32(1)).astype(np.int64) if by_parity else decode(r[state])[3]
        write(r, m, d, x.phases.done(x, offset, phase, line))

    return run


def _pending(decoder: Decoder, instruction: Instruction) -> Step:
    decoder.expect_operands(instruction, 2)
    d = decoder.destination(instruction.operands[0], TYPES["u32"])
    state = decoder.source(instruction.operands[1], TYPES["b64"])

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        write(r, m, d, decode(r[state])[1].astype(np.uint32))

    return run


def track_copies(decoder: Decoder, instruction: Instruction) -> Step:
    """
    `cp.async.mbarrier.arrive{.noinc}.shared.b64 [p]`: arrives once the thread's copies are done.

    They are done here at this instruction, where the hardware may take longer.
    """
    words = [w for w in instruction.modifiers[2:] if w not in _SHARED]
    if words not in (["arrive", "b64"], ["arrive", "noinc", "b64"]):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 1)
    space = "shared" if len(words) < len(instruction.modifiers) - 2 else ""
    place = _Place(decoder, instruction.operands[0], space, instruction.line)
    one, none = decoder.slots.constant(1, 32), decoder.slots.constant(0, 32)
    line = instruction.line

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        offset = place.offsets(x)
        x.copies.wait(x, None)
        # Without `.noinc` the arrival is added to the pending ones first: nothing changes.
        if "noinc" in words:
            x.phases.arrive(x, offset, r[one], r[none], line, drops=False)

    return run


_TO_SHARED = ("global", "mbarrier::complete_tx::bytes")
_GROUPS = (("commit_group",), ("wait_group",), ("wait_group", "read"))


def bulk(decoder: Decoder, instruction: Instruction) -> Step:
    """`cp.async.bulk`: between global memory and the block's shared memory."""
    words = tuple(w for w in instruction.modifiers[2:] if w != "L2::cache_hint")
    hinted = len(words) < len(instruction.modifiers) - 2
    if words in _GROUPS:
        decoder.expect_operands(instruction, 0 if words == ("commit_group",) else 1)
        return nothing
    if words == ("prefetch", "L2", "global"):
        decoder.expect_operands(instruction, 2 + hinted)
        return nothing
    if words[:1] in (("shared::cluster",), ("shared::cta",)) and words[1:] == _TO_SHARED:
        return _to_shared(decoder, instruction, hinted)
    if words == ("global", "shared::cta", "bulk_group"):
        return _to_global(decoder, instruction, hinted)
    raise decoder.error(f"unsupported '{instruction.mnemonic}'")


def _to_shared(decoder: Decoder, instruction: Instruction, hinted: bool) -> Step:
    """`[target], [source], size, [mbarrier]{, policy}`."""
    decoder.expect_operands(instruction, 4 + hinted)
    operands = instruction.operands
    to, to_shift = decoder.address(operands[0], "shared")
    source, source_shift = decoder.address(operands[1], "global")
    size = decoder.source(operands[2], TYPES["u32"])
    place = _Place(decoder, operands[3], "shared", instruction.line)
    line = instruction.line

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        target = bulk_offsets(x, "shared", r[to], to_shift, r[size], line)
        start = bulk_offsets(x, "global", r[source], source_shift, r[size], line)
        barrier = np.broadcast_to(place.offsets(x), x.shape)
        x.phases.start(x, target, start, np.broadcast_to(r[size], x.shape), barrier, line)

    return run


def _to_global(decoder: Decoder, instruction: Instruction, hinted: bool) -> Step:
    """`[target], [source], size{, policy}`."""
    decoder.expect_operands(instruction, 3 + hinted)
    operands = instruction.operands
    to, to_shift = decoder.address(operands[0], "global")
    source, source_shift = decoder.address(operands[1], "shared")
    size = decoder.source(operands[2], TYPES["u32"])
    line = instruction.line

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        target = bulk_offsets(x, "global", r[to], to_shift, r[size], line)
        start = bulk_offsets(x, "shared", r[source], source_shift, r[size], line)
        store_bulk(x, target, start, r[size], line)

    return run


OPCODES: tuple[Opcode, ...] = (Opcode("mbarrier", "mbarrier", _mbarrier),)
