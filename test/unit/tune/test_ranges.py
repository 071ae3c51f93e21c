"""Ranges of shapes: every size once, within the slack of its best, in as few sections as can be."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.cli.compile import Pipeline
from prism.cli.environment import make_context
from prism.cli.source import read_source
from prism.tune.bindings import BindingError
from prism.tune.choose import Choice, choose
from prism.tune.ranges import (
    MAX_SIZES,
    SLACK,
    ShapeRange,
    divide,
    parse_range,
    plan,
    shared_parameters,
)
from prism.tune.target import load_target

EXAMPLES = Path(__file__).parents[3] / "examples"

Costs = Mapping[tuple[int, int], float]


def fake(number: int, seconds: float) -> Choice:
    candidate = SimpleNamespace(sym_name=SimpleNamespace(data=f"g{number}"))
    point = SimpleNamespace(tiles={}, counts={}, warps=1, swap=0, stages=1)
    cost = SimpleNamespace(seconds=seconds)
    return cast(Choice, SimpleNamespace(candidate=candidate, point=point, cost=cost))


def number_of(choice: Choice) -> int:
    return int(choice.candidate.sym_name.data[1:])


def fewest(costs: Costs, kinds: int, sizes: range) -> int:
    """The fewest sections, by trying every cut."""
    best = {n: min(costs[kind, n] for kind in range(kinds)) for n in sizes}
    needed = {sizes.stop: 0}
    for start in reversed(sizes):
        ends = [
            end
            for end in range(start + 1, sizes.stop + 1)
            if any(
                all(costs[kind, n] <= SLACK * best[n] for n in range(start, end))
                for kind in range(kinds)
            )
        ]
        needed[start] = 1 + min(needed[end] for end in ends)
    return needed[sizes.start]


@given(st.integers(1, 4), st.integers(1, 9), st.data())
def test_sections_cover_every_size_within_the_slack(kinds: int, count: int, data: st.DataObject):
    sizes = range(3, 3 + count)
    costs = {
        (kind, n): data.draw(st.sampled_from([1.0, 1.04, 1.05, 1.06, 2.0]))
        for kind in range(kinds)
        for n in sizes
    }
    best = {
        n: fake(kind, costs[kind, n])
        for n in sizes
        for kind in [min(range(kinds), key=lambda kind: costs[kind, n])]
    }
    sections = divide(best, lambda c, n: fake(number_of(c), costs[number_of(c), n]))
    assert [n for section in sections for n in section.sizes] == list(sizes)
    for section in sections:
        assert list(section.choices) == list(section.sizes)
        for n in section.sizes:
            seconds = costs[int(section.graph[1:]), n]
            assert section.choices[n].cost.seconds == seconds
            assert seconds <= SLACK * best[n].cost.seconds
        assert section.worst <= SLACK
    # A kind that is the best of no size may only add sections, never save any.
    used = {number_of(choice) for choice in best.values()}
    if len(used) == kinds:
        assert len(sections) == fewest(costs, kinds, sizes)


def test_what_does_not_fit_ends_a_section():
    best = {n: fake(0 if n < 3 else 1, 1.0) for n in range(1, 5)}
    sections = divide(best, lambda choice, size: None)
    assert [(s.first, s.last, s.graph) for s in sections] == [
        (1, 1, "g0"),
        (2, 2, "g0"),
        (3, 3, "g1"),
        (4, 4, "g1"),
    ]


def test_the_plan_of_rms_norm_is_within_five_percent():
    context = make_context()
    pipeline = Pipeline(context, read_source(EXAMPLES / "rms_norm.mlir", context), lambda _: None)
    pipeline.search()
    target = load_target("sm_80")
    shape = ShapeRange("n", 7, 10, "d=512")
    candidates = pipeline.candidates()

    def sizes(n: int) -> dict[str, int]:
        return {"n": n, "d": 512}

    sections = plan(candidates, shape, sizes, target)
    assert len(sections) > 1
    assert [n for section in sections for n in section.sizes] == list(shape.sizes)
    for section in sections:
        for n, choice in section.choices.items():
            best = choose(candidates, sizes(n), target)
            assert choice.cost.seconds <= 1.05 * best.cost.seconds
            assert choice.candidate.sym_name.data == section.graph
            assert shared_parameters(choice) == section.parameters


def test_parse():
    assert parse_range("n=8,d=4096") is None
    assert parse_range("n=1..64,d=4096") == ShapeRange("n", 1, 64, "d=4096")
    assert parse_range("d=5, n=2..2") == ShapeRange("n", 2, 2, "d=5")
    assert ShapeRange("n", 1, 64, "d=4").shape(7) == "n=7,d=4"
    assert ShapeRange("n", 1, 64, "").shape(7) == "n=7"
    assert len(ShapeRange("n", 1, 64, "").sizes) == MAX_SIZES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n=1..65", "n=1..65 has 65 sizes; a bundle takes at most 64"),
        ("n=0..4", "n=0..4 is no range of sizes from 1"),
        ("n=5..4", "n=5..4 is no range"),
        ("n=1..9999999999", "is no range"),
        ("n=1..2,d=3..4", "expected one range, found 2"),
    ],
)
def test_bad_ranges(text: str, message: str):
    with pytest.raises(BindingError, match=message):
        parse_range(text)
