"""Map variables: what the store derives is what brute force over all assignments says."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.search.enumerative.cuts import CUT, NEVER, Cuts

COUNT = 5
LITERALS = st.integers(0, COUNT + 1)
FACTS = st.one_of(
    st.tuples(st.just("equate"), st.tuples(LITERALS, LITERALS)),
    st.tuples(st.just("exclude"), st.lists(LITERALS, min_size=1, max_size=3).map(tuple)),
    st.tuples(st.just("require"), st.lists(LITERALS, min_size=1, max_size=3).map(tuple)),
)


def assignments(facts):
    """Every assignment of all literals under which all facts hold."""
    for bits in product((0, 1), repeat=COUNT):
        values = (0, 1, *bits)
        if all(holds(kind, [values[x] for x in literals]) for kind, literals in facts):
            yield values


def holds(kind: str, values: list[int]) -> bool:
    match kind:
        case "equate":
            return values[0] == values[1]
        case "exclude":
            return sum(values) <= 1
        case _:
            return sum(values) >= 1


def state(cuts: Cuts) -> object:
    known = tuple(cuts.find(literal) for literal in range(COUNT + 2))
    return known, tuple(cuts.exclusions), tuple(cuts.choices)


def tell(cuts: Cuts, kind: str, literals: tuple[int, ...]) -> bool:
    if kind == "equate":
        return cuts.equate(*literals) and cuts.consistent()
    return cuts.exclude(literals) if kind == "exclude" else cuts.require(literals)


@given(st.lists(FACTS, max_size=6))
def test_all_that_is_derived_holds_in_every_assignment(facts):
    cuts = Cuts()
    assert [cuts.variable() for _ in range(COUNT)] == list(range(2, COUNT + 2))
    states = []
    told = []
    for kind, literals in facts:
        states.append((cuts.mark(), state(cuts)))
        told.append((kind, literals))
        possible = list(assignments(told))
        if not tell(cuts, kind, literals):
            assert possible == []
            break
        for values in possible:
            for literal in range(COUNT + 2):
                assert values[cuts.find(literal)] == values[literal]
    for mark, before in reversed(states):
        cuts.undo(mark)
        assert state(cuts) == before


def test_two_cut_dims_of_one_tensor_are_a_contradiction():
    cuts = Cuts()
    a, b = cuts.variable(), cuts.variable()
    assert cuts.exclude([a, b])
    assert cuts.equate(a, CUT)
    assert cuts.find(b) == NEVER
    assert not cuts.equate(b, CUT)


def test_equal_dims_of_one_tensor_are_never_cut():
    cuts = Cuts()
    a, b, c = cuts.variable(), cuts.variable(), cuts.variable()
    assert cuts.exclude([a, b])
    assert cuts.equate(a, c)
    assert cuts.equate(b, c)
    assert {cuts.find(x) for x in (a, b, c)} == {NEVER}


@pytest.mark.parametrize("first", [NEVER, CUT])
def test_the_last_open_choice_is_taken(first):
    cuts = Cuts()
    a, b = cuts.variable(), cuts.variable()
    assert cuts.equate(a, first)
    assert cuts.require([a, b])
    assert cuts.find(b) == (CUT if first == NEVER else b)


def test_matching_compares_axis_by_axis():
    cuts = Cuts()
    a, b = (cuts.variable(), cuts.variable()), (cuts.variable(), NEVER)
    assert cuts.match(a, b)
    assert cuts.find(a[0]) == cuts.find(b[0])
    assert cuts.find(a[1]) == NEVER
    assert not cuts.match((CUT, NEVER), a) or cuts.find(a[0]) == CUT
    assert not cuts.match((NEVER, CUT), a)
