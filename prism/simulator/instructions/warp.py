"""Instructions across the lanes of a warp: shfl, vote, match, redux, elect (PTX ISA 9.7.13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.errors import DivergenceError
from prism.simulator.instructions.table import Opcode, Step, nothing, write
from prism.simulator.memory import first
from prism.simulator.syntax import Instruction, Negated, Pair, Sink
from prism.simulator.types import TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_LANES = np.arange(32, dtype=np.int64)
_B32 = TYPES["b32"]
_PRED = TYPES["pred"]


def by_warp(x: Machine, value: Array) -> Array:
    """A register as (blocks or 1, warps, 32)."""
    return np.broadcast_to(value, (value.shape[0], x.threads)).reshape(-1, x.warps, 32)


def per_lane(x: Machine, value: Array) -> Array:
    """(blocks or 1, warps) to a register: the same for all lanes of a warp."""
    return np.repeat(value, 32, axis=1)


def running(x: Machine) -> Array:
    """The running lanes as (blocks or 1, warps, 32)."""
    return by_warp(x, np.ones((1, 1), np.bool_) if x.exact is None else x.exact)


def ballot(lanes: Array) -> Array:
    """(rows, warps, 32) to the 32-bit masks (rows, warps)."""
    return np.packbits(lanes, axis=2, bitorder="little").view(np.uint32)[..., 0]


def member_bits(x: Machine, members: Array) -> Array:
    """Whether each lane is in its own member mask, as (blocks or 1, warps, 32)."""
    masks = by_warp(x, members)
    return (masks >> _LANES.astype(np.uint32)) & np.uint32(1) != 0


def _members(index: int) -> Callable[[Decoder, Instruction], int | None]:
    def slot(decoder: Decoder, instruction: Instruction) -> int | None:
        if len(instruction.operands) <= index:
            return None
        return decoder.source(instruction.operands[index], _B32)

    return slot


# -- shfl -------------------------------------------------------------------------------------


def _source_lane(mode: str, b: Array, c: Array, lane: Array) -> tuple[Array, Array]:
    """Source lanes and whether they are in range (PTX ISA 9.7.9.6, shfl.sync, semantics)."""
    distance, clamp = (b & np.uint32(31)).astype(np.int64), (c & np.uint32(31)).astype(np.int64)
    segment = ((c >> np.uint32(8)) & np.uint32(31)).astype(np.int64)
    highest = (lane & segment) | (clamp & ~segment)
    if mode == "up":
        source = lane - distance
        return source, source >= highest
    if mode == "idx":
        source = (lane & segment) | (distance & ~segment)
    else:
        source = lane + distance if mode == "down" else lane ^ distance
    return source, source <= highest


def _shfl(decoder: Decoder, instruction: Instruction) -> Step:
    words = instruction.modifiers
    if len(words) != 3 or words[0] != "sync" or words[2] != "b32":
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    mode = words[1]
    if mode not in ("up", "down", "bfly", "idx"):
        raise decoder.error(f"unsupported mode '.{mode}' of 'shfl'")
    decoder.expect_operands(instruction, 5)
    target = instruction.operands[0]
    value, flag = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    d, p = decoder.destination(value, _B32), decoder.destination(flag, _PRED)
    a, b, c = (decoder.source(operand, _B32) for operand in instruction.operands[1:4])
    line = instruction.line

    def shuffle(r: list[Array], m: Array | None, x: Machine) -> None:
        lane = np.arange(x.threads, dtype=np.int64)[None, :]
        source, inside = _source_lane(mode, r[b], r[c], lane & 31)
        source = np.where(inside, source, lane & 31) + (lane & ~31)
        if x.exact is not None and x.sanitize:
            _expect_active(x, source, line)
        write(r, m, d, _gather_lanes(r[a], source))
        write(r, m, p, inside)

    return shuffle


def _gather_lanes(value: Array, source: Array) -> Array:
    """value[block, source[block, lane]]."""
    if value.shape[1] == 1:
        return value
    if source.shape[0] == 1:
        return value.take(source[0], axis=1)
    if value.shape[0] == 1:
        return value[0].take(source)
    return np.take_along_axis(value, source, axis=1)


def _expect_active(x: Machine, source: Array, line: int) -> None:
    """What a lane that does not take part holds is undefined."""
    active = x.full(x.exact)
    bad = active & ~_gather_lanes(active, source)
    if bad.any():
        where = first(bad)
        lane = int(np.broadcast_to(source, bad.shape)[where]) % 32
        x.fault(DivergenceError, line, f"shfl reads lane {lane}, which is not active", where)


# -- votes ------------------------------------------------------------------------------------


def _vote(decoder: Decoder, instruction: Instruction) -> Step:
    words = instruction.modifiers
    if len(words) != 3 or words[0] != "sync":
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    mode, type_name = words[1], words[2]
    expected = "b32" if mode == "ballot" else "pred"
    if mode not in ("all", "any", "uni", "ballot") or type_name != expected:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 3)
    d = decoder.destination(instruction.operands[0], TYPES[expected])
    operand = instruction.operands[1]
    negated = isinstance(operand, Negated)
    a = decoder.source(operand.register if isinstance(operand, Negated) else operand, _PRED)
    members = decoder.source(instruction.operands[2], _B32)

    def vote(r: list[Array], m: Array | None, x: Machine) -> None:
        voters = running(x) & member_bits(x, r[members])
        value = by_warp(x, ~r[a] if negated else r[a])
        yes, no = value & voters, ~value & voters
        if mode == "ballot":
            result = ballot(yes)
        elif mode == "all":
            result = ~no.any(axis=2)
        elif mode == "any":
            result = yes.any(axis=2)
        else:
            result = ~(yes.any(axis=2) & no.any(axis=2))
        write(r, m, d, per_lane(x, np.asarray(result)))

    return vote


def _activemask(decoder: Decoder, instruction: Instruction) -> Step:
    if instruction.modifiers != ("b32",):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 1)
    d = decoder.destination(instruction.operands[0], _B32)

    def active(r: list[Array], m: Array | None, x: Machine) -> None:
        write(r, m, d, per_lane(x, ballot(running(x))))

    return active


def _match(decoder: Decoder, instruction: Instruction) -> Step:
    """`match.{any,all}.sync.{b32,b64} d{|p}, a, members`."""
    words = instruction.modifiers
    if (
        len(words) != 3
        or words[0] not in ("any", "all")
        or words[1:]
        not in (
            ("sync", "b32"),
            ("sync", "b64"),
        )
    ):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 3)
    target = instruction.operands[0]
    value, flag = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    d, p = decoder.destination(value, _B32), decoder.destination(flag, _PRED)
    a = decoder.source(instruction.operands[1], TYPES[words[2]])
    members = decoder.source(instruction.operands[2], _B32)

    def match(r: list[Array], m: Array | None, x: Machine) -> None:
        voters = running(x) & member_bits(x, r[members])
        values = by_warp(x, r[a])
        same = (values[..., :, None] == values[..., None, :]) & voters[..., None, :]
        masks = (same.astype(np.uint64) << _LANES.astype(np.uint64)).sum(axis=3).astype(np.uint32)
        if words[0] == "all":
            everyone = ballot(voters)[..., None]
            agreed = (masks == everyone) & voters
            masks = np.where(agreed, everyone, np.uint32(0))
            write(r, m, p, agreed.reshape(len(agreed), -1))
        write(r, m, d, masks.reshape(len(masks), -1))

    return match


_REDUCTIONS: dict[str, tuple[np.ufunc, dict[str, int]]] = {
    "add": (np.add, {"u32": 0, "s32": 0}),
    "min": (np.minimum, {"u32": 0xFFFFFFFF, "s32": 0x7FFFFFFF}),
    "max": (np.maximum, {"u32": 0, "s32": -0x80000000}),
    "and": (np.bitwise_and, {"b32": 0xFFFFFFFF}),
    "or": (np.bitwise_or, {"b32": 0}),
    "xor": (np.bitwise_xor, {"b32": 0}),
}


def _redux(decoder: Decoder, instruction: Instruction) -> Step:
    """`redux.sync.op.type d, a, members`."""
    words = (*instruction.modifiers, "", "")
    function, neutral = _REDUCTIONS.get(words[1], (np.add, {}))
    if len(instruction.modifiers) != 3 or words[0] != "sync" or words[2] not in neutral:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 3)
    scalar = TYPES[words[2]]
    d = decoder.destination(instruction.operands[0], scalar)
    a = decoder.source(instruction.operands[1], scalar)
    members = decoder.source(instruction.operands[2], _B32)
    none = scalar.dtype.type(neutral[words[2]])

    def reduce(r: list[Array], m: Array | None, x: Machine) -> None:
        voters = running(x) & member_bits(x, r[members])
        values = np.where(voters, by_warp(x, r[a]).view(scalar.dtype), none)
        result = function.reduce(values, axis=2, dtype=scalar.dtype).view(np.uint32)
        write(r, m, d, per_lane(x, result))

    return reduce


def _elect(decoder: Decoder, instruction: Instruction) -> Step:
    """`elect.sync d|p, members`: the lowest lane of the members is the leader."""
    if instruction.modifiers != ("sync",):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 2)
    target = instruction.operands[0]
    if not isinstance(target, Pair):
        raise decoder.error("expected a destination d|p")
    d, p = decoder.destination(target.first, _B32), decoder.destination(target.second, _PRED)
    members = decoder.source(instruction.operands[1], _B32)

    def elect(r: list[Array], m: Array | None, x: Machine) -> None:
        voters = running(x) & member_bits(x, r[members])
        leader = np.argmax(voters, axis=2)[..., None]
        write(r, m, p, ((_LANES == leader) & voters).reshape(len(voters), -1))
        write(r, m, d, per_lane(x, leader[..., 0].astype(np.uint32)))

    return elect


def _warp_barrier(decoder: Decoder, instruction: Instruction) -> Step:
    """`bar.warp.sync members`: the gate before the instruction is all there is to it."""
    if instruction.modifiers != ("sync",):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 1)
    decoder.source(instruction.operands[0], _B32)
    return nothing


OPCODES: tuple[Opcode, ...] = (
    Opcode("shfl", "shfl", _shfl, warp=True, members=_members(4)),
    Opcode("vote", "vote", _vote, warp=True, members=_members(2)),
    Opcode("match", "vote", _match, warp=True, members=_members(2)),
    Opcode("redux", "vote", _redux, warp=True, members=_members(2)),
    Opcode("elect", "vote", _elect, warp=True, members=_members(1)),
    Opcode("bar.warp", "bar", _warp_barrier, warp=True, members=_members(0)),
    Opcode("activemask", "vote", _activemask),
)
