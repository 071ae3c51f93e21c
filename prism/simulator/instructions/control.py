"""Control flow and block barriers (PTX ISA 9.7.12, 9.7.13.1): how basic blocks end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.barriers import Reduction
from prism.simulator.errors import DivergenceError, SimulatorError
from prism.simulator.syntax import Instruction, Label, Negated
from prism.simulator.types import TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine, Terminator


@dataclass(frozen=True)
class ControlOpcode:
    """An instruction that ends a basic block; `build` gives its terminator."""

    name: str
    kind: str
    build: Callable[[Decoder, Instruction], Terminator]


def _condition(decoder: Decoder, instruction: Instruction) -> Callable[[Machine], Array] | None:
    """What makes the guard's value in all lanes, None without a guard."""
    if instruction.guard is None:
        return None
    guard = decoder.source(instruction.guard, TYPES["pred"])
    if instruction.guard_negated:
        return lambda x: ~x.registers[guard]
    return lambda x: x.registers[guard]


def _allow(decoder: Decoder, instruction: Instruction, *modifiers: str) -> None:
    for modifier in instruction.modifiers:
        if modifier not in modifiers:
            raise decoder.error(f"unsupported modifier '.{modifier}' of '{instruction.opcode}'")


def _bra(decoder: Decoder, instruction: Instruction) -> Terminator:
    _allow(decoder, instruction, "uni")
    decoder.expect_operands(instruction, 1)
    target = decoder.block_at(instruction.operands[0])
    otherwise = decoder.next_block
    condition = _condition(decoder, instruction)
    if condition is None:
        return lambda x: target
    return lambda x: x.branch(condition(x), target, otherwise)


def _brx(decoder: Decoder, instruction: Instruction) -> Terminator:
    """`brx.idx index, list`: a jump through a `.branchtargets` list."""
    _allow(decoder, instruction, "idx", "uni")
    decoder.expect_operands(instruction, 2)
    table = instruction.operands[1]
    lists = decoder.frame.function.branch_targets
    if not isinstance(table, Label) or table.name not in lists or instruction.guard is not None:
        raise decoder.error("expected a label of .branchtargets and no guard")
    targets = [decoder.block_at(label) for label in lists[table.name]]
    index = decoder.source(instruction.operands[0], TYPES["u32"])
    line = instruction.line

    def jump(x: Machine) -> int:
        chosen = x.registers[index]
        lanes = np.ones((1, 1), np.bool_) if x.exact is None else x.exact
        if ((chosen >= len(targets)) & lanes).any():
            x.fault(SimulatorError, line, f"branch index beyond {len(targets)} targets")
        for number, target in enumerate(targets):
            going = (chosen == number) & lanes
            if going.any():
                x.place(target, going)
        return -1

    return jump


def _return(decoder: Decoder, instruction: Instruction) -> Terminator:
    _allow(decoder, instruction, "uni")
    decoder.expect_operands(instruction, 0)
    after = decoder.return_block() if instruction.opcode == "ret" else None
    otherwise = decoder.next_block
    condition = _condition(decoder, instruction)

    def end(x: Machine) -> int:
        if condition is not None:
            return _end_some(x, condition(x), otherwise)
        x.finish()
        return -1

    if after is None:
        return end
    if condition is None:
        return lambda x: after
    return lambda x: x.branch(condition(x), after, otherwise)


def _end_some(x: Machine, on: Array, otherwise: int) -> int:
    """The lanes where `on` holds end, the others go on."""
    lanes = on if x.exact is None else on & x.exact
    going = x.lanes(lanes)
    if going == 0:
        return otherwise
    if going < x.active:
        x.place(otherwise, ~on if x.exact is None else x.exact & ~on)
        x.exact, x.active = lanes, going
    x.finish()
    return -1


def _trap(decoder: Decoder, instruction: Instruction) -> Terminator:
    condition = _condition(decoder, instruction)
    otherwise = decoder.next_block
    line = instruction.line

    def stop(x: Machine) -> int:
        if condition is not None:
            lanes = condition(x) if x.exact is None else condition(x) & x.exact
            if not lanes.any():
                return otherwise
            x.exact, x.active = lanes, x.lanes(lanes)
        x.fault(SimulatorError, line, "the kernel executed a trap")

    return stop


def _barrier(decoder: Decoder, instruction: Instruction) -> Terminator:
    """`bar.sync`, `bar.arrive`, `bar.red`, and the same of `barrier{.cta}`."""
    if instruction.opcode == "barrier" and "cluster" in instruction.modifiers[:1]:
        return _cluster_barrier(decoder, instruction)
    words = [w for w in instruction.modifiers if w not in ("cta", "aligned")]
    operands = list(instruction.operands)
    reduction: Reduction | None = None
    value = 0
    negated = False
    if tuple(words) in _REDUCTIONS:
        decoder.expect_operands(instruction, 3, 4)
        scalar, reduction_name = _REDUCTIONS[tuple(words)]
        target = decoder.destination(operands.pop(0), TYPES[scalar])
        operand = operands.pop()
        negated = isinstance(operand, Negated)
        register = operand.register if isinstance(operand, Negated) else operand
        value = decoder.source(register, TYPES["pred"])
        reduction = Reduction(reduction_name, target)
    elif words not in (["sync"], ["arrive"]):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    else:
        decoder.expect_operands(instruction, 1, 2)
    number = decoder.source(operands[0], TYPES["b32"])
    expected: int | None = None
    if len(operands) == 2:
        expected = decoder.constant_value(operands[1], "the thread count")
        if expected % 32 or not 32 <= expected <= 1024:
            raise decoder.error(f"thread count {expected} is not a multiple of 32 up to 1024")
    waits = words != ["arrive"]
    if not waits and expected is None:
        raise decoder.error(f"'{instruction.mnemonic}' needs a thread count")
    aligned = instruction.opcode == "bar" or "aligned" in instruction.modifiers
    resume = decoder.next_block
    line = instruction.line
    condition = _condition(decoder, instruction)

    def meet(x: Machine) -> int:
        if condition is not None:
            on = condition(x)
            lanes = on if x.exact is None else on & x.exact
            going = x.lanes(lanes)
            if going == 0:
                return resume
            if going < x.active:
                if aligned:
                    _expect_whole_warps(x, lanes, line)
                x.place(resume, ~on if x.exact is None else x.exact & ~on)
                x.exact, x.active = lanes, going
        numbers = x.registers[number]
        if numbers.size > 1 and (numbers != numbers.flat[0]).any():
            x.fault(SimulatorError, line, "unsupported: a barrier number that differs by thread")
        which = int(numbers.flat[0])
        if which > 15:
            x.fault(SimulatorError, line, f"barrier number {which} is beyond 15")
        offered: tuple[Reduction, Array] | None = None
        if reduction is not None:
            offered = reduction, ~x.registers[value] if negated else x.registers[value]
        return x.barriers.arrive(
            x, which, expected, resume, line, aligned=aligned, waits=waits, offered=offered
        )

    return meet


_CLUSTER_BARRIER = 16
"""Beyond the numbers that a program can name."""


def _cluster_barrier(decoder: Decoder, instruction: Instruction) -> Terminator:
    """
    `barrier.cluster.{arrive,wait}`, for clusters of one block: its threads meet at the wait.

    Each arrival must be waited for before the next, as the ISA demands.
    """
    words = [w for w in instruction.modifiers[1:] if w not in ("acquire", "release", "relaxed")]
    aligned = words[1:] == ["aligned"]
    if words[:1] not in (["arrive"], ["wait"]) or (words[1:] and not aligned):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 0)
    if instruction.guard is not None:
        raise decoder.error(f"unsupported guard of '{instruction.mnemonic}'")
    resume, line = decoder.next_block, instruction.line
    if words[0] == "arrive":
        return lambda x: resume
    return lambda x: x.barriers.arrive(x, _CLUSTER_BARRIER, None, resume, line, aligned=aligned)


_REDUCTIONS: dict[tuple[str, ...], tuple[str, str]] = {
    ("red", "popc", "u32"): ("u32", "popc"),
    ("red", "and", "pred"): ("pred", "and"),
    ("red", "or", "pred"): ("pred", "or"),
}
"""Barriers that reduce a predicate: the type of the result and how."""


def _expect_whole_warps(x: Machine, lanes: Array, line: int) -> None:
    """An aligned barrier under a guard: the live lanes of each warp must agree."""
    on = x.full(lanes).reshape(x.blocks, x.warps, 32)
    off = ~on if x.dead is None else ~on & ~x.full(x.dead).reshape(on.shape)
    torn = on & off.any(axis=2, keepdims=True)
    if torn.any():
        lane = tuple(int(i) for i in np.argwhere(torn.reshape(x.shape))[0])
        x.fault(DivergenceError, line, "a barrier that only some threads of a warp reach", lane)


CONTROL_OPCODES: tuple[ControlOpcode, ...] = (
    ControlOpcode("bra", "branch", _bra),
    ControlOpcode("brx", "branch", _brx),
    ControlOpcode("ret", "branch", _return),
    ControlOpcode("exit", "branch", _return),
    ControlOpcode("trap", "branch", _trap),
    ControlOpcode("bar", "bar", _barrier),
    ControlOpcode("barrier", "bar", _barrier),
)
