"""
What can be said of a decoded program without running it: its innermost loops with the longest chain
of dependent instructions of one iteration, and how many bytes of loads a thread can have under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from prism.simulator.syntax import Instruction
from prism.simulator.types import TYPES


@dataclass
class Flow:
    """The registers (slots) that one instruction reads and writes, and the bytes that it loads."""

    reads: set[int] = field(default_factory=set[int])
    writes: set[int] = field(default_factory=set[int])
    loads: int = 0


@dataclass(frozen=True)
class Loop:
    """
    An innermost loop: basic blocks first to last, of which the last branches back.

    `chain` is the number of instructions on the longest path of one iteration through registers;
    `instructions` is how many there are. `line` is that of the first instruction.
    """

    first: int
    last: int
    line: int
    instructions: int
    chain: int


def loaded_bytes(instruction: Instruction, kind: str) -> int:
    """Bytes that a thread waits for after a load from global memory; 0 for anything else."""
    if kind not in ("ld.global", "ld.generic"):
        return 0
    count = next((int(m[1:]) for m in instruction.modifiers if m in ("v2", "v4")), 1)
    return count * TYPES[instruction.modifiers[-1]].bytes


def bytes_under_way(flows: Sequence[Flow]) -> int:
    """
    The most bytes of loads that a thread waits for at once in straight code.

    Loads return in order, so an instruction that needs one has all earlier ones as well.
    """
    pending: list[Flow] = []
    most = 0
    for flow in flows:
        needed = flow.reads | flow.writes
        last = max((i for i, load in enumerate(pending) if load.writes & needed), default=-1)
        pending = pending[last + 1 :]
        if flow.loads:
            pending.append(flow)
            most = max(most, sum(load.loads for load in pending))
    return most


def longest_chain(flows: Iterable[Flow]) -> int:
    """How many instructions the longest path through registers has, each executed once in order."""
    depth: dict[int, int] = {}
    longest = 0
    for flow in flows:
        length = 1 + max((depth.get(slot, 0) for slot in flow.reads), default=0)
        longest = max(longest, length)
        for slot in flow.writes:
            depth[slot] = length
    return longest


def innermost_loops(
    blocks: Sequence[Sequence[Flow]], lines: Sequence[int], back_edges: Iterable[tuple[int, int]]
) -> tuple[Loop, ...]:
    """Loops from the branches (from, to) that go back, without those that contain another."""
    spans = sorted({(to, at) for at, to in back_edges if to <= at})
    inner = [
        (first, last)
        for first, last in spans
        if not any(
            first <= other[0] and other[1] <= last and other != (first, last) for other in spans
        )
    ]
    loops: list[Loop] = []
    for first, last in inner:
        body = [flow for block in blocks[first : last + 1] for flow in block]
        loops.append(Loop(first, last, lines[first], len(body), longest_chain(body)))
    return tuple(loops)
