"""Terms: shapes, what is refused, constants, printing."""

from fractions import Fraction

import pytest

from prism.verify.report import TermPrinter, tree_of
from prism.verify.terms import IllShapedError, TermTable, shape_text

N, D, ONE = ("n",), ("d",), ("1",)


@pytest.fixture
def table() -> TermTable:
    return TermTable()


def test_equal_terms_are_one(table: TermTable) -> None:
    x = table.input("0", (N, D))
    assert table.unary("exp", x) == table.unary("exp", x)
    assert table.unary("exp", x) != table.unary("log", x)
    assert table.input("0", (N, D)) == x
    assert table.sum(1, x) != table.sum(2, x)


def test_shapes_and_axes(table: TermTable) -> None:
    x, w, s = table.input("0", (N, D)), table.input("1", (D, D)), table.input("2", (N, ONE))
    part = table.part(table.part(x, 1, "x"), 1, "i")
    assert table.shape(part) == (N, ("d", "x", "i"))
    assert shape_text(table.shape(part)) == "[n, d / (x * i)]"
    assert table.axes(part) == {"x", "i"}
    assert table.shape(table.binary("div", x, s)) == (N, D)
    assert table.shape(table.sum(1, x)) == (N, ONE)
    product = table.matmul(table.part(x, 1, "i"), table.part(w, 2, "i"))
    assert table.shape(product) == (N, D)
    assert table.axes(table.red(product, "i")) == frozenset()
    assert table.shape(table.comb(table.part(x, 2, "x"), 2, "x")) == (N, D)


def test_terms_without_meaning_are_refused(table: TermTable) -> None:
    x, w, s = table.input("0", (N, D)), table.input("1", (D, D)), table.input("2", (N, ONE))
    cut = table.part(x, 1, "i")
    refused = {
        "sizes n and d in dim 0": lambda: table.binary("add", x, w),
        "sizes d / i and d in dim 1": lambda: table.binary("add", cut, x),
        r"matmul of \[n, d / i\] and \[d, d\]": lambda: table.matmul(cut, w),
        "cuts a dim of size 1": lambda: table.part(s, 1, "i"),
        "chunks along axis i, not summands": lambda: table.red(cut, "i"),
        "not cut last by axis x": lambda: table.comb(cut, 1, "x"),
        "no such dim": lambda: table.sum(3, x),
    }
    for message, build in refused.items():
        with pytest.raises(IllShapedError, match=message):
            build()


def test_products_of_sizes_are_equal_when_their_numbers_are(table: TermTable) -> None:
    half_d = table.monomial(Fraction(1, 2), {"d": 1, "n": -2})
    again = table.monomial(Fraction(1, 2), {"n": -2, "d": 1})
    assert half_d == again
    others = [
        table.monomial(Fraction(1, 2), exponents)
        for exponents in ({"d": 1}, {"d": 1, "n": -1}, {"n": 1, "d": -2}, {"d": 2, "n": -2}, {})
    ]
    assert len({half_d, *others}) == 6
    assert table.monomial(Fraction(0), {"d": 1}) == table.monomial(Fraction(0), {})
    primes = [table.constants_symbol(name) for name in "abcdefgh"]
    assert all(p % q for p in primes for q in primes if p != q)


def test_text(table: TermTable) -> None:
    x, w = table.input("0", (N, D)), table.input("1", (D, D))
    mean = table.scale(
        table.monomial(Fraction(1), {"d": -1}), table.sum(1, table.unary("square", x))
    )
    root = table.unary("sqrt", table.shift(table.monomial(Fraction(1, 10), {}), mean))
    term = table.matmul(table.binary("div", x, root), w)
    printer = TermPrinter(["x", "w"], table.symbols, 2)
    assert (
        printer.text(tree_of(table, term))
        == "(%x / sqrt(1 / 10 + (1 / d * sum(square(%x), dim 1)))) @ %w"
    )
    part = table.red(table.matmul(table.part(x, 1, "0.i"), table.part(w, 2, "0.i")), "0.i")
    assert printer.text(tree_of(table, part)) == "red(part(%x, dim 1, i) @ part(%w, dim 0, i), i)"


def test_text_of_a_shared_term_is_bounded(table: TermTable) -> None:
    term = table.input("0", (N, D))
    for _ in range(200):
        term = table.binary("add", term, term)
    text = TermPrinter(["x"], table.symbols, 2).text(tree_of(table, term))
    assert len(text) <= 240
    assert "..." in text
