"""Counts of what a launch did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from prism.simulator.memory import GlobalMemory
from prism.simulator.types import Array

SECTOR = 32
"""Bytes of a sector, the unit in which DRAM and L2 move data."""


@dataclass
class Report:
    """
    What one launch executed and moved.

    `instructions`: thread-instructions by kind (a lane switched off by its guard does not count).
    `global_*_bytes`: bytes that threads asked for, lanes times width. `dram_*_bytes`: distinct
    32-byte sectors touched, times 32; 0 if the meter is off.
    """

    instructions: dict[str, int] = field(default_factory=dict[str, int])
    global_read_bytes: int = 0
    global_write_bytes: int = 0
    dram_read_bytes: int = 0
    dram_write_bytes: int = 0

    @property
    def total_instructions(self) -> int:
        return sum(self.instructions.values())

    def as_dict(self) -> dict[str, int | dict[str, int]]:
        """For JSON."""
        return {
            "instructions": dict(self.instructions),
            "total_instructions": self.total_instructions,
            "global_read_bytes": self.global_read_bytes,
            "global_write_bytes": self.global_write_bytes,
            "dram_read_bytes": self.dram_read_bytes,
            "dram_write_bytes": self.dram_write_bytes,
        }


class Meter:
    """Collects a Report over all machines of one launch."""

    def __init__(self, memory: GlobalMemory, *, sectors: bool) -> None:
        self.counts: Counter[str] = Counter()
        self.read_bytes = 0
        self.write_bytes = 0
        size = memory.used // SECTOR + 1 if sectors else 0
        self.read_sectors: Array | None = np.zeros(size, np.bool_) if sectors else None
        self.write_sectors: Array | None = np.zeros(size, np.bool_) if sectors else None

    def read(self, offset: Array, width: int, lanes: int) -> None:
        """Counts a global read of `lanes` lanes at arena offsets that `offset` covers."""
        self.read_bytes += width * lanes
        if self.read_sectors is not None:
            self.read_sectors[offset >> 5] = True

    def write(self, offset: Array, width: int, lanes: int) -> None:
        self.write_bytes += width * lanes
        if self.write_sectors is not None:
            self.write_sectors[offset >> 5] = True

    def count(self, kinds: Mapping[str, int], lanes: int) -> None:
        for kind, number in kinds.items():
            self.counts[kind] += number * lanes

    def report(self) -> Report:
        return Report(
            {kind: count for kind, count in sorted(self.counts.items()) if count},
            self.read_bytes,
            self.write_bytes,
            _sectors(self.read_sectors),
            _sectors(self.write_sectors),
        )


def _sectors(touched: Array | None) -> int:
    return 0 if touched is None else int(np.count_nonzero(touched)) * SECTOR
