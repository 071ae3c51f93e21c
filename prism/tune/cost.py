"""
The first cost model: seconds of one launch, from bytes moved, latency, occupancy and padding.

It describes the kernels that code generation makes today: a block loads the tiles of a step, waits,
computes, and only then loads the next, so that the parts of a step add up within a block and other
blocks of the same SM hide them. It ranks points; it does not predict times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from prism.tune.space import Graph, Operand, Point, Product
from prism.tune.target import Target

LAUNCH_SECONDS = 3e-6
"""From the host's call to the first instruction, in a stream of launches."""

STEP_LATENCY_SECONDS = 1.2e-6
"""Of a load from DRAM, its store to shared memory and two barriers: about 1700 cycles."""

L2_BANDWIDTH_RATIO = 2.5
"""Bandwidth of L2 over that of DRAM; the same for the targets that Prism knows, within 30 %."""

SM_BYTES_PER_CLOCK = 32
"""What one SM loads per clock at most through plain loads (half of the 64 of its L2 port)."""

FETCH_BYTES = 64
"""What L2 fetches from DRAM at least: a row of a tile that is shorter wastes the rest."""

MMA_EFFICIENCY = 0.4
"""The part of the tensor rate that mma.sync reaches when operands come from shared memory."""

INSTRUCTIONS_PER_VECTOR = 20
"""Instructions of a thread for each 16 bytes of an input tile: load, store to shared memory, and
its share of the products, sums and addresses. Counted by the simulator on today's kernels."""

ISSUE_PER_CLOCK = 2.4
"""Warp instructions that an SM issues per clock, of at most 4."""

ISSUE_WARPS = 16
"""Warps that an SM needs to issue at that rate; fewer wait for their own results."""

MMA_TILE = {0: (16, 8), 1: (8, 16)}
"""Rows and columns that one mma covers, by `swap`."""

MMA_DEPTH = 16


@dataclass(frozen=True)
class Cost:
    """The estimate and what it is made of; all in seconds, bytes or counts."""

    seconds: float
    blocks: int
    blocks_per_sm: int
    waves: int
    dram_bytes: int
    global_bytes: int


@dataclass(frozen=True)
class Usage:
    """What a block needs: shared memory in bytes, threads, and registers per thread."""

    smem_bytes: int
    threads: int
    registers: int


def estimate_usage(graph: Graph, point: Point) -> Usage:
    """The usage before code generation: all input tiles in shared memory, products in registers."""
    smem = sum(_tile_bytes(operand, point) for operand in graph.inputs)
    threads = 32 * point.warps
    accumulators = sum(
        math.prod(_padded(product, point)[:2]) / threads for product in graph.products
    )
    return Usage(smem, threads, min(255, 48 + math.ceil(accumulators)))


def blocks_per_sm(usage: Usage, target: Target) -> int:
    """How many blocks of a kernel an SM holds at a time; 0 if not even one fits."""
    smem = usage.smem_bytes + target.reserved_shared_bytes_per_block
    # Registers are given to warps in units of 256 (CUDA occupancy calculator).
    registers = math.ceil(usage.registers * 32 / 256) * 256 * (usage.threads // 32)
    if usage.smem_bytes > target.max_shared_bytes_per_block:
        return 0
    return min(
        target.max_blocks_per_sm,
        target.max_threads_per_sm // usage.threads,
        target.shared_bytes_per_sm // smem,
        target.registers_per_sm // registers,
    )


def cost(graph: Graph, point: Point, usage: Usage, target: Target) -> Cost | None:
    """The cost of a point, or None if a limit of the target forbids it."""
    grid = [point.counts[axis.name] for axis in graph.axes if axis.is_grid]
    limits_met = all(n <= limit for n, limit in zip(grid, target.max_grid, strict=False))
    per_sm = blocks_per_sm(usage, target)
    if per_sm == 0 or not limits_met or usage.threads > target.max_threads_per_block:
        return None
    blocks = math.prod(grid)
    steps = math.prod(point.counts[axis.name] for axis in graph.axes if not axis.is_grid)
    waves = math.ceil(blocks / (target.sm_count * per_sm))
    resident = min(per_sm, math.ceil(blocks / target.sm_count))

    block_bytes = 0
    dram_bytes = 0
    for operand in (*graph.inputs, *graph.outputs):
        whole = math.prod(operand.shape) * operand.element_bytes
        looped = any(not _is_grid(graph, axis) for axis in operand.cuts)
        moved = _tile_bytes(operand, point) * (steps if looped else 1)
        block_bytes += moved
        # What does not fit in L2 is fetched again by every wave of blocks that needs it.
        fetched = whole if whole <= target.l2_bytes else min(blocks * moved, whole * waves)
        dram_bytes += int(fetched * _fetch_ratio(operand, point))
    global_bytes = blocks * block_bytes

    busy_sms = min(target.sm_count, blocks)
    blocks_of_sm = math.ceil(blocks / busy_sms)
    warps = resident * usage.threads / 32
    issue_rate = ISSUE_PER_CLOCK * target.clock_hz * min(1.0, warps / ISSUE_WARPS)
    memory = max(
        dram_bytes / target.dram_bytes_per_second,
        global_bytes / (target.dram_bytes_per_second * L2_BANDWIDTH_RATIO),
        blocks_of_sm * block_bytes / (SM_BYTES_PER_CLOCK * target.clock_hz),
    )
    latency = waves * (steps + 1) * STEP_LATENCY_SECONDS / min(resident, 4)
    issue = blocks_of_sm * block_bytes / 16 * INSTRUCTIONS_PER_VECTOR / 32 / issue_rate
    flops = sum(2 * math.prod(_padded(product, point)) for product in graph.products) * steps
    rate = target.f16_tensor_flops * MMA_EFFICIENCY / target.sm_count
    # Fewer than four warps leave tensor cores of the SM without work (four per SM).
    rate *= min(1.0, resident * point.warps / 4)
    compute = blocks_of_sm * flops / rate
    return Cost(
        LAUNCH_SECONDS + memory + latency + issue + compute,
        blocks,
        per_sm,
        waves,
        dram_bytes,
        global_bytes,
    )


def _is_grid(graph: Graph, axis: str) -> bool:
    return any(a.name == axis and a.is_grid for a in graph.axes)


def _tile_bytes(operand: Operand, point: Point) -> int:
    return math.prod(_extents(operand, point)) * operand.element_bytes


def _extents(operand: Operand, point: Point) -> list[int]:
    extents = list(operand.shape)
    for axis, dim in operand.cuts.items():
        # A dim that a grid and a loop axis cut has the loop's tile, the smaller of the two.
        extents[dim] = min(extents[dim], point.tiles[axis])
    return extents


def _fetch_ratio(operand: Operand, point: Point) -> float:
    """Bytes fetched from DRAM over bytes used: more than 1 if rows of tiles are short."""
    extent = _extents(operand, point)[-1]
    if extent == operand.shape[-1]:
        return 1.0
    return max(1.0, FETCH_BYTES / (extent * operand.element_bytes))


def _padded(product: Product, point: Point) -> tuple[int, int, int]:
    """The m, n and k of a block's step, padded to whole mma tiles."""
    m, n, k = (
        min([size, *(point.tiles[axis] for axis in axes)])
        for size, axes in zip(product.sizes, product.axes, strict=True)
    )
    rows, columns = MMA_TILE[point.swap]
    return _round_up(m, rows), _round_up(n, columns), _round_up(k, MMA_DEPTH)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
