"""
mbarrier objects (PTX ISA 9.7.13.15) and the bulk copies that they track.

An object is 64 bits of shared memory, opaque to programs. Here: bits 0-19 the expected arrivals,
20-39 those pending, 40-61 the bytes still to come (two's complement), 62 the phase, 63 set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.errors import (
    DeadlockError,
    MisalignedAccessError,
    OutOfBoundsError,
    SimulatorError,
)
from prism.simulator.instructions.order import Update, in_order
from prism.simulator.memory import first, first_active
from prism.simulator.sanitizer import PENDING, WRITTEN
from prism.simulator.types import Array

if TYPE_CHECKING:
    from prism.simulator.machine import Machine

MAX_COUNT = (1 << 20) - 1
_COUNT = np.int64(MAX_COUNT)
_PHASE = np.uint64(1 << 62)
_VALID = np.uint64(1 << 63)
_PATIENCE = 20_000
"""Waits in vain while all others wait as well, after which nothing will come."""


def encode(expected: Array, pending: Array, bytes_to_come: Array, phase: Array) -> Array:
    """Objects of int64 fields; `phase` is 0 or 1."""
    to_come = (bytes_to_come & np.int64((1 << 22) - 1)).astype(np.uint64)
    bits = expected.astype(np.uint64) | (pending.astype(np.uint64) << np.uint64(20))
    return bits | (to_come << np.uint64(40)) | (phase.astype(np.uint64) << np.uint64(62)) | _VALID


def decode(bits: Array) -> tuple[Array, Array, Array, Array]:
    """The fields of objects: expected, pending, bytes to come, phase."""
    signed = bits.astype(np.int64)
    to_come = (signed << np.int64(2)) >> np.int64(42)
    phase = (signed >> np.int64(62)) & np.int64(1)
    return signed & _COUNT, (signed >> np.int64(20)) & _COUNT, to_come, phase


@dataclass(frozen=True)
class BulkCopy:
    """A copy of `size` bytes of arena offset `source` to shared offset `target` of one block."""

    block: int
    barrier: int
    target: int
    source: int
    size: int


class Phases:
    """The mbarriers of a machine's blocks, and the bulk copies under way."""

    def __init__(self) -> None:
        self.copies: list[BulkCopy] = []
        self._in_vain = 0

    def offsets(self, x: Machine, address: Array, shift: int, line: int, *, begins: bool) -> Array:
        """Checked shared offsets of objects; `begins` if they are to be initialized."""
        if x.races is not None:
            # Threads are ordered by phases from here on, which the tags of races do not express.
            x.races.stop()
        offset = x.shared.offsets(x, address, shift, 8, line)
        if x.shared_state is not None:
            if begins:
                x.shared_state.mark(x, offset, 8, WRITTEN, line)
            else:
                x.shared_state.check_read(x, offset, 8, line)
        return offset

    def initialize(self, x: Machine, offset: Array, count: Array, line: int) -> None:
        bad = (count == 0) | (count > MAX_COUNT)
        if (np.broadcast_to(bad, x.shape) & x.full(x.exact)).any():
            x.fault(SimulatorError, line, f"an mbarrier count is 1 to {MAX_COUNT}")
        wide = count.astype(np.int64)
        zero = np.zeros_like(wide)
        self._change(x, offset, [encode(wide, wide, zero, zero)], line, _replace)

    def arrive(
        self, x: Machine, offset: Array, count: Array, to_come: Array, line: int, *, drops: bool
    ) -> Array:
        """Arrivals and expected bytes of the running lanes; gives the objects as they were."""

        def step(old: Array, arrivals: Array, more: Array) -> Array:
            expected, pending, missing, phase = decode(old)
            arrivals, more = arrivals.astype(np.int64), more.astype(np.int64)
            if ((old & _VALID) == 0).any():
                x.fault(SimulatorError, line, "the place holds no mbarrier")
            if (arrivals > pending).any():
                x.fault(SimulatorError, line, "more arrivals at an mbarrier than it expects")
            if drops:
                expected = expected - arrivals
            return _completed(expected, pending - arrivals, missing + more, phase)

        return self._change(x, offset, [count, to_come], line, step)

    def done(self, x: Machine, offset: Array, phase: Array, line: int) -> Array:
        """Whether the phase 0 or 1 of objects is complete; copies that they track arrive first."""
        self._arrive_bulk(x, offset)
        bits = x.shared.views[8].take((offset + x.shared.row) >> 3)
        lanes = x.full(x.exact)
        if (np.broadcast_to((bits & _VALID) == 0, x.shape) & lanes).any():
            x.fault(SimulatorError, line, "the place holds no mbarrier")
        result = ((bits & _PHASE) != 0).astype(np.int64) != phase
        if not (np.broadcast_to(result, x.shape) & lanes).any():
            # Others that still run may complete it, however long they take.
            self._in_vain += x.nobody_else_runs()
            if self._in_vain > _PATIENCE:
                x.fault(DeadlockError, line, "waits for an mbarrier phase that nothing completes")
        x.stalled = x.stalled or bool((~np.broadcast_to(result, x.shape) & lanes).any())
        return result

    def _change(
        self, x: Machine, offset: Array, values: list[Array], line: int, step: Update
    ) -> Array:
        """Lane after lane, lowest first; gives what each lane found."""
        self._in_vain = 0
        lanes = x.full(x.exact)
        slots = np.broadcast_to((offset + x.shared.row) >> 3, x.shape)[lanes]
        parts = [np.broadcast_to(value, x.shape)[lanes] for value in values]
        found = np.zeros(x.shape, np.uint64)
        found[lanes] = in_order(step, x.shared.views[8], slots, parts)
        return found

    # -- bulk copies ----------------------------------------------------------------------------

    def start(
        self, x: Machine, target: Array, source: Array, size: Array, barrier: Array, line: int
    ) -> None:
        """Starts copies to shared memory; all are checked arrays (blocks, threads) of offsets."""
        for block, thread in np.argwhere(x.full(x.exact)):
            at = (int(block), int(thread))
            copy = BulkCopy(
                at[0], int(barrier[at]), int(target[at]), int(source[at]), int(size[at])
            )
            if copy.size:
                self.copies.append(copy)
                x.meter.span(copy.source, copy.size, writes=False)
                x.memory.check_range(x, copy.source, copy.size, line, at)
                if x.shared_state is not None:
                    where = slice(copy.target, copy.target + copy.size)
                    x.shared_state.mark_range(x, copy.block, where, PENDING, line, at)
        under_way: dict[int, int] = {}
        for copy in self.copies:
            under_way[copy.block] = under_way.get(copy.block, 0) + copy.size
        total = x.meter.total
        total.copy_bytes_in_flight = max(total.copy_bytes_in_flight, *under_way.values(), 0)

    def _arrive_bulk(self, x: Machine, offset: Array) -> None:
        """The copies that the running lanes wait for arrive: as late as a program may rely on."""
        if not self.copies:
            return
        lanes = x.full(x.exact)
        places = np.broadcast_to(offset + x.shared.row, x.shape)[lanes]
        waited = set(np.unique(places).tolist())
        kept: list[BulkCopy] = []
        for copy in self.copies:
            base = copy.block * x.shared.stride
            if base + copy.barrier not in waited:
                kept.append(copy)
                continue
            self._in_vain = 0
            start = base + copy.target
            x.shared.data[start : start + copy.size] = x.memory.data[
                copy.source : copy.source + copy.size
            ]
            if x.shared_state is not None:
                where = slice(copy.target, copy.target + copy.size)
                x.shared_state.mark_range(x, copy.block, where, WRITTEN, 0, (copy.block, 0))
            view = x.shared.views[8]
            slot = (base + copy.barrier) >> 3
            expected, pending, missing, phase = decode(view[slot : slot + 1])
            view[slot : slot + 1] = _completed(expected, pending, missing - copy.size, phase)
        self.copies = kept


def bulk_offsets(
    x: Machine, space: str, address: Array, shift: int, size: Array, line: int
) -> Array:
    """Checked offsets of whole ranges, (blocks, threads): in bounds, at multiples of 16 bytes."""
    lanes = x.full(x.exact)
    sizes = np.broadcast_to(size, x.shape)
    memory = x.shared if space == "shared" else x.memory
    uneven = ((sizes & np.uint32(15)) != 0) & lanes
    if uneven.any():
        where = first(uneven)
        message = f"a bulk copy of {int(sizes[where])} bytes, not a multiple of 16"
        x.fault(MisalignedAccessError, line, message, where)
    start = memory.offsets(x, address, shift, 16, line)
    last = np.maximum(size.astype(np.int64), 16) - 16
    end = memory.offsets(x, address + last.astype(address.dtype), shift, 16, line)
    if space == "global":
        gone = np.broadcast_to(end - start != last, x.shape) & lanes
        ends = [x.memory.owner(int(at)) for at in np.broadcast_to(start, x.shape)[lanes]]
        stops = np.zeros(x.shape, np.int64)
        stops[lanes] = [0 if owner is None else owner[1] for owner in ends]
        gone |= (np.broadcast_to(start + last + 16, x.shape) > stops) & lanes & (sizes > 0)
        if gone.any():
            where = first_active(x, gone)
            x.fault(OutOfBoundsError, line, "a bulk copy leaves its allocation", where)
    return np.broadcast_to(start, x.shape)


def store_bulk(x: Machine, target: Array, source: Array, size: Array, line: int) -> None:
    """Copies from shared to global memory; at once, where the hardware may take until the wait."""
    sizes = np.broadcast_to(size, x.shape)
    for block, thread in np.argwhere(x.full(x.exact)):
        at = (int(block), int(thread))
        count = int(sizes[at])
        if not count:
            continue
        start, begin = int(target[at]), int(source[at])
        if x.shared_state is not None:
            x.shared_state.check_range(x, at[0], slice(begin, begin + count), line, at)
        begin += at[0] * x.shared.stride
        x.memory.data[start : start + count] = x.shared.data[begin : begin + count]
        if x.memory.unwritten is not None:
            x.memory.unwritten[1][start : start + count] = 0
        x.meter.span(start, count, writes=True)


_Field = Array


def _completed(expected: _Field, pending: _Field, missing: _Field, phase: _Field) -> Array:
    """Begins the next phase where nothing is pending and no bytes are to come."""
    over = (pending == 0) & (missing == 0)
    return encode(expected, np.where(over, expected, pending), missing, phase ^ over)


def _replace(old: Array, new: Array, unused: Array) -> Array:
    return new
