"""
The state of every byte of shared memory: unwritten, written, or still owned by a cp.async.

While all blocks do the same to their shared memory, one row of states stands for all of them; the
first access that differs between blocks gives each its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.errors import (
    AsyncReadError,
    OutOfBoundsError,
    SimulatorError,
    UninitializedReadError,
)
from prism.simulator.memory import SHIFT, Views, first, views_of
from prism.simulator.types import Array

if TYPE_CHECKING:
    from prism.simulator.machine import Machine

UNWRITTEN, WRITTEN, PENDING, GUARD = 0, 1, 2, 4

_ALL_WRITTEN: dict[int, Array] = {
    width: view[:1] for width, view in views_of(np.full(16, WRITTEN, np.uint8)).items()
}
_PATTERNS: dict[int, Views] = {
    state: views_of(np.full(16, state, np.uint8)) for state in (UNWRITTEN, WRITTEN, PENDING)
}

_FAULTS: dict[int, tuple[type[SimulatorError], str]] = {
    UNWRITTEN: (UninitializedReadError, "nothing wrote it before"),
    PENDING: (AsyncReadError, "a cp.async to it is not waited for"),
    GUARD: (OutOfBoundsError, "it lies outside all variables"),
}


class SharedState:
    """States of the shared memory of `blocks` blocks, `stride` bytes each."""

    def __init__(self, stride: int, blocks: int, guards: list[tuple[int, int]]) -> None:
        self.stride = stride
        self.blocks = blocks
        self.rows = 1
        row = np.zeros(stride, np.uint8)
        for start, end in guards:
            row[start:end] = GUARD
        self.guarded = bool(guards)
        self.data: Array = row
        self.views = views_of(row)

    def _split(self) -> None:
        """Gives each block its own row."""
        if self.rows != self.blocks:
            self.data = np.tile(self.data, self.blocks)
            self.views = views_of(self.data)
            self.rows = self.blocks

    def _index(self, x: Machine, offset: Array) -> Array:
        if self.rows == 1:
            return offset
        return offset + x.shared.row

    def check_read(self, x: Machine, offset: Array, width: int, line: int) -> None:
        """Faults unless all `width` bytes at each offset are written."""
        if self.rows == 1 and self.blocks > 1 and offset.shape[0] != 1:
            found = self.views[width].take(offset >> SHIFT[width])
        else:
            found = self.views[width].take(self._index(x, offset) >> SHIFT[width])
        bad = found != _ALL_WRITTEN[width]
        if bad.any():
            self._blame_read(x, bad, offset, width, line)

    def _blame_read(self, x: Machine, bad: Array, offset: Array, width: int, line: int) -> None:
        if x.exact is not None:
            # Inactive lanes were given an active lane's offset, but perhaps in another block.
            lanes = np.broadcast_arrays(bad, x.exact)
            bad = lanes[0] & lanes[1]
            if not bad.any():
                return
        where = first(bad)
        index = np.broadcast_to(self._index(x, offset), bad.shape)[where]
        states = self.data[index : index + width]
        state = int(states[states != WRITTEN][0])
        kind, reason = _FAULTS[state]
        place = int(np.broadcast_to(offset, bad.shape)[where])
        x.fault(kind, line, f"shared read of {width} bytes at {place}: {reason}", where)

    def mark(self, x: Machine, offset: Array, width: int, state: int, line: int) -> None:
        """Gives `width` bytes at each offset (of the lanes that take part) a state."""
        uniform = offset.shape[0] == 1 and (x.exact is None or x.exact.shape[0] == 1)
        if not uniform:
            self._split()
        index = self._index(x, offset)
        if x.exact is not None:
            index, lanes = np.broadcast_arrays(index, x.exact)
            index = index[lanes]
        slots = index.ravel() >> SHIFT[width]
        view = self.views[width]
        if self.guarded and (self.data.take(index) & GUARD).any():
            self._blame_write(x, offset, line)
        view[slots] = _PATTERNS[state][width][0]

    def _blame_write(self, x: Machine, offset: Array, line: int) -> None:
        bad = (self.data.take(self._index(x, offset)) & GUARD) != 0
        if x.exact is not None:
            bad = bad & x.exact
        where = first(bad)
        place = int(np.broadcast_to(offset, bad.shape)[where])
        x.fault(OutOfBoundsError, line, f"shared write at {place}: {_FAULTS[GUARD][1]}", where)

    def mark_range(
        self, x: Machine, block: int, where: slice, state: int, line: int, lane: tuple[int, int]
    ) -> None:
        """Gives a range of one block's bytes a state; `lane` is to blame if they are nobody's."""
        self._split()
        row = self.data.reshape(self.blocks, self.stride)[block]
        if self.guarded and (row[where] & GUARD).any():
            x.fault(OutOfBoundsError, line, f"shared write: {_FAULTS[GUARD][1]}", lane)
        row[where] = state

    def check_range(
        self, x: Machine, block: int, where: slice, line: int, lane: tuple[int, int]
    ) -> None:
        """Faults unless a range of one block's bytes is written."""
        row = self.data.reshape(self.rows, self.stride)[block if self.rows > 1 else 0]
        states = row[where]
        bad = states[states != WRITTEN]
        if len(bad):
            kind, reason = _FAULTS[int(bad[0])]
            message = f"shared read of {len(states)} bytes at {where.start}: {reason}"
            x.fault(kind, line, message, lane)

    def settle(self, index: Array, width: int, *, uniform: bool) -> None:
        """
        Marks bytes at flat indices (block-major) as written: a cp.async has arrived.

        `uniform` says that it arrives in all blocks alike.
        """
        if not uniform:
            self._split()
        if self.rows == 1:
            index = np.unique(index % self.stride)
        self.views[width][index >> SHIFT[width]] = _PATTERNS[WRITTEN][width][0]
