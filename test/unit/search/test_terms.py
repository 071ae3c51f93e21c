from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from prism.dialects.operators import Attributes
from prism.dialects.sym_expr import SymExpr
from prism.search.terms import TermTable, is_positive

N, D = SymExpr.symbol("n"), SymExpr.symbol("d")
EPS = SymExpr.constant(1) / 100000


def test_equal_terms_are_one():
    table = TermTable()
    x = table.input(0, (N, D))
    assert table.apply("exp", [x]) == table.apply("exp", [x])
    assert table.apply("exp", [x]) != table.apply("log", [x])
    assert len(table.nodes) == 3


def test_rms_norm_expands_to_its_definition():
    table = TermTable()
    x = table.input(0, (N, D))
    norm = table.expand("rms_norm", [x], Attributes(constant=EPS))
    assert table.key(norm) == (
        "input<0>();square(0);sum<1>(1);scale<1 / d>(2);shift<1 / 100000>(3);sqrt(4);div(0,5)"
    )
    assert table.shapes[norm] == (N, D)


def test_rms_norm_without_eps_adds_nothing():
    table = TermTable()
    x = table.input(0, (N, D))
    assert "shift" not in table.key(
        table.expand("rms_norm", [x], Attributes(constant=SymExpr.constant(0)))
    )


def test_mean_divides_by_the_size_of_its_dim():
    table = TermTable()
    x = table.input(0, (N, D))
    assert (
        table.key(table.expand("mean", [x], Attributes(dim=0)))
        == "input<0>();sum<0>(0);scale<1 / n>(1)"
    )


def test_keys_do_not_depend_on_what_else_the_table_holds():
    first, second = TermTable(), TermTable()
    keys = []
    for table in (first, second):
        x, y = table.input(0, (N, D)), table.input(1, (N, D))
        if table is second:
            table.apply("mul", [y, x])
        keys.append(table.key(table.apply("add", [table.apply("exp", [x]), y])))
    assert keys[0] == keys[1]


def test_keys_are_linear_in_what_is_shared():
    table = TermTable()
    x = table.input(0, (N, D))
    for _ in range(200):
        x = table.apply("add", [x, x])
    assert len(table.key(x)) < 200 * 20


def test_shapes_that_do_not_fit_are_refused():
    table = TermTable()
    x, w = table.input(0, (N, D)), table.input(1, (N, D))
    with pytest.raises(VerifyException, match="contracted"):
        table.apply("matmul", [x, w])


@pytest.mark.parametrize(
    ("value", "positive"),
    [
        (SymExpr.constant(1) / D, True),
        (N * D + SymExpr.constant(2), True),
        (SymExpr.constant(0), False),
        (SymExpr.constant(-1), False),
        (N - D, False),
    ],
)
def test_positive_is_read_off_the_signs(value: SymExpr, positive: bool):
    assert is_positive(value) is positive
