"""What a point takes of a block and an SM, from the graph alone: tiles, registers, residency."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

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


def warp_split(m: int, n: int, k: int, warps: int, swap: int) -> tuple[int, int, int]:
    """
    How warps share a padded product: along mma's long side first, then across, then deep in k.
    """
    rows, columns = MMA_TILE[swap]
    long, short = (n // columns, m // rows) if swap else (m // rows, n // columns)
    along = _power_of_two(min(warps, long))
    across = _power_of_two(min(warps // along, short))
    deep = _power_of_two(min(warps // (along * across), k // MMA_DEPTH))
    return along, across, deep


def _power_of_two(value: int) -> int:
    """The largest power of two up to a positive value."""
    return 1 << (value.bit_length() - 1)


def accumulators(graph: Graph, tiles: Mapping[str, int], swap: int) -> int:
    """f32 accumulators of a block for all products."""
    return sum(math.prod(padded(product, tiles, swap)[:2]) for product in graph.products)


def estimate_usage(
    graph: Graph, tiles: Mapping[str, int], warps: int, swap: int, stages: int
) -> Usage:
    """
    The usage before code generation: input tiles in shared memory, products in registers.

    Where warps share a product along k their sums meet in shared memory.
    """
    once, looped = input_bytes(graph, tiles)
    for product in graph.products:
        m, n, k = padded(product, tiles, swap)
        *_, deep = warp_split(m, n, k, warps, swap)
        once += 4 * m * n * deep if deep > 1 else 0
    threads = 32 * warps
    registers = OTHER_REGISTERS + math.ceil(accumulators(graph, tiles, swap) / threads)
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
