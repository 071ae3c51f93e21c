"""The layout table by exact evaluation of families of tiles, and the rows that follow from it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from prism.dialects.layouts import PARTIAL, REPL, layout_name, result_layout
from prism.dialects.operators import OPERATORS, Kind, Operator
from prism.dialects.sym_expr import SymExpr
from prism.search.graphs import from_terms
from prism.search.layouts import grid_rows, loop_cuts, loop_rows, step_layouts
from prism.search.terms import TermTable

PARTS = 2
SIZES = (4, 6, 8)
FUNCTIONS = {
    "neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "square": np.square,
    "rsqrt": lambda a: 1 / np.sqrt(a), "reciprocal": lambda a: 1 / a,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "silu": lambda a: a / (1 + np.exp(-a)),
    "relu": lambda a: np.maximum(a, 0), "tanh": np.tanh, "gelu": lambda a: a / (1 + np.exp(-1.7 * a)),
    "gelu_tanh": lambda a: a * (1 + np.tanh(a)), "pow": lambda a: np.abs(a) ** 1.5,
    "at_least": lambda a: np.maximum(a, 0.5), "at_most": lambda a: np.minimum(a, 0.5),
    "add": np.add, "sub": np.subtract,
    "mul": np.multiply, "div": np.divide, "maximum": np.maximum, "matmul": np.matmul,
    "scale": lambda a: a * 3, "shift": lambda a: a + 3,
}  # fmt: skip


def family(whole: np.ndarray, layout: int, random: np.random.Generator) -> list[np.ndarray]:
    """The tiles of a tensor on an axis of `PARTS` indices under a layout."""
    if layout == REPL:
        return [whole] * PARTS
    if layout == PARTIAL:
        first = whole * 0.5 + random.uniform(-1, 1, whole.shape)
        return [first, whole - first]
    return np.split(whole, PARTS, axis=layout)


def combined(tiles: list[np.ndarray], layout: int) -> np.ndarray | None:
    """The whole tensor that tiles stand for under a layout; None if they do not agree."""
    if layout == PARTIAL:
        return tiles[0] + tiles[1]
    if layout == REPL:
        return tiles[0] if np.allclose(tiles[0], tiles[1], equal_nan=True) else None
    return np.concatenate(tiles, axis=layout)


def run(operator: Operator, operands: list[np.ndarray], dim: int | None) -> np.ndarray | None:
    """The operator on arrays, or None where the table's shape rules refuse them."""
    if operator.kind is Kind.SUM:
        return operands[0].sum(axis=dim, keepdims=True)
    if operator.kind is Kind.BINARY:
        sizes = zip(operands[0].shape, operands[1].shape, strict=True)
        if any(a != b and 1 not in (a, b) for a, b in sizes):
            return None
    if operator.kind is Kind.MATMUL:
        a, b = operands
        if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
            return None
    return FUNCTIONS[operator.name](*operands)


def shape_cases(operator: Operator, rank: int) -> list[tuple[tuple[int, ...], ...]]:
    full = SIZES[:rank]
    if operator.kind is Kind.MATMUL:
        return [(full, (*full[:-2], full[-1], 10))]
    if operator.kind is Kind.BINARY:
        ones = product(*[((size,), (1,)) for size in full])
        small = [tuple(s for (s,) in one) for one in ones]
        return [pair for pair in product(small, repeat=2) if all(map(max, *pair))]
    return [(full,)]


def right_layouts(
    operator: Operator,
    shapes: tuple[tuple[int, ...], ...],
    layouts: tuple[int, ...],
    dim: int | None,
    random: np.random.Generator,
) -> set[int]:
    """The layouts under which the results of tiles combine to the whole result, on random operands."""
    wholes = [random.uniform(-2, 2, shape) for shape in shapes]
    expected = run(operator, wholes, dim)
    assert expected is not None
    families = [family(w, la, random) for w, la in zip(wholes, layouts, strict=True)]
    results = [run(operator, list(tiles), dim) for tiles in zip(*families, strict=True)]
    if any(r is None for r in results):
        return set()
    return {
        layout
        for layout in (REPL, PARTIAL, *range(expected.ndim))
        if (whole := combined(results, layout)) is not None
        and whole.shape == expected.shape
        and np.allclose(whole, expected, equal_nan=True)
    }


SIMPLE = (Kind.UNARY, Kind.SCALAR, Kind.BINARY, Kind.MATMUL, Kind.SUM)
"""Maxima and what moves elements are in `test/unit/dialects`."""

CASES = [
    (operator, rank, shapes, dim)
    for operator in OPERATORS.values()
    if operator.threadblock and operator.kind in SIMPLE
    for rank in ((2, 3) if operator.kind is not Kind.UNARY else (2,))
    for shapes in shape_cases(operator, rank)
    for dim in (range(rank) if operator.kind is Kind.SUM else (None,))
]


@pytest.mark.parametrize("name", sorted({case[0].name for case in CASES}))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_meeting_is_typed_iff_tiles_combine_to_the_whole(name: str):
    """
    For every operator, shapes with and without size 1, and layouts: if the table gives a layout, the tiles'
    results combine under it to the whole result; if it gives none, they do so under no layout.
    """
    random = np.random.default_rng(3)
    checked = {True: 0, False: 0}
    for operator, rank, shapes, dim in (case for case in CASES if case[0].name == name):
        ones = [[size == 1 for size in shape] for shape in shapes]
        choices = [[REPL, PARTIAL, *(d for d in range(rank) if shape[d] != 1)] for shape in shapes]
        for layouts in product(*choices):
            # Several draws: a maximum of few elements combines by chance.
            right = {REPL, PARTIAL, *range(rank)}
            for _ in range(6):
                right &= right_layouts(operator, shapes, layouts, dim, random)
            found = result_layout(operator, layouts, ones, dim)
            message = f"{name} {shapes} {dim} {[layout_name(la) for la in layouts]}: {right}"
            assert found in right if found is not None else not right, message
            checked[found is not None] += 1
    assert min(checked.values()) > 0 or OPERATORS[name].linear or name == "sum"


N, D, ONE = SymExpr.symbol("n"), SymExpr.symbol("d"), SymExpr.constant(1)


def test_the_rows_of_a_product():
    table = TermTable()
    product_ = table.apply("matmul", [table.input(0, (N, D)), table.input(1, (D, D))])
    graph = from_terms(table, [product_], (), ())
    assert grid_rows(graph) == [(REPL, 1, 1), (0, REPL, 0)]
    looped = from_terms(table, [product_], {product_}, ("i",))
    assert loop_rows(looped, "i") == [(1, 0, REPL)]
    assert grid_rows(looped) == grid_rows(graph)


def test_size_one_is_not_cut():
    table = TermTable()
    root = table.apply("exp", [table.input(0, (N, ONE))])
    assert grid_rows(from_terms(table, [root], (), ())) == [(0, 0)]


def test_a_loop_accumulates_where_sums_appear():
    table = TermTable()
    x, w = table.input(0, (N, D)), table.input(1, (D, D))
    total = table.apply("sum", [table.apply("square", [x])], 1)
    product_ = table.apply("matmul", [x, w])
    root = table.apply("div", [product_, total])
    assert loop_cuts(table, [root]) == [frozenset({product_, total})]


def test_what_is_whole_only_after_the_loop_is_not_used_inside():
    # X / sum(X) needs a second pass over X: no loop can cut d.
    table = TermTable()
    x, w = table.input(0, (N, D)), table.input(1, (D, D))
    normed = table.apply("div", [x, table.apply("sum", [x], 1)])
    assert loop_cuts(table, [table.apply("matmul", [normed, w])]) == []


def test_a_loop_invariant_value_is_used_inside_and_after():
    # sum_d(Y) r + r: r varies with no loop over d.
    table = TermTable()
    y, r = table.input(0, (N, D)), table.input(1, (N, ONE))
    total = table.apply("sum", [table.apply("mul", [y, r])], 1)
    root = table.apply("add", [total, r])
    assert loop_cuts(table, [root]) == [frozenset({total})]
    graph = from_terms(table, [root], {total}, ("i",))
    assert loop_rows(graph, "i") == [(1, REPL, REPL)]


def test_two_loops_that_cut_different_sums_are_two_cuts():
    table = TermTable()
    k = SymExpr.symbol("k")
    a, b = table.input(0, (N, D)), table.input(1, (N, k))
    left, right = table.apply("sum", [a], 1), table.apply("sum", [b], 1)
    root = table.apply("mul", [left, right])
    cuts = loop_cuts(table, [root])
    assert set(cuts) == {frozenset({left}), frozenset({right}), frozenset({left, right})}


def test_a_misplaced_accum_has_no_row():
    table = TermTable()
    x, w = table.input(0, (N, D)), table.input(1, (D, D))
    gate = table.apply("silu", [table.apply("matmul", [x, w])])
    assert loop_rows(from_terms(table, [gate], {gate}, ("i",)), "i") == []


def test_an_accum_may_follow_linear_operators():
    table = TermTable()
    x = table.input(0, (N, D))
    scaled = table.apply("scale", [table.apply("sum", [x], 1)], ONE / D)
    graph = from_terms(table, [scaled], {scaled}, ("i",))
    assert loop_rows(graph, "i") == [(1, REPL)]


def test_step_layouts_show_what_each_step_owes():
    table = TermTable()
    product_ = table.apply("matmul", [table.input(0, (N, D)), table.input(1, (D, D))])
    graph = from_terms(table, [product_], {product_}, ("i",))
    assert step_layouts(graph, "i", (1, 0, REPL)) == [1, 0, PARTIAL, REPL, REPL]
    with pytest.raises(ValueError, match="ill-typed"):
        step_layouts(graph, "i", (0, REPL, REPL))
