"""
Times on the GPU: CUDA events around replays of a graph that runs a function on rotated inputs.

One graph holds a call for each copy of the inputs, and the copies together exceed the L2 cache
several times: a call finds nothing of its inputs there, as in a model, where other layers run
between. A replay costs one launch of the host for all calls.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

REPLAYS = 40
WARM_UP = 3
MAX_COPIES = 128
L2_FACTOR = 3
"""How often the copies of the inputs exceed the L2 cache, together."""


@dataclass(frozen=True)
class Timing:
    """Microseconds of a call: the median and the least of `replays` replays of `copies` calls."""

    median_us: float
    least_us: float
    replays: int
    copies: int


def copies_for(input_bytes: int, l2_bytes: int, budget_bytes: int) -> int:
    """How many copies of the inputs exceed the L2 cache `L2_FACTOR` times within a budget."""
    wanted = -(-L2_FACTOR * l2_bytes // max(1, input_bytes)) + 1
    return max(1, min(wanted, MAX_COPIES, budget_bytes // max(1, input_bytes)))


@dataclass(frozen=True)
class Graph:
    """A captured CUDA graph of `calls` calls; `kept` holds the results that it writes to."""

    graph: Any
    calls: int
    kept: object


def capture(torch: Any, calls: Sequence[Callable[[], object]]) -> Graph:
    """
    Capture calls that launch on torch's current stream, one for each copy of the inputs.

    They run once before the capture, as first calls load code and allocate.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [call() for call in calls]
    return Graph(graph, len(calls), kept)


def time_graph(torch: Any, graph: Graph) -> Timing:
    """Time the replays of a graph."""
    for _ in range(WARM_UP):
        graph.graph.replay()
    torch.cuda.synchronize()
    times: list[float] = []
    for _ in range(REPLAYS):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        graph.graph.replay()
        end.record()
        end.synchronize()
        times.append(1000 * float(start.elapsed_time(end)) / graph.calls)
    return Timing(statistics.median(times), min(times), REPLAYS, graph.calls)


def copy_bandwidth(torch: Any, nbytes: int) -> float:
    """Bytes per second, read and written, of a copy of `nbytes` within device memory."""
    source = torch.ones(nbytes // 4, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    timing = time_graph(torch, capture(torch, [lambda: target.copy_(source)]))
    return 2 * nbytes / (timing.median_us * 1e-6)
