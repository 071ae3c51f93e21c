"""
The cost model: seconds of one launch, from the graph, a point, its usage and the target alone.

A block runs its loop in steps. Loads of a step (the *stream*) and its computation (the *work*)
overlap across the blocks of an SM and across pipeline stages; what is left of the shorter one is
divided by how many steps are on their way at a time:

    time = launch + ramp + max(stream, work) + min(stream, work) / (blocks of an SM * stages)
    stream = max(dram + l2, port, latency)
    work = issue + tensor + shared + barrier

Reading an operand again through L2 is priced in `l2` and `port`, but filling the SMs may outweigh
it: for matmul n=64, k=512, m=256 on sm_80, 128 blocks that ask for 8.8 times the floor are
estimated at 6.18 us, 64 blocks that ask for 5.9 times at 6.30 us, less of `l2` (0.52 of 0.78 us)
and more of `issue` (1.68 of 1.39 us), which the busiest SM sets. Such a lead of 2 % is smaller than
the error of the instruction model: no GPU has decided it.

It ranks points. `docs/tuning.md` describes each term; the constants below are its sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from prism.tune.graph import Graph, Operand
from prism.tune.space import Point
from prism.tune.target import Target
from prism.tune.usage import (
    Usage,
    blocks_per_sm,
    input_bytes,
    padded,
    tile_bytes,
    tile_elements,
    tile_extents,
    warp_split,
)

LAUNCH_SECONDS = 3e-6
"""From the host's call to the first instruction, in a stream of launches."""

LOAD_LATENCY_SECONDS = 7e-7
"""Of a load from DRAM under some load: 600 to 1000 cycles in published microbenchmarks of A100."""

STEP_SECONDS = 3e-7
"""Of a step beside its load: a store to shared memory, two barriers, the first products."""

L2_BANDWIDTH_RATIO = 2.0
"""Bandwidth of L2 over that of DRAM that kernels reach, of 2 to 2.5 for the targets known."""

SM_BYTES_PER_CLOCK = 64
"""What one SM takes from L2 per clock (NVIDIA A100 whitepaper: 5120 bytes per clock for all)."""

FETCH_BYTES = 64
"""What L2 fetches from DRAM at least: a row of a tile that is shorter wastes the rest."""

MMA_EFFICIENCY = 0.6
"""The part of the tensor rate that mma.sync reaches when operands come from shared memory."""

SHARED_BYTES_PER_CLOCK = 128
"""32 banks of 4 bytes (CUDA C++ programming guide)."""

ISSUE_PER_CLOCK = 2.4
"""Warp instructions that an SM issues per clock, of at most 4."""

ISSUE_WARPS = 16
"""Warps that an SM needs to issue at that rate; fewer wait for their own results."""

MMA_FLOPS = 2 * 16 * 8 * 16
"""Of one mma.m16n8k16 (PTX ISA)."""

MATRIX_BYTES = 128
"""Of an 8x8 matrix of f16, that ldmatrix reads in one pass."""

BARRIER_CYCLES = 30
"""Of a block's barrier when all warps arrive together."""


@dataclass(frozen=True)
class InstructionModel:
    """
    Warp instructions by what causes them: least squares of the relative error over 240 random
    points of four workloads in the simulator, whose median error is 14 % (`docs/tuning.md`).

    Per vector of 16 bytes of an input (a thread's copy), per mma, per 8x8 matrix of an operand from
    shared memory, per element that a sum reads, per element of an output, per step of a warp, and
    per warp once.
    """

    vector: float = 1.9
    mma: float = 3.2
    matrix: float = 0.3
    summed: float = 4.7
    stored: float = 2.0
    step: float = 18.0
    warp: float = 225.0


INSTRUCTIONS = InstructionModel()


@dataclass(frozen=True)
class Counts:
    """
    What a launch does in all: bytes asked for and fetched from DRAM, warp instructions, flops of
    the matrix instructions, bytes that cross shared memory's banks, and barriers of blocks.
    """

    global_bytes: int
    dram_bytes: int
    instructions: int
    mma_flops: int
    shared_bytes: int
    barriers: int


@dataclass(frozen=True)
class Cost:
    """The estimate and what it is made of: seconds of each term, and the counts behind them."""

    seconds: float
    terms: Mapping[str, float]
    blocks: int
    blocks_per_sm: int
    waves: int
    counts: Counts

    @property
    def global_bytes(self) -> int:
        """Bytes that all blocks ask for."""
        return self.counts.global_bytes

    @property
    def dram_bytes(self) -> int:
        """Bytes that come from DRAM or go to it."""
        return self.counts.dram_bytes


def cost(graph: Graph, point: Point, usage: Usage, target: Target) -> Cost | None:
    """The cost of a point by predicted counts, or None if a limit of the target forbids it."""
    per_sm = blocks_per_sm(usage, target)
    if per_sm == 0:
        return None
    return price(graph, point, usage, predict(graph, point, per_sm, target), target)


def price(graph: Graph, point: Point, usage: Usage, counts: Counts, target: Target) -> Cost | None:
    """The cost of a point by counts, predicted or measured; None if a limit forbids it."""
    grid = [point.counts[axis] for axis in graph.grid]
    limits_met = all(n <= limit for n, limit in zip(grid, target.max_grid, strict=False))
    per_sm = blocks_per_sm(usage, target)
    if per_sm == 0 or not limits_met or usage.threads > target.max_threads_per_block:
        return None
    blocks = math.prod(grid)
    steps = math.prod(point.counts[axis] for axis in graph.loops)
    # The busiest SM sets the time: its blocks count the waves and the tail.
    blocks_of_sm = math.ceil(blocks / target.sm_count)
    share = blocks_of_sm / blocks
    resident = min(per_sm, blocks_of_sm)
    waves = math.ceil(blocks_of_sm / per_sm)
    warps = resident * usage.threads / 32

    clock = target.clock_hz
    issue_rate = ISSUE_PER_CLOCK * clock * min(1.0, warps / ISSUE_WARPS)
    # Fewer than four warps leave tensor cores of the SM without work (four per SM).
    tensor_rate = target.f16_tensor_flops * MMA_EFFICIENCY / target.sm_count * min(1.0, warps / 4)
    bandwidth = target.dram_bytes_per_second
    stall = waves * steps * STEP_SECONDS if point.stages == 1 else 0.0
    terms = {
        "launch": LAUNCH_SECONDS,
        "ramp": waves * LOAD_LATENCY_SECONDS,
        "dram": counts.dram_bytes / bandwidth,
        "l2": counts.global_bytes / (bandwidth * L2_BANDWIDTH_RATIO),
        "port": counts.global_bytes * share / (SM_BYTES_PER_CLOCK * clock),
        "latency": waves * steps * LOAD_LATENCY_SECONDS / max(1, point.stages - 1),
        "issue": counts.instructions * share / issue_rate,
        "tensor": counts.mma_flops * share / tensor_rate,
        "shared": counts.shared_bytes * share / (SHARED_BYTES_PER_CLOCK * clock),
        "barrier": waves * counts.barriers / blocks * BARRIER_CYCLES / clock + stall,
    }
    stream = max(terms["dram"] + terms["l2"], terms["port"], terms["latency"])
    work = terms["issue"] + terms["tensor"] + terms["shared"] + terms["barrier"]
    hidden = min(stream, work) / (resident * point.stages)
    seconds = terms["launch"] + terms["ramp"] + max(stream, work) + hidden
    return Cost(seconds, terms, blocks, per_sm, waves, counts)


def predict(graph: Graph, point: Point, per_sm: int, target: Target) -> Counts:
    """The counts of a launch, of which `per_sm` blocks fit an SM at a time."""
    blocks = math.prod(point.counts[axis] for axis in graph.grid)
    steps = math.prod(point.counts[axis] for axis in graph.loops)
    waves = math.ceil(blocks / (per_sm * target.sm_count))
    work = _work(graph, point)
    return Counts(
        global_bytes(graph, point),
        sum(
            _fetched_bytes(graph, operand, point, waves, target)
            for operand in (*graph.inputs, *graph.outputs)
        ),
        instructions(graph, point),
        blocks * steps * work.flops,
        round(blocks * steps * (work.matrix_bytes + work.copied_bytes)),
        blocks * steps * (1 if point.stages > 1 else 2),
    )


def global_bytes(graph: Graph, point: Point) -> int:
    """
    The bytes that all blocks ask for, exactly: parts of a dim add up to it, ragged or not.

    An input is read again by every block of a grid axis that does not cut it, and by every step of
    other loops than those that cut it if one cuts it; an output is written once.
    """
    total = sum(math.prod(operand.shape) * operand.element_bytes for operand in graph.outputs)
    for operand in graph.inputs:
        again = math.prod(point.counts[axis] for axis in graph.grid if axis not in operand.cuts)
        if not set(graph.loops).isdisjoint(operand.cuts):
            again *= math.prod(
                point.counts[axis] for axis in graph.loops if axis not in operand.cuts
            )
        total += math.prod(operand.shape) * operand.element_bytes * again
    return total


def instructions(graph: Graph, point: Point, model: InstructionModel = INSTRUCTIONS) -> int:
    """Warp instructions of all blocks, by the model of what code generation prints."""
    blocks = math.prod(point.counts[axis] for axis in graph.grid)
    steps = math.prod(point.counts[axis] for axis in graph.loops)
    features = instruction_features(graph, point)
    per_block = sum(
        getattr(model, name) * (count * steps if name in STEP_FEATURES else count)
        for name, count in features.items()
    )
    return round(blocks * per_block)


STEP_FEATURES = ("vector", "mma", "matrix", "summed", "step")
"""Features that count per step; the others count per block."""


def instruction_features(graph: Graph, point: Point) -> dict[str, float]:
    """Per block or step, what each entry of the `InstructionModel` counts."""
    work = _work(graph, point)
    summed = sum(tile_elements(tile, point.tiles) for tile in graph.sums)
    stored = sum(math.prod(tile_extents(o, point.tiles)) for o in graph.outputs)
    return {
        "vector": work.copied_bytes / 16 / 32,
        "mma": work.flops / MMA_FLOPS,
        "matrix": work.matrix_bytes / MATRIX_BYTES,
        "summed": summed / 32,
        "stored": stored / 32,
        "step": float(point.warps),
        "warp": float(point.warps),
    }


@dataclass(frozen=True)
class _Work:
    """Per block and step."""

    flops: int
    matrix_bytes: int
    copied_bytes: float


def _work(graph: Graph, point: Point) -> _Work:
    mmas = matrices = 0
    for product in graph.products:
        shape = padded(product, point.tiles, point.swap)
        split = warp_split(*shape, point.warps, point.swap)
        mmas += split.mmas
        matrices += split.matrices
    once, looped = input_bytes(graph, point.tiles)
    steps = math.prod(point.counts[axis] for axis in graph.loops)
    return _Work(MMA_FLOPS * mmas, MATRIX_BYTES * matrices, looped + once / steps)


def _fetched_bytes(graph: Graph, operand: Operand, point: Point, waves: int, target: Target) -> int:
    """The bytes of an operand that come from DRAM."""
    whole = math.prod(operand.shape) * operand.element_bytes
    if whole > target.l2_bytes:
        # What does not fit in L2 is fetched again by every wave of blocks that needs it.
        blocks = math.prod(point.counts[axis] for axis in graph.grid)
        steps = math.prod(point.counts[axis] for axis in graph.loops)
        looped = not set(graph.loops).isdisjoint(operand.cuts)
        moved = blocks * tile_bytes(operand, point.tiles) * (steps if looped else 1)
        whole = min(moved, whole * waves)
    return int(whole * _fetch_ratio(operand, point.tiles))


def _fetch_ratio(operand: Operand, tiles: Mapping[str, int]) -> float:
    """Bytes fetched from DRAM over bytes used: more than 1 if rows of tiles are short."""
    extent = tile_extents(operand, tiles)[-1]
    if extent == operand.shape[-1]:
        return 1.0
    return max(1.0, FETCH_BYTES / (extent * operand.element_bytes))
