from __future__ import annotations

from prism.dialects.sym_expr import SymExpr
from prism.search.dags import enumerate_dags
from prism.search.egraph import saturate
from prism.search.terms import TermTable

N, D, ONE = SymExpr.symbol("n"), SymExpr.symbol("d"), SymExpr.constant(1)


def dag_keys(table: TermTable, *outputs: int, limit: int = 500):
    classes = saturate(table, outputs)
    found = enumerate_dags(table, classes, [classes.of_term[t] for t in outputs], limit)
    return [tuple(table.key(term) for term in dag) for dag in found.dags], found.complete


def test_a_product_is_one_dag():
    table = TermTable()
    product = table.apply("matmul", [table.input(0, (N, D)), table.input(1, (D, D))])
    assert dag_keys(table, product) == ([("input<0>();input<1>();matmul(0,1)",)], True)


def test_both_places_of_a_column_divisor():
    table = TermTable()
    x, r, w = table.input(0, (N, D)), table.input(1, (N, ONE)), table.input(2, (D, D))
    root = table.apply("matmul", [table.apply("div", [x, r]), w])
    assert dag_keys(table, root)[0] == [
        ("input<0>();input<1>();div(0,1);input<2>();matmul(2,3)",),
        ("input<0>();input<2>();matmul(0,1);input<1>();div(2,3)",),
    ]


def test_commuted_operands_and_spelled_squares_are_no_other_dags():
    table = TermTable()
    x, y = table.input(0, (N, D)), table.input(1, (N, D))
    assert len(dag_keys(table, table.apply("mul", [x, y]))[0]) == 1
    assert dag_keys(table, table.apply("mul", [x, x]))[0] == [("input<0>();square(0)",)]


def test_an_input_is_not_computed():
    table = TermTable()
    x = table.input(0, (N, D))
    again = table.apply("scale", [table.apply("scale", [x], ONE / D)], D)
    assert dag_keys(table, again)[0] == [("input<0>()",)]


def test_choices_are_acyclic():
    # a / r where r = sqrt(z), z = r^2: choosing both r = sqrt(z) and z = r^2 would be a cycle.
    table = TermTable()
    z = table.apply("shift", [table.apply("square", [table.input(0, (N, ONE))])], ONE)
    root = table.apply("sqrt", [z])
    squared = table.apply("square", [root])
    keys, _ = dag_keys(table, root, squared)
    assert keys == [
        ("input<0>();square(0);shift<1>(1);sqrt(2)", "input<0>();square(0);shift<1>(1)")
    ]


def test_several_outputs_share_their_choices():
    table = TermTable()
    x, r, w = table.input(0, (N, D)), table.input(1, (N, ONE)), table.input(2, (D, D))
    divided = table.apply("div", [x, r])
    product = table.apply("matmul", [divided, w])
    keys, _ = dag_keys(table, product, divided)
    assert len(keys) == 2
    assert all(key[1] == "input<0>();input<1>();div(0,1)" for key in keys)


def test_the_limit_is_kept_and_told():
    table = TermTable()
    total = table.input(0, (N, D))
    for i in range(1, 6):
        total = table.apply("add", [total, table.input(i, (N, D))])
    keys, complete = dag_keys(table, total, limit=10)
    assert len(keys) == 10
    assert not complete
