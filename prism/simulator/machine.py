"""
Runs a decoded program for a chunk of the grid, all threads at once.

Every register is an array of shape (blocks or 1, threads or 1): a value that is the same in all
blocks or for all threads is kept once. `threads` is the block size rounded up to whole warps; lanes
beyond the block never run. Arrays are never changed in place, so registers may share them.

Threads at the same place form a group, a place being the index of a basic block; the group at the
lowest place runs next, so that diverged threads meet again as early as possible. Every so often the
group that waited longest runs instead: a spin lock's holder gets on while others spin below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from prism.simulator.barriers import Barriers
from prism.simulator.copies import Copies
from prism.simulator.dependence import Loop
from prism.simulator.errors import BudgetError, DeadlockError, SimulatorError
from prism.simulator.instructions.table import Step
from prism.simulator.memory import GlobalMemory, Window
from prism.simulator.meter import Meter
from prism.simulator.phases import Phases
from prism.simulator.races import Races
from prism.simulator.sanitizer import SharedState
from prism.simulator.types import Array

FAIR_EVERY = 64
"""After so many choices among several groups, the one that waited longest has its turn."""

Dim3 = tuple[int, int, int]

Terminator = Callable[["Machine"], int]
"""
The end of a basic block: gives the index of the one next for all the group, or -1 once it has
placed its threads itself.
"""


@dataclass(frozen=True)
class Block:
    """
    A basic block.

    `kinds` counts the instructions without a guard, `warp_kinds` all of them; `flops` is of its
    matrix instructions per warp and `load_bytes` what a thread has under way at most, see
    `dependence`. `gate` is the mask of lanes that its first instruction waits for, per warp.
    """

    line: int
    steps: tuple[Step, ...]
    terminator: Terminator
    kinds: dict[str, int]
    warp_kinds: dict[str, int]
    flops: int
    load_bytes: int
    gate: Callable[[list[Array]], Array] | None = None


@dataclass(frozen=True)
class Program:
    """A decoded kernel. `slots` are initial registers: arrays, or what makes them."""

    file: str
    blocks: tuple[Block, ...]
    slots: tuple[Array | Callable[[Machine], Array], ...]
    shared_size: int
    shared_guards: tuple[tuple[int, int], ...]
    local_size: int
    loops: tuple[Loop, ...]


@dataclass(frozen=True)
class Geometry:
    """A launch: grid and block sizes, parameter bytes and dynamic shared memory."""

    grid: Dim3
    block: Dim3
    parameters: Array
    dynamic_smem: int

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


@dataclass
class Budget:
    """Vector instructions that a launch may still execute, over all its machines."""

    left: int
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = self.left


class Machine:
    """The state of one chunk of the grid: blocks [first_block, first_block + blocks)."""

    def __init__(
        self,
        program: Program,
        geometry: Geometry,
        chunk: range,
        memory: GlobalMemory,
        meter: Meter,
        budget: Budget,
        *,
        sanitize: bool,
    ) -> None:
        self.program = program
        self.geometry = geometry
        self.first_block = chunk.start
        self.blocks = len(chunk)
        self.warps = -(-geometry.threads // 32)
        self.threads = self.warps * 32
        self.shape = (self.blocks, self.threads)
        self.memory = memory
        self.meter = meter
        self.budget = budget
        self.sanitize = sanitize
        shared_size = program.shared_size + geometry.dynamic_smem
        blocks, threads = self.blocks, self.threads
        self.shared = Window(
            "shared",
            shared_size,
            blocks,
            lambda stride: np.arange(blocks, dtype=np.int64)[:, None] * stride,
        )
        self.local = Window(
            "local",
            program.local_size,
            blocks * threads if program.local_size else 0,
            lambda stride: np.arange(blocks * threads, dtype=np.int64).reshape(blocks, -1) * stride,
        )
        self.shared_state: SharedState | None = None
        self.races: Races | None = None
        if sanitize:
            guards = list(program.shared_guards)
            self.shared_state = SharedState(self.shared.stride, blocks, guards)
            if self.warps > 1:
                self.races = Races(self.shared.stride, blocks)
        self.copies = Copies()
        self.phases = Phases()
        self.barriers = Barriers()
        self.fragments: dict[tuple[int, ...], tuple[tuple[Array, ...], Array]] = {}
        # `dead` lanes have finished or never were; `exact` are the lanes of the running group
        # (None: every lane of the machine); `active` is their number.
        padded = geometry.threads != threads
        self.dead: Array | None = None
        if padded:
            self.dead = np.arange(threads)[None, :] >= geometry.threads
        self.live = blocks * geometry.threads
        self.exact: Array | None = None
        self.active = self.live
        self.ready: dict[int, Array | None] = {0: None if self.dead is None else ~self.dead}
        self.blocked: dict[int, Array | None] = {}
        self._choices = 0
        # Set by an instruction that waits in vain: others have their turn first.
        self.stalled = False
        self._yielded: set[int] = set()
        self.registers: list[Array] = [
            slot(self) if callable(slot) else slot for slot in program.slots
        ]

    # -- groups ---------------------------------------------------------------------------------

    def lanes(self, mask: Array | None) -> int:
        """How many lanes a mask holds."""
        if mask is None:
            return self.blocks * self.threads
        return int(np.count_nonzero(mask)) * (self.blocks * self.threads // mask.size)

    def _warps(self, mask: Array | None) -> int:
        """How many warps have a lane in a mask."""
        if mask is None or mask.shape[1] == 1:
            rows = self.blocks if mask is None else self.lanes(mask) // self.threads
            return rows * self.warps
        some = mask.reshape(len(mask), self.warps, 32).any(axis=2)
        return int(np.count_nonzero(some)) * (self.blocks // len(mask))

    def active_blocks(self) -> int:
        """How many blocks have a running lane."""
        if self.exact is None or self.exact.shape[0] == 1:
            return self.blocks
        return int(np.count_nonzero(self.exact.any(axis=1)))

    def full(self, mask: Array | None) -> Array:
        """A mask of shape (blocks, threads)."""
        return np.broadcast_to(np.True_ if mask is None else mask, self.shape)

    def place(self, at: int, mask: Array | None) -> None:
        """Puts threads at a place, together with those that are there already."""
        if at in self.blocked:
            self._merge(self.blocked, at, mask)
            mask = self.blocked.pop(at)
        self._merge(self.ready, at, mask)

    @staticmethod
    def _merge(groups: dict[int, Array | None], at: int, mask: Array | None) -> None:
        there = groups.get(at, False)
        if there is False:
            groups[at] = mask
        elif there is None or mask is None:
            groups[at] = None
        else:
            groups[at] = np.logical_or(there, mask)

    def finish(self) -> None:
        """The running group ends."""
        self.live -= self.active
        exact = np.ones((1, 1), np.bool_) if self.exact is None else self.exact
        self.dead = exact if self.dead is None else self.dead | exact
        self.barriers.release(self)

    def _choose(self) -> int:
        if len(self.ready) == 1:
            return next(iter(self.ready))
        self._choices += 1
        if self._choices % FAIR_EVERY == 0:
            return next(iter(self.ready))
        if self._yielded:
            others = [at for at in self.ready if at not in self._yielded]
            if others:
                return min(others)
            self._yielded.clear()
        return min(self.ready)

    def nobody_else_runs(self) -> bool:
        """Whether all other groups that could run wait in vain, too."""
        return all(at in self._yielded for at in self.ready)

    # -- execution ------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs until every thread has ended. Raises a SimulatorError on the first fault."""
        blocks = self.program.blocks
        registers = self.registers
        counts = [0] * len(blocks)
        warp_counts = [0] * len(blocks)
        budget = self.budget
        ready = self.ready
        with np.errstate(all="ignore"):
            while ready or self._wake():
                at = self._choose()
                exact = ready.pop(at)
                active = self.lanes(exact)
                # Lanes that ended never read a register again: their values need no care.
                merge = None if active == self.live else exact
                if merge is not None and blocks[at].gate is not None:
                    exact = merge = self._pass_gate(at, exact)
                    active = self.lanes(exact)
                    if not active:
                        continue
                self.exact, self.active = exact, active
                warps = self._warps(exact) if self.meter.on else 0
                self.stalled = False
                while True:
                    block = blocks[at]
                    counts[at] += active
                    warp_counts[at] += warps
                    budget.left -= len(block.steps) + 1
                    if budget.left < 0:
                        self._out_of_budget(block)
                    for step in block.steps:
                        step(registers, merge, self)
                    at = block.terminator(self)
                    if at < 0:
                        break
                    if ready or (merge is not None and blocks[at].gate is not None):
                        self.place(at, exact)
                        if self.stalled:
                            self._yielded.add(at)
                        break
        self.meter.count_blocks(self, blocks, counts, warp_counts)

    def branch(self, taken: Array, target: int, otherwise: int) -> int:
        """Splits the running group by a condition, true in the lanes that go to `target`."""
        if self.exact is not None:
            taken = taken & self.exact
        going = self.lanes(taken)
        if going == self.active:
            return target
        if going == 0:
            return otherwise
        self.place(target, taken)
        self.place(otherwise, ~taken if self.exact is None else self.exact & ~taken)
        return -1

    def _pass_gate(self, at: int, exact: Array | None) -> Array:
        """Holds back warps of which other lanes, not ended, have yet to come to this place."""
        gate = self.program.blocks[at].gate
        shape = (self.blocks, self.warps, 32)
        here = self.full(exact).reshape(shape)
        lacking = self.missing(gate(self.registers), here) if gate is not None else ~here
        held = np.repeat(lacking.any(axis=2), 32, axis=1) & self.full(exact)
        if held.any():
            self._merge(self.blocked, at, held)
        return self.full(exact) & ~held

    def missing(self, members: Array, here: Array) -> Array:
        """The live lanes that lanes `here` (blocks, warps, 32) wait for and that are not here."""
        members = np.broadcast_to(members, self.shape).reshape(here.shape)
        bits = np.bitwise_or.reduce(np.where(here, members, np.uint32(0)), axis=2)
        wanted = ((bits[..., None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)) != 0
        if self.dead is not None:
            wanted = wanted & ~np.broadcast_to(self.dead, self.shape).reshape(here.shape)
        return wanted & ~here

    def _wake(self) -> bool:
        """Called when no group is ready: lets waiting ones go on, or says why none can."""
        if not self.blocked and not self.barriers.waiting:
            return False
        # Lanes may have ended since these began to wait.
        blocked, self.blocked = self.blocked, {}
        for at, mask in blocked.items():
            through = self._pass_gate(at, mask)
            if through.any():
                self.ready[at] = through
        if not self.ready:
            self._deadlock()
        return True

    def _deadlock(self) -> NoReturn:
        if self.blocked:
            at, mask = min(self.blocked.items())
            lane = tuple(int(i) for i in np.argwhere(self.full(mask))[0])
            self.fault(
                DeadlockError,
                self.program.blocks[at].line,
                "a warp-wide instruction waits for lanes that wait elsewhere",
                lane,
            )
        self.barriers.deadlock(self)

    def _out_of_budget(self, block: Block) -> NoReturn:
        lane = tuple(int(i) for i in np.argwhere(self.full(self.exact))[0])
        self.fault(
            BudgetError,
            block.line,
            f"the budget of {self.budget.total} vector instructions is spent; an endless loop?",
            lane,
        )

    # -- faults ---------------------------------------------------------------------------------

    def thread_name(self, index: int) -> Dim3:
        """The (x, y, z) of a thread by its place in the block."""
        return unflatten(index, self.geometry.block)

    def fault(
        self,
        kind: type[SimulatorError],
        line: int,
        message: str,
        lane: tuple[int, ...] | None = None,
    ) -> NoReturn:
        """
        Raises an error that names the line and, if known, the block and thread.

        `lane` is an index into an array of shape (blocks or 1, threads or 1).
        """
        block = thread = None
        if lane is None and self.active:
            lane = tuple(int(i) for i in np.argwhere(self.full(self.exact))[0])
        if lane is not None:
            block = unflatten(self.first_block + lane[0], self.geometry.grid)
            thread = self.thread_name(lane[1])
        raise kind(message, file=self.program.file, line=line, block=block, thread=thread)


def unflatten(index: int, size: Dim3) -> Dim3:
    """The (x, y, z) of a linear index, x fastest."""
    x, y, _ = size
    return index % x, index // x % y, index // (x * y)
