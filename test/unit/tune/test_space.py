"""Spaces: generated without dead ends, counted exactly, sampled uniformly."""

import itertools
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.tune import space as space_module
from prism.tune.graph import Axis, Graph, Operand, Product
from prism.tune.space import GRID_TILES, LOOP_TILES, SWAPS, WARPS, Point, Space
from prism.tune.target import load_target
from prism.tune.usage import MAX_ACCUMULATORS, accumulators, input_bytes

A100 = load_target("sm_80")


def product_graph(n: int, k: int, m: int) -> Graph:
    """X[n, k] @ W[k, m], rows over y, columns over x, k over i."""
    return Graph(
        "g",
        (Axis("x", m, None), Axis("y", n, None), Axis("i", k, None)),
        (Operand((n, k), 2, {"y": 0, "i": 1}), Operand((k, m), 2, {"x": 1, "i": 0})),
        (Operand((n, m), 2, {"y": 0, "x": 1}),),
        (Product((n, m, k), (("y",), ("x",), ("i",))),),
    )


def brute_force(graph: Graph) -> set[tuple[int, ...]]:
    """The full product, filtered by the constraints as they are defined."""
    found: set[tuple[int, ...]] = set()
    options = [
        [*(t for t in (GRID_TILES if axis.is_grid else LOOP_TILES) if t < axis.size), axis.size]
        for axis in graph.axes
    ]
    stages = space_module.STAGES if graph.loops else (1,)
    for values in itertools.product(*options, WARPS, SWAPS, stages):
        tiles = dict(zip("xyi", values, strict=False))
        warps, swap, staged = values[-3:]
        once, looped = input_bytes(graph, tiles)
        counts = [-(-axis.size // tiles[axis.name]) for axis in graph.axes]
        if (
            once + staged * looped <= A100.max_shared_bytes_per_block
            and accumulators(graph, tiles, swap) <= MAX_ACCUMULATORS * 32 * warps
            and counts[1] <= A100.max_grid[1]
            and staged <= max(1, counts[2])
        ):
            found.add(values)
    return found


def key(point: Point) -> tuple[int, ...]:
    return (*point.tiles.values(), point.warps, point.swap, point.stages)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 300), st.integers(1, 5000), st.integers(1, 5000))
def test_points_are_exactly_the_legal_ones(n: int, k: int, m: int):
    graph = product_graph(n, k, m)
    space = Space(graph, A100)
    found = [key(point) for point in space.points()]
    assert len(found) == len(set(found)) == space.count
    assert set(found) == brute_force(graph)


def test_no_prefix_is_without_a_point(monkeypatch: pytest.MonkeyPatch):
    """Generation by constraint: every prefix that is extended leads to a point."""
    graph = product_graph(256, 4096, 4096)
    extended = 0
    original = Space._extend

    def count(self: Space, axes, tiles, counts):
        nonlocal extended
        found = list(original(self, axes, tiles, counts))
        extended += 1
        assert sum(len(tiling.settings) for tiling in found) > 0
        return iter(found)

    monkeypatch.setattr(Space, "_extend", count)
    assert Space(graph, A100).count > 0
    assert extended > 100


def test_grid_limit():
    small = replace(A100, max_grid=(1000, 4, 4))
    for point in Space(product_graph(256, 64, 64), small).points():
        assert point.counts["y"] <= 4


def test_a_batch_axis_has_small_tiles():
    graph = Graph("g", (Axis("x", 6, None, True),), (Operand((6, 8, 8), 2, {"x": 0}),), (), ())
    assert Space(graph, A100).dimensions()["tile.x"] == (1, 2, 4, 6)


def test_point_by_index():
    space = Space(product_graph(16, 100, 100), A100)
    listed = list(space.points())
    assert [space.point(index) for index in range(space.count)] == listed
    for index in (-1, space.count):
        with pytest.raises(IndexError):
            space.point(index)


def test_samples_are_uniform_and_distinct():
    space = Space(product_graph(16, 100, 40), A100, {"swap": 1, "stages": 1})
    total = space.count
    assert 60 < total < 400
    seen: Counter[tuple[int, ...]] = Counter()
    rounds, number = 400, total // 4
    for seed in range(rounds):
        drawn = [key(point) for point in space.sample(Random(seed), number)]
        assert len(set(drawn)) == number
        seen.update(drawn)
    # Each is drawn in a quarter of the rounds: 6 standard deviations of a binomial.
    expected = rounds * number / total
    deviation = (rounds * 0.25 * 0.75) ** 0.5
    assert len(seen) == total
    assert max(abs(count - expected) for count in seen.values()) < 6 * deviation


def test_a_sample_of_all():
    space = Space(product_graph(8, 40, 20), A100)
    assert len(space.sample(Random(0), 10**6)) == space.count


def test_the_same_seed_draws_the_same():
    space = Space(product_graph(64, 512, 256), A100)
    assert space.sample(Random(5), 20) == space.sample(Random(5), 20)
    assert space.sample(Random(5), 20) != space.sample(Random(6), 20)


def test_nothing_fits_a_tiny_target():
    tiny = replace(A100, max_shared_bytes_per_block=64)
    space = Space(product_graph(64, 512, 256), tiny)
    assert space.count == 0
    assert list(space.points()) == []
    assert space.sample(Random(0), 3) == []
