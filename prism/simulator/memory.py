"""
The memories: one arena for `.global` and `.const`, one window per block for `.shared`, one per
thread for `.local`. Addresses are formed and checked here; the data moves in `access`.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from prism.simulator.errors import (
    MisalignedAccessError,
    OutOfBoundsError,
    SimulatorError,
    UninitializedReadError,
    UseAfterFreeError,
)
from prism.simulator.types import Array

if TYPE_CHECKING:
    from prism.simulator.machine import Machine

GLOBAL_BASE = 0x7F0000000000
"""Address of the arena; beyond 32 bits, so that a truncated pointer is caught."""

SHARED_WINDOW = 1 << 56
"""Generic address of shared address 0."""

LOCAL_WINDOW = 2 << 56
"""Generic address of local address 0."""

ALIGNMENT = 256
MAX_ARENA = 1 << 36

WIDE: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
    16: np.dtype(np.complex128),
}
"""What a piece of so many bytes moves as; 16 bytes move as a complex number, only ever copied."""

SHIFT: dict[int, int] = {width: width.bit_length() - 1 for width in WIDE}
"""By how much to shift a byte offset to index a view of that width."""

Views = dict[int, Array]


def views_of(data: Array) -> Views:
    """Views of a byte array (its last axis a multiple of 16) by the width of an item in bytes."""
    return {width: data.view(dtype) for width, dtype in WIDE.items()}


class GlobalMemory:
    """
    Device memory: allocations at multiples of 256 bytes with at least 256 unowned bytes between.

    Offsets are addresses less GLOBAL_BASE. Freed memory is never used again. `unwritten` has a 1
    for every byte that was reserved without contents and is not written yet; None while there is
    none.
    """

    def __init__(self) -> None:
        self.data: Array = np.zeros(1 << 16, np.uint8)
        self.views = views_of(self.data)
        self.used = ALIGNMENT
        self._starts: list[int] = []
        self._ends: dict[int, int] = {}
        self._freed: dict[int, int] = {}
        self.unwritten: Views | None = None

    def alloc(self, size: int, *, unwritten: bool = False) -> int:
        """
        Reserves bytes (zeroed) and returns their offset.

        `unwritten` bytes count as having no contents until a kernel writes them.
        """
        offset = self.used
        self.used = -(-(offset + size) // ALIGNMENT) * ALIGNMENT + ALIGNMENT
        if self.used > MAX_ARENA:
            raise SimulatorError(f"out of device memory: {self.used} of {MAX_ARENA} bytes")
        if self.used > len(self.data):
            try:
                grown = np.zeros(max(self.used, 2 * len(self.data)), np.uint8)
            except MemoryError:
                raise SimulatorError(f"out of memory for {self.used} bytes") from None
            grown[:offset] = self.data[:offset]
            self.data, self.views = grown, views_of(grown)
            if self.unwritten is not None:
                states = np.zeros(len(grown), np.uint8)
                states[:offset] = self.unwritten[1][:offset]
                self.unwritten = views_of(states)
        insort(self._starts, offset)
        self._ends[offset] = offset + size
        if unwritten:
            if self.unwritten is None:
                self.unwritten = views_of(np.zeros(len(self.data), np.uint8))
            self.unwritten[1][offset : offset + size] = 1
        return offset

    def free(self, offset: int) -> None:
        """Takes an allocation back; later accesses to it are out of bounds."""
        self._starts.remove(offset)
        self._freed[offset] = self._ends.pop(offset)

    def owner(self, offset: int) -> tuple[int, int] | None:
        """Start and end of the last allocation that starts at or before an offset."""
        at = bisect_right(self._starts, offset) - 1
        return None if at < 0 else (self._starts[at], self._ends[self._starts[at]])

    def offsets(self, x: Machine, address: Array, shift: int, width: int, line: int) -> Array:
        """
        Arena offsets of an access of `width` bytes at address + shift, checked.

        Lanes that do not take part get the offset of one that does, so that all may be gathered.
        """
        offset = address.view(np.int64) + np.int64(shift - GLOBAL_BASE)
        if x.exact is not None:
            offset = only_active(offset, x.exact)
        low, high = int(offset.min()), int(offset.max())
        owner = self.owner(low)
        if owner is None or high + width > owner[1] or low < owner[0]:
            self._locate(x, offset, width, line)
        check_alignment(x, offset, width, line, "global")
        return offset

    def _locate(self, x: Machine, offset: Array, width: int, line: int) -> None:
        """Checks lane by lane; the access may touch several allocations, or be at fault."""
        starts = np.array(self._starts or [0], np.int64)
        ends = np.array([self._ends.get(start, 0) for start in starts], np.int64)
        owner = np.searchsorted(starts, offset, side="right") - 1
        bad = (owner < 0) | (offset + width > ends[owner])
        if bad.any():
            where = first_active(x, bad)
            place = int(np.broadcast_to(offset, x.shape)[where])
            self._check_freed(x, place, width, line, where)
            near = self.owner(place)
            end = "" if near is None else f", an allocation ends at {hex(near[1] + GLOBAL_BASE)}"
            message = f"global access of {width} bytes at {hex((place + GLOBAL_BASE) % 2**64)}{end}"
            x.fault(OutOfBoundsError, line, message, where)

    def _check_freed(
        self, x: Machine, place: int, width: int, line: int, where: tuple[int, ...]
    ) -> None:
        """Says so if an access out of bounds is to memory that was freed."""
        start = max((start for start in self._freed if start <= place), default=None)
        if start is None or place + width > self._freed[start]:
            return
        x.fault(
            UseAfterFreeError,
            line,
            f"global access of {width} bytes at {hex(place + GLOBAL_BASE)}, "
            f"byte {place - start} of a buffer that was freed",
            where,
        )

    def check_written(self, x: Machine, offset: Array, width: int, line: int) -> None:
        """Faults if a read at arena offsets meets bytes that nothing wrote."""
        if self.unwritten is None or not x.sanitize:
            return
        bad = self.unwritten[width].take(offset >> SHIFT[width]) != 0
        if bad.any():
            where = first_active(x, bad)
            place = int(np.broadcast_to(offset, x.shape)[where])
            x.fault(
                UninitializedReadError,
                line,
                f"global read of {width} bytes at {hex(place + GLOBAL_BASE)}: "
                "nothing wrote it before",
                where,
            )

    def check_range(
        self, x: Machine, start: int, size: int, line: int, lane: tuple[int, int]
    ) -> None:
        """Faults if a range of arena offsets, which a lane reads, has bytes that nothing wrote."""
        if self.unwritten is None or not x.sanitize:
            return
        if self.unwritten[1][start : start + size].any():
            message = f"global read of {size} bytes at {hex(start + GLOBAL_BASE)}"
            x.fault(UninitializedReadError, line, f"{message}: nothing wrote it before", lane)

    def mark_written(self, x: Machine, offset: Array, width: int) -> None:
        """Notes a write of the running lanes at arena offsets."""
        if self.unwritten is None:
            return
        slots = offset >> SHIFT[width]
        if x.exact is not None:
            slots, lanes = np.broadcast_arrays(slots, x.exact)
            slots = slots[lanes]
        self.unwritten[width][slots.ravel()] = 0


class Window:
    """
    Shared memory of all blocks of a machine, or local memory of all its threads.

    `row`, of shape (blocks, 1) or (blocks, threads), says where a lane's window starts.
    """

    def __init__(self, name: str, size: int, rows: int, row: Callable[[int], Array]) -> None:
        self.name = name
        self.size = size
        self.stride = -(-size // 16) * 16 + 16
        self.rows = rows
        self.data: Array = np.zeros(rows * self.stride, np.uint8)
        self.views = views_of(self.data)
        self.row = row(self.stride)

    def offsets(self, x: Machine, address: Array, shift: int, width: int, line: int) -> Array:
        """Offsets within the lanes' windows, checked; as `GlobalMemory.offsets`."""
        offset = address.astype(np.int64) + np.int64(shift)
        if x.exact is not None:
            offset = only_active(offset, x.exact)
        if int(offset.min()) < 0 or int(offset.max()) + width > self.size:
            where = first_active(x, (offset < 0) | (offset + width > self.size))
            place = int(np.broadcast_to(offset, x.shape)[where])
            x.fault(
                OutOfBoundsError,
                line,
                f"{self.name} access of {width} bytes at {place}, "
                f"the {self.name} memory has {self.size} bytes",
                where,
            )
        check_alignment(x, offset, width, line, self.name)
        return offset


def only_active(offset: Array, exact: Array) -> Array:
    """Replaces the offsets of inactive lanes by one of an active lane."""
    if offset.size == 1:
        return offset
    lanes = exact
    if offset.shape != exact.shape:
        lanes, full = np.broadcast_arrays(exact, offset)
        if offset.shape != lanes.shape:
            # A narrow address under a wider mask: a column or row counts if any of its lanes does.
            axes = tuple(i for i in (0, 1) if offset.shape[i] != lanes.shape[i])
            lanes, full = lanes.any(axis=axes, keepdims=True), offset
        offset = full
    return np.where(lanes, offset, offset[first(np.asarray(lanes))])


def first(lanes: Array) -> tuple[int, ...]:
    """Index of the first lane that is set."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(lanes)), lanes.shape))


def first_active(x: Machine, bad: Array) -> tuple[int, ...]:
    """
    Index of the first lane that takes part and is bad.

    Others were given the offset of one that does, see `only_active`, and are not to blame.
    """
    lanes = np.broadcast_to(bad, x.shape) & x.full(x.exact)
    return first(lanes)


def check_alignment(x: Machine, offset: Array, width: int, line: int, space: str) -> None:
    """Faults unless all offsets are multiples of `width`, a power of two."""
    if width > 1 and int(np.bitwise_or.reduce(offset, axis=None)) & (width - 1):
        where = first_active(x, (offset & (width - 1)) != 0)
        place = int(np.broadcast_to(offset, x.shape)[where])
        base = GLOBAL_BASE if space == "global" else 0
        x.fault(
            MisalignedAccessError,
            line,
            f"{space} access of {width} bytes at {hex(place + base)}",
            where,
        )
