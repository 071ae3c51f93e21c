"""Counts of what a launch did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from prism.simulator.dependence import Loop
from prism.simulator.memory import GlobalMemory
from prism.simulator.traffic import sectors, wavefronts
from prism.simulator.types import Array

if TYPE_CHECKING:
    from prism.simulator.machine import Block, Machine

SECTOR = 32
"""Bytes of a sector, the unit in which DRAM and L2 move data."""

_REMEMBERED = 4096
"""Address patterns of shared accesses whose wavefronts are kept: loops repeat them."""


@dataclass
class Report:
    """
    What one launch executed and moved. All but the first three are 0 if the meter is off.

    `instructions`: thread-instructions by kind (a lane switched off by its guard does not count);
    `warp_instructions`: what warps issued, also under a guard that is off. `global_*_bytes`: bytes
    that threads asked for, lanes times width. `global_*_sectors`: distinct 32-byte sectors of each
    warp's access, added up; `wide_bytes`: bytes moved by accesses of 16 bytes a thread.
    `dram_*_bytes`: distinct sectors of the whole launch, times 32. `shared_wavefronts` and
    `shared_passes`: see `traffic`; their difference is the bank conflicts. `mma_flops`: two
    for each multiply-add of the matrix instructions. `barriers`: completed block barriers, over all
    blocks.
    `copy_bytes_in_flight`, `load_bytes_in_flight`: the most bytes per block of asynchronous copies
    started and not waited for, and of loads that straight code starts before it needs the first.
    `loop_line`, `loop_instructions`, `loop_chain`: the innermost loop that executed most, its size
    and the longest chain of dependent instructions in one iteration; 0 without a loop.
    """

    instructions: dict[str, int] = field(default_factory=dict[str, int])
    global_read_bytes: int = 0
    global_write_bytes: int = 0
    dram_read_bytes: int = 0
    dram_write_bytes: int = 0
    warp_instructions: dict[str, int] = field(default_factory=dict[str, int])
    global_read_sectors: int = 0
    global_write_sectors: int = 0
    wide_bytes: int = 0
    shared_wavefronts: int = 0
    shared_passes: int = 0
    mma_flops: int = 0
    barriers: int = 0
    copy_bytes_in_flight: int = 0
    load_bytes_in_flight: int = 0
    loop_line: int = 0
    loop_instructions: int = 0
    loop_chain: int = 0

    @property
    def total_instructions(self) -> int:
        return sum(self.instructions.values())

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts of shared accesses beyond those that they take without a conflict."""
        return self.shared_wavefronts - self.shared_passes

    @property
    def coalescing(self) -> float:
        """
        Bytes asked for over bytes of the sectors asked for, 1.0 without global accesses.

        Above 1 where threads of a warp read the same bytes.
        """
        moved = SECTOR * (self.global_read_sectors + self.global_write_sectors)
        return (self.global_read_bytes + self.global_write_bytes) / moved if moved else 1.0

    @property
    def wide_share(self) -> float:
        """The part of the bytes asked for that accesses of 16 bytes a thread move."""
        asked = self.global_read_bytes + self.global_write_bytes
        return self.wide_bytes / asked if asked else 0.0

    @property
    def bytes_in_flight(self) -> int:
        """Per block: of copies or of loads, whichever is more."""
        return max(self.copy_bytes_in_flight, self.load_bytes_in_flight)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "instructions": dict(self.instructions),
            "total_instructions": self.total_instructions,
            "warp_instructions": dict(self.warp_instructions),
            "global_read_bytes": self.global_read_bytes,
            "global_write_bytes": self.global_write_bytes,
            "global_read_sectors": self.global_read_sectors,
            "global_write_sectors": self.global_write_sectors,
            "coalescing": round(self.coalescing, 4),
            "wide_share": round(self.wide_share, 4),
            "dram_read_bytes": self.dram_read_bytes,
            "dram_write_bytes": self.dram_write_bytes,
            "shared_wavefronts": self.shared_wavefronts,
            "bank_conflicts": self.bank_conflicts,
            "mma_flops": self.mma_flops,
            "barriers": self.barriers,
            "bytes_in_flight": self.bytes_in_flight,
            "copy_bytes_in_flight": self.copy_bytes_in_flight,
            "load_bytes_in_flight": self.load_bytes_in_flight,
            "loop_line": self.loop_line,
            "loop_instructions": self.loop_instructions,
            "loop_chain": self.loop_chain,
        }


class Meter:
    """Collects a Report over all machines of one launch; `on` without it only what is cheapest."""

    def __init__(self, memory: GlobalMemory, *, on: bool) -> None:
        self.on = on
        self.counts: Counter[str] = Counter()
        self.warp_counts: Counter[str] = Counter()
        self.total = Report()
        size = memory.used // SECTOR + 1 if on else 0
        self.read_sectors: Array = np.zeros(size, np.bool_)
        self.write_sectors: Array = np.zeros(size, np.bool_)
        self._patterns: dict[tuple[int, bytes, bytes], tuple[int, int]] = {}
        self._loops: Counter[Loop] = Counter()

    def read(self, x: Machine, offset: Array, width: int) -> None:
        """Counts a global read of `width` bytes by the running lanes, at arena offsets."""
        total = self.total
        total.global_read_bytes += width * x.active
        if self.on:
            self.read_sectors[offset >> 5] = True
            total.global_read_sectors += sectors(offset, x.exact, x.warps, x.blocks)
            if width == 16:
                total.wide_bytes += 16 * x.active

    def write(self, x: Machine, offset: Array, width: int) -> None:
        total = self.total
        total.global_write_bytes += width * x.active
        if self.on:
            self.write_sectors[offset >> 5] = True
            total.global_write_sectors += sectors(offset, x.exact, x.warps, x.blocks)
            if width == 16:
                total.wide_bytes += 16 * x.active

    def span(self, start: int, size: int, *, writes: bool) -> None:
        """Counts a copy of a whole range, as one bulk copy asks for it."""
        total = self.total
        first, last = start >> 5, (start + size - 1) >> 5
        number = last - first + 1 if self.on else 0
        if writes:
            total.global_write_bytes += size
            total.global_write_sectors += number
            self.write_sectors[first : first + number] = True
        else:
            total.global_read_bytes += size
            total.global_read_sectors += number
            self.read_sectors[first : first + number] = True
        total.wide_bytes += size if self.on else 0

    def shared(self, x: Machine, offset: Array, width: int) -> None:
        """Counts the wavefronts of a shared access of the running lanes at window offsets."""
        if not self.on:
            return
        exact = x.exact
        if offset.shape[0] == 1 and (exact is None or exact.shape[0] == 1):
            key = (width, offset.tobytes(), b"" if exact is None else exact.tobytes())
            known = self._patterns.get(key)
            if known is None:
                if len(self._patterns) >= _REMEMBERED:
                    self._patterns.clear()
                known = self._patterns[key] = wavefronts(offset, exact, width, x.warps, 1)
            taken, least = known[0] * x.blocks, known[1] * x.blocks
        else:
            taken, least = wavefronts(offset, exact, width, x.warps, x.blocks)
        self.total.shared_wavefronts += taken
        self.total.shared_passes += least

    def count_blocks(
        self, x: Machine, blocks: Sequence[Block], lanes: Sequence[int], warps: Sequence[int]
    ) -> None:
        """Counts the instructions of basic blocks by how many lanes and warps executed them."""
        for block, of_lanes, of_warps in zip(blocks, lanes, warps, strict=True):
            for kind, number in block.kinds.items():
                self.counts[kind] += number * of_lanes
            if not self.on or not of_warps:
                continue
            for kind, number in block.warp_kinds.items():
                self.warp_counts[kind] += number * of_warps
            self.total.mma_flops += block.flops * of_warps
            self.total.load_bytes_in_flight = max(
                self.total.load_bytes_in_flight, block.load_bytes * x.geometry.threads
            )
        if self.on:
            for loop in x.program.loops:
                for at in range(loop.first, loop.last + 1):
                    self._loops[loop] += lanes[at] * sum(blocks[at].warp_kinds.values())

    def report(self) -> Report:
        total = self.total
        total.instructions = _sorted(self.counts)
        total.warp_instructions = _sorted(self.warp_counts)
        total.dram_read_bytes = int(np.count_nonzero(self.read_sectors)) * SECTOR
        total.dram_write_bytes = int(np.count_nonzero(self.write_sectors)) * SECTOR
        if self._loops:
            hottest, weight = self._loops.most_common(1)[0]
            if weight:
                total.loop_line = hottest.line
                total.loop_instructions = hottest.instructions
                total.loop_chain = hottest.chain
        return total


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in sorted(counts.items()) if count}
