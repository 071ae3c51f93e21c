"""What a point takes of a block and an SM, from the graph alone: tiles, registers, residency."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from prism.tune.graph import Graph, Operand, Product, Tile
from prism.tune.target import Target

MMA_TILE = {0: (16, 8), 1: (8, 16)}
"""Rows and columns that one mma covers, by `swap` (PTX ISA, mma.m16n8k16)."""

MMA_DEPTH = 16

MAX_ACCUMULATORS = 128
"""f32 registers of a thread for accumulators that code generation allows (`codegen.limits`)."""

OTHER_REGISTERS = 56
"""Registers per thread beside accumulators: addresses, operands and indices."""


@dataclass(frozen=True)
class Usage:
    """What a block needs: shared memory in bytes, threads, and registers per thread."""

    smem_bytes: int
    threads: int
    registers: int


def tile_extents(operand: Operand, tiles: Mapping[str, int]) -> list[int]:
    """The extents of a block's tile, of one loop step."""
    extents = list(operand.shape)
    for axis, dim in operand.cuts.items():
        # A dim that a grid and a loop axis cut has the loop's tile, the smaller of the two.
        extents[dim] = min(extents[dim], tiles[axis])
    return extents


def tile_bytes(operand: Operand, tiles: Mapping[str, int]) -> int:
    """The bytes of a block's tile, of one loop step."""
    return math.prod(tile_extents(operand, tiles)) * operand.element_bytes


def tile_elements(tile: Tile, tiles: Mapping[str, int]) -> int:
    """The elements of a computed tile."""
    return math.prod(
        min([size, *(tiles[axis] for axis in axes)])
        for size, axes in zip(tile.sizes, tile.axes, strict=True)
    )


def input_bytes(graph: Graph, tiles: Mapping[str, int]) -> tuple[int, int]:
    """Bytes of the input tiles that are loaded once, and of those that each loop step loads."""
    loops = set(graph.loops)
    once = looped = 0
    for operand in graph.inputs:
        size = tile_bytes(operand, tiles)
        if loops.isdisjoint(operand.cuts):
            once += size
        else:
            looped += size
    return once, looped


def padded(product: Product, tiles: Mapping[str, int], swap: int) -> tuple[int, int, int]:
    """The m, n and k of a block's step, padded to whole mma tiles."""
    m, n, k = (
        min([size, *(tiles[axis] for axis in axes)])
        for size, axes in zip(product.sizes, product.axes, strict=True)
    )
    rows, columns = MMA_TILE[swap]
    return _round_up(m, rows), _round_up(n, columns), _round_up(k, MMA_DEPTH)


@dataclass(frozen=True)
class WarpSplit:
    """
    How warps share a product: so many along mma's long side, across its short side and deep in k;
    each holds `held` mma tiles along both sides, and takes `steps` steps of k.
    """

    along: int
    across: int
    deep: int
    held: tuple[int, int]
    steps: int

    @property
    def mmas(self) -> int:
        """Matrix instructions of all warps."""
        return self.along * self.across * self.deep * self.held[0] * self.held[1] * self.steps

    @property
    def matrices(self) -> int:
        """8x8 matrices that all warps load: an mma takes 4 of its long side and 2 of its short."""
        loaded = 4 * self.held[0] + 2 * self.held[1]
        return self.along * self.across * self.deep * self.steps * loaded

    @property
    def scratch_bytes(self) -> int:
        """Shared memory in which the sums of k warps meet."""
        if self.deep == 1:
            return 0
        return 512 * self.held[0] * self.held[1] * self.along * self.across * self.deep


@lru_cache(maxsize=65536)
def warp_split(m: int, n: int, k: int, warps: int, swap: int) -> WarpSplit:
    """
    The split of a padded product by code generation's rule (`GraphPoint.mma_layout`).

    Fewest steps of a warp, then fewest k warps, then least padding, then fewest operands loaded.
    """
    rows, columns = MMA_TILE[swap]
    long, short = (n // columns, m // rows) if swap else (m // rows, n // columns)
    steps = k // MMA_DEPTH
    best: tuple[tuple[int, ...], WarpSplit] | None = None
    for deep, across in itertools.product(range(1, warps + 1), repeat=2):
        if warps % (deep * across):
            continue
        along = warps // (deep * across)
        held = math.ceil(long / along), math.ceil(short / across)
        taken = math.ceil(steps / deep)
        padding = held[0] * along - long + held[1] * across - short
        rank = (held[0] * held[1] * taken, deep, padding, 2 * held[0] + held[1])
        if best is None or rank < best[0]:
            best = rank, WarpSplit(along, across, deep, held, taken)
    if best is None:
        raise ValueError("a product needs a warp")
    return best[1]


def accumulators(graph: Graph, tiles: Mapping[str, int], swap: int) -> int:
    """The fewest f32 accumulators of a block for all products; splits along k take more."""
    return sum(math.prod(padded(product, tiles, swap)[:2]) for product in graph.products)


def estimate_usage(
    graph: Graph, tiles: Mapping[str, int], warps: int, swap: int, stages: int
) -> Usage:
    """
    The usage before code generation: input tiles in shared memory, products in registers.

    Where warps share a product along k their sums meet in shared memory.
    """
    once, looped = input_bytes(graph, tiles)
    registers = OTHER_REGISTERS
    for product in graph.products:
        split = warp_split(*padded(product, tiles, swap), warps, swap)
        once += split.scratch_bytes
        registers += 4 * split.held[0] * split.held[1]
    threads = 32 * warps
    return Usage(once + stages * looped, threads, min(255, registers))


def blocks_per_sm(usage: Usage, target: Target) -> int:
    """How many blocks of a kernel an SM holds at a time; 0 if not even one fits."""
    if usage.smem_bytes > target.max_shared_bytes_per_block:
        return 0
    smem = usage.smem_bytes + target.reserved_shared_bytes_per_block
    # Registers are given to warps in units of 256 (CUDA occupancy calculator).
    registers = math.ceil(usage.registers * 32 / 256) * 256 * (usage.threads // 32)
    return min(
        target.max_blocks_per_sm,
        target.max_threads_per_sm // usage.threads,
        target.shared_bytes_per_sm // smem,
        target.registers_per_sm // registers,
    )


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
