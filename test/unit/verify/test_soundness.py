"""Random terms: whatever the e-graph puts into one class denotes one value at every index."""

import random
import time
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from prism.verify.denotation import Index, Model
from prism.verify.egraph import EGraph
from prism.verify.exact import ExactArray, UndecidedError, each, exact, same
from prism.verify.prove import close
from prism.verify.terms import IllShapedError, TermTable
from prism.verify.verdict import Limits

AXES = ("0.i", "0.x")

UNARY = (
    "neg",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "square",
    "reciprocal",
    "sigmoid",
    "silu",
    "relu",
    "tanh",
)

BINARY = ("add", "sub", "mul", "mul", "div", "div", "maximum")


def random_table(seed: int, number: int = 60) -> TermTable:
    """A table of well-shaped terms over a few inputs, with every head of the language."""
    state = random.Random(seed)
    table = TermTable()
    n, d, one = ("n",), ("d",), ("1",)
    for name, shape in {"x": (n, d), "s": (n, one), "w": (d, d), "r": (one, d)}.items():
        table.input(name, shape)
    for _ in range(40 * number):
        if len(table.terms) >= number:
            break
        a, b = (state.randrange(len(table.terms)) for _ in range(2))
        dim, axis = state.choice((1, 2)), state.choice(AXES)
        constant = table.monomial(
            Fraction(state.choice((-1, 2, 0, 3))), state.choice(({}, {"n": 1}, {"d": -1}))
        )
        try:
            match state.choice(
                (
                    "un",
                    "bin",
                    "bin",
                    "matmul",
                    "matmul",
                    "sum",
                    "part",
                    "part",
                    "red",
                    "red",
                    "comb",
                    "scale",
                    "shift",
                )
            ):
                case "un":
                    table.unary(state.choice(UNARY), a)
                case "bin":
                    table.binary(state.choice(BINARY), a, b)
                case "matmul":
                    table.matmul(a, b)
                case "sum":
                    table.sum(dim, a)
                case "part" if axis not in table.axes(a):
                    table.part(a, dim, axis)
                case "red" if axis in table.axes(a):
                    table.red(a, axis)
                case "comb":
                    table.comb(a, dim, axis)
                case "scale":
                    table.scale(constant, a)
                case "shift":
                    table.shift(constant, a)
                case _:
                    pass
        except IllShapedError:
            continue
    return table


LIMITS = Limits(rounds=6, nodes=8000, seconds=5)


def all_pairs(table: TermTable) -> list[tuple[int, int]]:
    """Goals that enter every term and are never all reached."""
    return [(0, term) for term in range(len(table.terms))]


def model_of(table: TermTable, seed: int) -> Model:
    state = np.random.default_rng(seed)
    sizes = {"n": int(state.integers(1, 4)), "d": int(state.integers(1, 4))}
    counts = {axis: int(state.integers(1, 4)) for axis in AXES}
    arrays: dict[str, ExactArray] = {}

    def draw(name: str, index: Index) -> ExactArray:
        if name not in arrays:
            shape = [
                model.extent(size, {})
                for term in table.terms
                if term.arguments == (name,)
                for size in term.shape
            ]
            values = state.choice([-1.5, -1.0, 0.0, 0.5, 2.0], shape)
            values = values if seed % 2 else np.abs(values) + 0.25
            arrays[name] = each(lambda x: exact(Fraction(x)), values)
        return arrays[name]

    model = Model(table, sizes, counts, draw)
    return model


def classes(table: TermTable, egraph: EGraph) -> list[list[int]]:
    found: list[list[int]] = []
    for term in range(len(table.terms)):
        for group in found:
            if egraph.same(group[0], term):
                group.append(term)
                break
        else:
            found.append([term])
    return found


@pytest.mark.parametrize("seed", range(25))
def test_equal_classes_denote_equal_values(seed: int) -> None:
    table = random_table(seed)
    closure = close(table, AXES, all_pairs(table), LIMITS, time.perf_counter())
    models = [model_of(table, s) for s in range(4)]
    for group in classes(table, closure.egraph):
        for left, right in combinations(group, 2):
            assert table.shape(left) == table.shape(right)
            for model in models:
                for at in product(*(range(model.counts[axis]) for axis in AXES)):
                    index = dict(zip(AXES, at, strict=True))
                    try:
                        assert same(model.value(left, index), model.value(right, index))
                    except UndecidedError:
                        continue


def test_random_terms_do_meet() -> None:
    """The test above is about something: many classes have several terms."""
    met = 0
    for seed in range(10):
        table = random_table(seed)
        closure = close(table, AXES, all_pairs(table), LIMITS, time.perf_counter())
        met += sum(len(group) > 1 for group in classes(table, closure.egraph))
    assert met >= 20
