"""Block-wide barriers (PTX ISA 9.7.13.1, barrier)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from prism.simulator.errors import DeadlockError, DivergenceError
from prism.simulator.types import Array

if TYPE_CHECKING:
    from prism.simulator.machine import Machine


@dataclass(frozen=True)
class Reduction:
    """`bar.red`: how the threads' predicates combine, and the register that gets the result."""

    name: str
    destination: int | None

    def of(self, values: Array, come: Array) -> Array:
        """The result per block, (blocks, 1); arrays of shape (blocks, threads)."""
        if self.name == "popc":
            return (values & come).sum(axis=1, keepdims=True).astype(np.uint32)
        if self.name == "and":
            return np.logical_and.reduce(values | ~come, axis=1, keepdims=True)
        return np.logical_or.reduce(values & come, axis=1, keepdims=True)


@dataclass
class _Arrival:
    """Threads that wait at one barrier instruction; `resume` is where they go on."""

    line: int
    resume: int
    aligned: bool
    mask: Array
    expected: int | None
    offered: tuple[Reduction, Array] | None


class Barriers:
    """The threads that wait at barriers, by barrier number."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[_Arrival]] = {}

    def arrive(
        self,
        x: Machine,
        number: int,
        expected: int | None,
        resume: int,
        line: int,
        *,
        aligned: bool,
        waits: bool = True,
        offered: tuple[Reduction, Array] | None = None,
    ) -> int:
        """
        The running group comes to a barrier.

        Returns where it goes on, or -1 if it has to wait. `expected` is the number of threads of
        the barrier, None for all that have not ended. Without `waits` the threads are counted and
        go on. `offered` is a reduction with the predicate of each thread.
        """
        if expected is None and x.active == x.live and number not in self.waiting and waits:
            if x.races is not None:
                x.races.next_interval(None)
            x.meter.total.barriers += x.active_blocks()
            if offered is not None:
                come = x.full(x.exact)
                _reduce(x, [(offered[0], np.broadcast_to(offered[1], x.shape), come)], None)
            return resume
        going_on = resume if waits else -1
        arrival = _Arrival(line, going_on, aligned, x.full(x.exact), expected, offered)
        self.waiting.setdefault(number, []).append(arrival)
        if not waits:
            x.place(resume, x.exact)
        self.release(x)
        return -1

    def release(self, x: Machine) -> None:
        """Lets the threads of every completed barrier go on."""
        for number in list(self.waiting):
            arrivals = self.waiting[number]
            come = np.logical_or.reduce([arrival.mask for arrival in arrivals])
            expected = arrivals[0].expected
            if expected is None:
                gone = np.False_ if x.dead is None else x.dead
                complete = (come | gone).all(axis=1) & come.any(axis=1)
            else:
                number_come = sum(a.mask.sum(axis=1) for a in arrivals)
                complete = np.asarray(number_come >= expected)
            if not complete.any():
                continue
            self._check_warps(x, arrivals, complete)
            x.meter.total.barriers += int(np.count_nonzero(complete))
            self._order_accesses(x, come, complete)
            reducing = [
                (a.offered[0], np.broadcast_to(a.offered[1], x.shape), a.mask)
                for a in arrivals
                if a.offered is not None
            ]
            if reducing:
                _reduce(x, reducing, complete[:, None])
            kept: list[_Arrival] = []
            for arrival in arrivals:
                through = arrival.mask & complete[:, None]
                if arrival.resume >= 0 and through.any():
                    x.place(arrival.resume, through)
                arrival.mask = arrival.mask & ~complete[:, None]
                if arrival.mask.any():
                    kept.append(arrival)
            if kept:
                self.waiting[number] = kept
            else:
                del self.waiting[number]

    def _order_accesses(self, x: Machine, come: Array, complete: Array) -> None:
        if x.races is None:
            return
        gone = np.False_ if x.dead is None else x.dead
        if (come | gone)[complete].all():
            x.races.next_interval(None if complete.all() else complete)
        else:
            x.races.stop()

    def _check_warps(self, x: Machine, arrivals: list[_Arrival], complete: Array) -> None:
        """All threads of a warp must have come through the same aligned barrier instruction."""
        if len(arrivals) == 1 or not any(arrival.aligned for arrival in arrivals):
            return
        ways = np.zeros(x.shape, np.int64)
        for way, line in enumerate(sorted({(a.line, a.resume) for a in arrivals}), start=1):
            for arrival in arrivals:
                if (arrival.line, arrival.resume) == line:
                    ways[arrival.mask & complete[:, None]] = way
        warps = ways.reshape(x.blocks, x.warps, 32)
        highest = warps.max(axis=2, keepdims=True)
        torn = ((warps != highest) & (warps != 0)).reshape(x.shape)
        if torn.any():
            lane = tuple(int(i) for i in np.argwhere(torn)[0])
            lines = sorted({arrival.line for arrival in arrivals})
            x.fault(
                DivergenceError,
                lines[0],
                f"threads of one warp meet at different barrier instructions, lines {lines}",
                lane,
            )

    def deadlock(self, x: Machine) -> NoReturn:
        """Nothing can run and these threads still wait."""
        number, arrivals = min(self.waiting.items())
        come = np.logical_or.reduce([arrival.mask for arrival in arrivals])
        block = int(np.argmax(come.any(axis=1)))
        lane = (block, int(np.argmax(come[block])))
        expected = arrivals[0].expected
        wanted = "all threads of the block" if expected is None else f"{expected} threads"
        x.fault(
            DeadlockError,
            arrivals[0].line,
            f"barrier {number} waits for {wanted}, {int(come[block].sum())} came",
            lane,
        )


def _reduce(
    x: Machine, offers: list[tuple[Reduction, Array, Array]], complete: Array | None
) -> None:
    """
    Gives the threads of complete barriers the result over all of them.

    Each offer has the threads' values and which threads made it; instructions in several places may
    take part in one barrier.
    """
    come = np.logical_or.reduce([mask for _, _, mask in offers])
    values = np.logical_or.reduce([value & mask for _, value, mask in offers])
    for reduction, _, mask in offers:
        d = reduction.destination
        if d is not None:
            lanes = mask if complete is None else mask & complete
            x.registers[d] = np.where(lanes, reduction.of(values, come), x.registers[d])
