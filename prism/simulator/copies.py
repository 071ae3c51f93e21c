"""
Asynchronous copies from global to shared memory (cp.async, PTX ISA 9.7.9.25).

They complete as late as a program may rely on: at the wait. Until then the destination is marked as
pending, so that a read without, or before, the wait is found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.memory import SHIFT
from prism.simulator.types import Array

if TYPE_CHECKING:
    from prism.simulator.machine import Machine


@dataclass
class Copy:
    """
    One cp.async of several lanes; all arrays have the machine's shape or broadcast to it.

    `count` is how many bytes come from the source (None: all `size`), the rest are zeros.
    `bytes` is how much it moves in one block.
    """

    size: int
    target: Array
    source: Array
    count: Array | None
    lanes: Array | None
    group: Array
    line: int
    bytes: int


class Copies:
    """The copies under way and, per thread, how many groups it has committed."""

    def __init__(self) -> None:
        self.pending: list[Copy] = []
        self.committed: Array = np.zeros((1, 1), np.int64)
        self._bytes = 0

    def start(self, x: Machine, copy: Copy) -> None:
        """Adds a copy of the running group."""
        self.pending.append(copy)
        if x.meter.on:
            self._bytes += copy.bytes
            total = x.meter.total
            total.copy_bytes_in_flight = max(total.copy_bytes_in_flight, self._bytes)

    def commit(self, x: Machine, merge: Array | None) -> None:
        more = self.committed + 1
        self.committed = more if merge is None else np.where(merge, more, self.committed)

    def wait(self, x: Machine, most: int | None) -> None:
        """
        The running group waits until at most `most` of its committed groups are under way.

        None waits for everything, also what is not committed (wait_all).
        """
        kept: list[Copy] = []
        for copy in self.pending:
            done: Array | None = copy.lanes
            if most is not None:
                arrived = copy.group < self.committed - most
                if not arrived.any():
                    kept.append(copy)
                    continue
                if not arrived.all():
                    done = arrived if done is None else done & arrived
            if x.exact is not None and x.active != x.live:
                done = x.exact if done is None else done & x.exact
            if done is not copy.lanes and done is not None:
                rest = ~done if copy.lanes is None else copy.lanes & ~done
                if rest.any():
                    kept.append(replace(copy, lanes=rest))
            _perform(x, copy, done)
        self.pending = kept
        self._bytes = sum(copy.bytes for copy in kept)


def _perform(x: Machine, copy: Copy, done: Array | None) -> None:
    if x.races is not None:
        # The data arrives in this barrier interval, so only a later one may read it elsewhere.
        exact, x.exact = x.exact, done
        try:
            x.races.write(x, copy.target, copy.size, copy.line)
        finally:
            x.exact = exact
    # One copy for all blocks and threads that have the same addresses is enough, but each block has
    # a shared memory of its own.
    target, source = np.broadcast_arrays(copy.target + x.shared.row, copy.source)
    count = (
        None
        if copy.count is None
        else np.broadcast_to(copy.count, np.broadcast_shapes(copy.count.shape, target.shape))
    )
    if count is not None:
        target, source = np.broadcast_to(target, count.shape), np.broadcast_to(source, count.shape)
    if done is not None:
        target, source, lanes = np.broadcast_arrays(target, source, done)
        count = None if count is None else np.broadcast_to(count, lanes.shape)[lanes]
        target, source = target[lanes], source[lanes]
    target, source = target.ravel(), source.ravel()
    shift = SHIFT[copy.size]
    slots = target >> shift
    if count is None:
        x.shared.views[copy.size][slots] = x.memory.views[copy.size].take(source >> shift)
    else:
        _perform_partly(x, copy.size, target, source, count.ravel())
    if x.shared_state is not None:
        uniform = done is None or done.shape[0] == 1
        x.shared_state.settle(target, copy.size, uniform=uniform)


def _perform_partly(x: Machine, size: int, target: Array, source: Array, count: Array) -> None:
    whole = count >= size
    shift = SHIFT[size]
    x.shared.views[size][target[~whole] >> shift] = 0
    x.shared.views[size][target[whole] >> shift] = x.memory.views[size].take(source[whole] >> shift)
    some = ~whole & (count > 0)
    if some.any():
        step = np.arange(size)
        wanted = step < count[some, None]
        x.shared.data[(target[some, None] + step)[wanted]] = x.memory.data.take(
            (source[some, None] + step)[wanted]
        )
