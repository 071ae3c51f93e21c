"""sGraphs and maps: the constraints say what the layout table says; the paper's counts."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.utils.exceptions import VerifyException

from prism.dialects.layouts import PARTIAL, REPL
from prism.dialects.sym import Constraint
from prism.dialects.sym_expr import SymExpr
from prism.search.graphs import from_terms
from prism.search.layouts import grid_rows, loop_cuts, loop_rows, step_layouts
from prism.search.maps import assignments, typed_assignments
from prism.search.sgraph import SGraph, constrain, solutions
from prism.search.terms import TermTable

N, D, ONE = SymExpr.symbol("n"), SymExpr.symbol("d"), SymExpr.constant(1)
K = SymExpr.symbol("k")


def test_the_paper_s_count_of_maps():
    """
    The recount of the paper's figure 1 (paper-facts.md): X[r,c], W[r,c], O[r,c], grid axes x and y, a loop i.

    65,536 raw assignments; 3,087 where an axis cuts at most one dim of a tensor and a dim is cut by at most one
    grid axis; 595 with the matching of X's c and W's r; 300 up to the order of the grid axes.
    """
    axes = {"X": "xyi", "W": "xyi", "O": "xy"}
    name = "{}_{}_{}".format
    variables = [name(t, d, p) for t, of in axes.items() for p in of for d in "rc"]
    assert 2 ** len(variables) == 65_536
    one_dim_per_axis = [
        Constraint("at_most_one", (name(t, "r", p), name(t, "c", p)))
        for t, of in axes.items()
        for p in of
    ]
    one_axis_per_dim = [
        Constraint("at_most_one", (name(t, d, "x"), name(t, d, "y"))) for t in axes for d in "rc"
    ]
    constraints = one_dim_per_axis + one_axis_per_dim
    assert sum(1 for _ in solutions(variables, constraints)) == 3_087
    matching = [Constraint("equal", (name("X", "c", p), name("W", "r", p))) for p in "xyi"]
    found = [
        frozenset(v for v, true in solution.items() if true)
        for solution in solutions(variables, constraints + matching)
    ]
    assert len(found) == 595
    swap = str.maketrans("xy", "yx")
    classes = {
        min(sorted(one), sorted(v[:-1] + v[-1].translate(swap) for v in one)).__repr__()
        for one in found
    }
    assert len(classes) == 300


def product_graph(accumulated: bool):
    table = TermTable()
    root = table.apply("matmul", [table.input(0, (N, D)), table.input(1, (D, D))])
    return from_terms(table, [root], {root} if accumulated else (), ("i",) if accumulated else ())


def test_the_maps_of_a_product():
    rows, columns = (0, REPL, 0), (REPL, 1, 1)
    expected = [(), (columns,), (rows,), (columns, rows)]
    assert list(typed_assignments(product_graph(False))) == [(grid, ()) for grid in expected]
    loop = ((1, 0, REPL),)
    assert list(typed_assignments(product_graph(True))) == [(grid, loop) for grid in expected]


def test_the_constraints_of_a_product():
    sgraph = constrain(product_graph(True), ("x",))
    assert sgraph.variables == tuple(f"m{i}" for i in range(10))
    assert [str(c) for c in sgraph.constraints] == [
        "never(m1, m4)",
        "at_most_one(m8, m9)",
        "equal(m0, m8)",
        "equal(m5, m9)",
        "never(m2, m7)",
        "equal(m3, m6)",
        "some(m3)",
    ]


def test_constraints_of_its_own_narrow_the_maps():
    sgraph = constrain(product_graph(True))
    forbidden = Constraint("never", tuple(sgraph.maps[0, axis][0] for axis in "xyz"))
    narrowed = SGraph(sgraph.graph, sgraph.grid, sgraph.maps, (*sgraph.constraints, forbidden))
    assert len(list(assignments(sgraph))) == 4
    assert [grid for grid, _ in assignments(narrowed)] == [(), ((REPL, 1, 1),)]


def test_a_constraint_on_one_axis_leaves_the_others():
    # Rows may be cut by y or z though never by x: choices stand for all orders of the grid axes.
    sgraph = constrain(product_graph(False))
    forbidden = Constraint("never", (sgraph.maps[0, "x"][0],))
    narrowed = SGraph(sgraph.graph, sgraph.grid, sgraph.maps, (*sgraph.constraints, forbidden))
    assert len(list(assignments(narrowed))) == 4


def test_fixed_maps_admit_themselves_only():
    graph = product_graph(True)
    columns = (REPL, 1, 1)
    maps = {(t, "x"): cut for t, cut in zip(graph.tensors, columns, strict=True)}
    maps |= {(0, "i"): 1, (1, "i"): 0}
    concrete = SGraph(graph, ("x",), maps, ())
    assert list(assignments(concrete)) == [((columns,), ((1, 0, REPL),))]
    wrong = SGraph(graph, ("x",), maps | {(1, "i"): 1}, ())
    assert list(assignments(wrong)) == []


def test_fewer_grid_axes_allow_fewer_cuts():
    sgraph = constrain(product_graph(False), ("x",))
    assert [len(grid) for grid, _ in assignments(sgraph)] == [0, 1, 1]


def test_a_square_matrix_times_itself_cuts_rows_and_columns_apart():
    table = TermTable()
    w = table.input(0, (D, D))
    graph = from_terms(table, [table.apply("matmul", [w, w])], (), ())
    assert grid_rows(graph) == []
    assert list(assignments(constrain(graph))) == [((), ())]


OPERATORS = ("matmul", "add", "mul", "div", "exp", "sum0", "sum1", "scale")


@st.composite
def terms(draw: st.DrawFn):
    """A random small DAG of well-shaped operators over up to three inputs, and a choice of its loops."""
    table = TermTable()
    sizes = st.sampled_from((ONE, N, D))
    pool = [table.input(i, (draw(sizes), draw(sizes))) for i in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from(OPERATORS))
        x, y = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        try:
            match name:
                case "matmul" | "add" | "mul" | "div":
                    term = table.apply(name, [x, y])
                case "exp":
                    term = table.apply("exp", [x])
                case "scale":
                    term = table.apply("scale", [x], ONE / N)
                case _:
                    term = table.apply("sum", [x], int(name[-1]))
        except VerifyException:
            continue
        pool.append(term)
    outputs = [pool[-1]]
    cuts = [frozenset[int](), *loop_cuts(table, outputs)]
    cut = draw(st.sampled_from(cuts))
    return from_terms(table, outputs, cut, ("i",) if cut else ())


def accumulates_early(graph, axis: str, row) -> bool:
    """Whether each sum that the loop owes is accumulated at the step where it appears."""
    accumulated = {step.operands[0] for step in graph.steps if step.name == "accum"}
    layouts = step_layouts(graph, axis, row)
    return all(index in accumulated for index, la in enumerate(layouts) if la == PARTIAL)


@settings(max_examples=300, deadline=None)
@given(terms())
def test_constraints_hold_for_exactly_the_typed_rows(graph):
    """
    Brute force over the Boolean variables of two grid axes and the loop, against rows of the layout table.
    """
    grid = ("x", "y")
    sgraph = constrain(graph, grid)
    free = [v for c in sgraph.constraints if c.kind == "never" for v in c.variables]
    order = [*free, *(v for v in sgraph.variables if v not in free)]
    found = set()
    for solution in solutions(order, sgraph.constraints):
        rows = []
        for axis in (*grid, *graph.loops):
            row = []
            for tensor in graph.tensors:
                names = sgraph.maps.get((tensor, axis), ())
                cut = [d for d, name in enumerate(names) if solution[name]]
                row.append(cut[0] if cut else REPL)
            rows.append(tuple(row))
        found.add(tuple(rows))
    none = (REPL,) * len(graph.tensors)
    choices = [none, *grid_rows(graph)]
    loops = [
        [row for row in loop_rows(graph, axis) if accumulates_early(graph, axis, row)]
        for axis in graph.loops
    ]
    expected = {
        (x, y, *loop)
        for x, y in product(choices, repeat=2)
        if all(a != b or a == REPL for a, b in zip(x, y, strict=True))
        for loop in product(*loops)
    }
    assert found == expected
    # One choice of rows for each class of assignments under renaming of grid axes.
    symmetric = {min((*p, *rows[2:]) for p in permutations(rows[:2])) for rows in found}
    assert len(list(assignments(sgraph))) == len(symmetric)


@pytest.mark.parametrize("kind", Constraint.KINDS)
def test_solutions_are_those_that_hold(kind: str):
    names = ("a", "b", "c")
    constraint = Constraint(kind, names)
    expected = [
        values
        for bits in product((False, True), repeat=3)
        if constraint.holds(values := dict(zip(names, bits, strict=True)))
    ]
    assert list(solutions(names, [constraint])) == expected
