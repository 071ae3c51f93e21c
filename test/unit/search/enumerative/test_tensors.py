"""Symbolic dims: what each operator matches, and what an accum needs."""

from __future__ import annotations

import pytest

from prism.dialects.operators import Attributes
from prism.dialects.sym_expr import SymExpr
from prism.search.enumerative.cuts import CUT, NEVER, Cuts
from prism.search.enumerative.tensors import Tile, accumulate, apply, supported

N, D, M, ONE = SymExpr.symbol("n"), SymExpr.symbol("d"), SymExpr.symbol("m"), SymExpr.constant(1)
SUMMED = frozenset[int]()


def tile(cuts: Cuts, *shape: SymExpr) -> Tile:
    """An input with one variable per dim on a grid axis and on a loop axis."""
    dims = tuple(
        (NEVER, NEVER) if size == ONE else (cuts.variable(), cuts.variable()) for size in shape
    )
    return Tile(shape, dims, SUMMED, frozenset(dim[-1] for dim in dims))


def test_a_product_matches_the_contracted_dims_and_owes_their_sum():
    cuts = Cuts()
    x, w = tile(cuts, N, D), tile(cuts, D, M)
    result = apply(cuts, "matmul", None, [x, w], (N, M), loop=True)
    assert result is not None
    assert result.dims == (x.dims[0], w.dims[1])
    assert result.summed == {x.dims[1][1]}
    assert [cuts.find(a) for a in x.dims[1]] == [cuts.find(b) for b in w.dims[0]]
    # One axis does not cut both dims of the result.
    assert cuts.equate(x.dims[0][0], CUT)
    assert cuts.find(w.dims[1][0]) == NEVER


def test_other_whole_sizes_do_not_match():
    cuts = Cuts()
    assert apply(cuts, "matmul", None, [tile(cuts, N, D), tile(cuts, N, M)], (N, M), True) is None
    assert apply(cuts, "add", None, [tile(cuts, N, D), tile(cuts, N, M)], (N, D), True) is None


def test_dims_that_one_operand_is_cut_in_and_the_other_is_not_do_not_match():
    cuts = Cuts()
    x, y = tile(cuts, N, D), tile(cuts, N, D)
    assert cuts.equate(x.dims[0][0], CUT)
    assert cuts.equate(y.dims[0][0], NEVER)
    assert apply(cuts, "add", None, [x, y], (N, D), loop=True) is None


def test_a_column_broadcasts_whatever_cuts_the_other_operand():
    cuts = Cuts()
    x, column = tile(cuts, N, D), tile(cuts, N, ONE)
    result = apply(cuts, "div", None, [x, column], (N, D), loop=True)
    assert result is not None
    assert result.dims[1] == x.dims[1]
    assert cuts.find(x.dims[1][0]) == x.dims[1][0]
    assert cuts.find(x.dims[0][0]) == cuts.find(column.dims[0][0])


def test_a_sum_leaves_a_dim_that_nothing_cuts():
    cuts = Cuts()
    x = tile(cuts, N, D)
    result = apply(cuts, "sum", 1, [x], (N, ONE), loop=True)
    assert result is not None
    assert result.dims == (x.dims[0], (NEVER, NEVER))
    assert result.summed == {x.dims[1][1]}


def test_an_accum_sums_what_the_loop_cut_and_nothing_else():
    cuts = Cuts()
    x = tile(cuts, N, D)
    mark = cuts.mark()
    assert accumulate(cuts, x) is None
    cuts.undo(mark)
    total = apply(cuts, "sum", 1, [x], (N, ONE), loop=True)
    assert total is not None
    whole = accumulate(cuts, total)
    assert whole is not None
    assert whole.after
    assert cuts.find(x.dims[1][1]) == CUT
    assert cuts.find(x.dims[0][1]) == NEVER


def test_a_sum_that_the_loop_owes_passes_linear_functions_only():
    for name, passes in (("neg", True), ("exp", False)):
        cuts = Cuts()
        total = apply(cuts, "sum", 1, [tile(cuts, N, D)], (N, ONE), loop=True)
        assert total is not None
        result = apply(cuts, name, None, [total], (N, ONE), loop=True)
        assert result is not None
        assert (accumulate(cuts, result) is not None) is passes


def test_the_loop_does_not_cut_a_dim_of_a_maximum():
    cuts = Cuts()
    x = tile(cuts, N, D)
    result = apply(cuts, "max", 1, [x], (N, ONE), loop=True)
    assert result is not None
    assert result.dims == (x.dims[0], (NEVER, NEVER))
    assert result.summed == SUMMED
    assert cuts.find(x.dims[1][1]) == NEVER
    assert cuts.find(x.dims[1][0]) == x.dims[1][0]
    assert accumulate(cuts, result) is None


def test_a_transpose_permutes_what_cuts_the_dims():
    cuts = Cuts()
    x = tile(cuts, N, D)
    result = apply(cuts, "transpose", Attributes(permutation=(1, 0)), [x], (D, N), loop=True)
    assert result is not None
    assert result.dims == (x.dims[1], x.dims[0])


def test_no_axis_cuts_a_dim_that_is_sliced():
    cuts = Cuts()
    x = tile(cuts, N, D)
    half = Attributes(dim=1, bounds=(ONE, D))
    result = apply(cuts, "slice", half, [x], (N, D - ONE), loop=True)
    assert result is not None
    assert result.dims == (x.dims[0], (NEVER, NEVER))
    assert [cuts.find(literal) for literal in x.dims[1]] == [NEVER, NEVER]


def test_what_meets_an_accumulated_value_is_loop_invariant():
    cuts = Cuts()
    x, y = tile(cuts, N, D), tile(cuts, N, ONE)
    total = apply(cuts, "sum", 1, [x], (N, ONE), loop=True)
    assert total is not None
    whole = accumulate(cuts, total)
    assert whole is not None
    result = apply(cuts, "add", None, [whole, y], (N, ONE), loop=True)
    assert result is not None
    assert result.after
    assert cuts.find(y.dims[0][1]) == NEVER
    # The same tensor before the loop has ended cannot meet it, for the loop cuts it.
    assert apply(cuts, "add", None, [whole, total], (N, ONE), loop=True) is None


@pytest.mark.parametrize(("name", "known"), [("matmul", True), ("mean", True), ("rms_norm", False)])
def test_composites_are_not_supported(name, known):
    assert supported(name) is known
