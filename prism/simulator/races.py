"""
Races on shared memory: two warps at one place, one of them writing, with no barrier between.

Every two bytes have a tag of their last write and one of their reads since the last barrier of the
block. A tag names the warp and the barrier interval; tags grow with the interval, so a tag above
the interval's floor is of the present interval. Accesses of one warp count as ordered, and atomics
do not race with each other.

Two warps that write one place in the same execution of an instruction race if they write different
values. An access of a single byte meets the tags of wider ones, but leaves none itself, as another
warp may own the other byte. From a barrier on that only some threads of a block take part in, an
mbarrier, or an atomic that may be a lock, nothing more is reported: threads may be ordered in ways
that tags do not express.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.errors import RaceError
from prism.simulator.memory import SHIFT, WIDE, Views, first, views_of
from prism.simulator.types import Array

if TYPE_CHECKING:
    from prism.simulator.machine import Machine

_STEP = 128
_BY_ATOMIC = 32
_ATOMICS = _STEP - 2
_MANY = _STEP - 1
"""
Tags per interval: 0 is the floor, warp w has w + 1, and _BY_ATOMIC more if it was an atomic; the
atomics of several warps and several readers have the last two.
"""
_LAST = (1 << 16) - 2 * _STEP


_REMEMBERED = 256
"""How many accesses are kept to name the other one of a race."""


@dataclass(frozen=True)
class _Access:
    """An access of the lanes in `exact`, at `offset` in their windows; `verb` is what it did."""

    line: int
    verb: str
    offset: Array
    width: int
    exact: Array | None

    def thread_at(self, x: Machine, block: int, place: int, warp: int, other: int) -> int | None:
        """The first thread of warp `other` (-1: of any but `warp`) that touched a byte."""
        row = np.broadcast_to(self.offset, x.shape)[block]
        on = (row <= place) & (place < row + self.width) & x.full(self.exact)[block]
        warps = np.arange(x.threads) // 32
        on &= (warps == other) if other >= 0 else (warps != warp)
        return int(np.argmax(on)) if on.any() else None


class Races:
    """The tags of the shared memories of a machine, `stride` bytes for each of `blocks` blocks."""

    def __init__(self, stride: int, blocks: int) -> None:
        self.on = True
        self._log: deque[_Access] = deque(maxlen=_REMEMBERED)
        self.blocks = blocks
        self.stride = stride
        # One row stands for all blocks while all do the same, as in SharedState.
        self.rows = 1
        self.floor: Array = np.zeros((1, 1), np.uint16)
        self.writes: Views = views_of(np.zeros(stride, np.uint8))
        self.reads: Views = views_of(np.zeros(stride, np.uint8))

    def next_interval(self, blocks: Array | None) -> None:
        """A barrier of whole blocks is complete, in the given blocks (None: in all)."""
        if blocks is not None:
            self._split()
        step = np.uint16(_STEP)
        if blocks is None:
            self.floor = self.floor + step
        else:
            self.floor = np.where(blocks[:, None], self.floor + step, self.floor)
        if int(self.floor.max()) > _LAST:
            # The tags of old intervals are of no use: start counting anew.
            self.floor = np.zeros_like(self.floor)
            self.writes[1][:] = 0
            self.reads[1][:] = 0

    def stop(self) -> None:
        """Threads were ordered in a way that tags do not express."""
        self.on = False

    def _split(self) -> None:
        if self.rows != self.blocks:
            self.rows = self.blocks
            self.writes = views_of(np.tile(self.writes[1], self.blocks))
            self.reads = views_of(np.tile(self.reads[1], self.blocks))
            self.floor = np.broadcast_to(self.floor, (self.blocks, 1))

    def _lanes(self, x: Machine, offset: Array, width: int) -> tuple[Array, Array, Array, Array]:
        """Slots, tags and floors of the lanes that take part, and where those lanes are."""
        uniform = offset.shape[0] == 1 and (x.exact is None or x.exact.shape[0] == 1)
        if not uniform:
            self._split()
        rows = self.rows
        tags = self.floor + (np.arange(x.threads, dtype=np.uint16) // 32 + np.uint16(1))
        index = offset + x.shared.row if rows > 1 else offset
        lanes: Array = np.ones((1, 1), np.bool_) if x.exact is None else x.exact
        index, tags, floor, on = np.broadcast_arrays(index, tags, self.floor, lanes)
        return index[on] >> SHIFT[width], tags[on], floor[on], on

    def read(self, x: Machine, offset: Array, width: int, line: int) -> None:
        if not self.on:
            return
        unit = max(width, 2)
        slots, tags, floor, on = self._lanes(x, offset, unit)
        mine, low = tags[:, None], floor[:, None]
        written = _units(self.writes[unit], slots)
        bad = (written > low) & (written != mine) & (written != mine + np.uint16(_BY_ATOMIC))
        if bad.any():
            self._blame(x, bad, on, written, low, line, "read", "wrote", offset)
        if width == 1:
            return
        _put_shared(self.reads[width], slots, mine, low, width, _MANY)
        self._log.append(_Access(line, "read", offset, width, x.exact))

    def write(self, x: Machine, offset: Array, width: int, line: int) -> Array | None:
        """Gives the lanes whose place another warp writes in this same instruction, if any."""
        if not self.on:
            return None
        unit = max(width, 2)
        slots, tags, floor, on = self._lanes(x, offset, unit)
        mine, low = tags[:, None], floor[:, None]
        for views, verb in ((self.writes, "wrote"), (self.reads, "read")):
            before = _units(views[unit], slots)
            bad = (before > low) & (before != mine) & (before != mine + np.uint16(_BY_ATOMIC))
            if bad.any():
                self._blame(x, bad, on, before, low, line, "write", verb, offset)
        if width == 1:
            return None
        _put(self.writes[width], slots, mine, width)
        self._log.append(_Access(line, "wrote", offset, width, x.exact))
        lost = (_units(self.writes[width], slots) != mine).any(axis=1)
        if not lost.any():
            return None
        lanes = np.zeros(on.shape, np.bool_)
        lanes[on] = lost
        return lanes

    def atomic(self, x: Machine, offset: Array, width: int, line: int) -> None:
        """An atomic races with plain accesses only."""
        if not self.on:
            return
        slots, tags, floor, on = self._lanes(x, offset, width)
        mine, low = tags[:, None], floor[:, None]
        for views, verb in ((self.writes, "wrote"), (self.reads, "read")):
            before = _units(views[width], slots)
            plain = (before <= low + np.uint16(_BY_ATOMIC)) | (before == low + np.uint16(_MANY))
            bad = (before > low) & (before != mine) & plain
            if bad.any():
                self._blame(x, bad, on, before, low, line, "atomic", verb, offset)
        by_atomic = mine + np.uint16(_BY_ATOMIC)
        _put_shared(self.writes[width], slots, by_atomic, low, width, _ATOMICS, mine)
        self._log.append(_Access(line, "wrote", offset, width, x.exact))

    def _blame(
        self,
        x: Machine,
        bad: Array,
        on: Array,
        before: Array,
        low: Array,
        line: int,
        what: str,
        verb: str,
        offset: Array,
    ) -> None:
        lane, unit = first(bad)
        where = tuple(int(i) for i in np.argwhere(on)[lane])
        other = int(before[lane, unit]) - int(low[lane, 0])
        number = (other - 1) % _BY_ATOMIC
        who = f"an atomic of warp {number}" if other > _BY_ATOMIC else f"warp {number}"
        several = {_MANY: "several warps", _ATOMICS: "several atomics"}
        who = several.get(other, who)
        block, mine = where[0], where[1] // 32
        place = int(np.broadcast_to(offset, x.shape)[where]) + 2 * unit
        found = "", None, None
        for access in reversed(self._log):
            if access.verb != verb:
                continue
            thread = access.thread_at(x, block, place, mine, -1 if other in several else number)
            if thread is not None:
                name = x.thread_name(thread)
                found = f" at line {access.line}, thread {name},", access.line, name
                break
        try:
            x.fault(
                RaceError,
                line,
                f"shared {what} races: {who} {verb} the place{found[0]} with no barrier in between",
                where,
            )
        except RaceError as error:
            error.other_line, error.other_thread = found[1:]
            raise


def _units(view: Array, slots: Array) -> Array:
    """The tags (lanes, units of two bytes) at slots of a view."""
    return view.take(slots).view(np.uint16).reshape(len(slots), -1)


def _put(view: Array, slots: Array, tags: Array, width: int) -> None:
    wide = np.ascontiguousarray(np.broadcast_to(tags, (len(slots), width // 2)))
    view[slots] = wide.view(WIDE[width])[:, 0]


def _put_shared(
    view: Array,
    slots: Array,
    mine: Array,
    low: Array,
    width: int,
    several: int,
    also_mine: Array | None = None,
) -> None:
    """Puts the lanes' tags, or the tag for several where another warp has its own there already."""
    before = _units(view, slots)
    other = (before > low) & (before != mine)
    if also_mine is not None:
        other &= before != also_mine
    kept = np.where(other, low + np.uint16(several), mine)
    _put(view, slots, kept, width)
    # Where two warps come to a place at once, the tag that stayed is of one of them.
    lost = (_units(view, slots) != kept).any(axis=1)
    if lost.any():
        many = np.broadcast_to(low[lost] + np.uint16(several), kept[lost].shape)
        _put(view, slots[lost], many, width)
