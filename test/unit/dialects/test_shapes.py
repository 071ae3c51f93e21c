"""Shape rules against numpy: what the rule accepts numpy computes, with that shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.utils.exceptions import VerifyException

from prism.dialects.operators import OPERATORS
from prism.dialects.shapes import result_shape
from prism.dialects.sym_expr import SymExpr

SIZES = {"a": 2, "b": 3, "c": 5}
shapes = st.lists(
    st.sampled_from([*map(SymExpr.symbol, SIZES), SymExpr.constant(1)]), min_size=1, max_size=4
).map(tuple)
Shape = tuple[SymExpr, ...]


def zeros(shape: Shape) -> np.ndarray:
    return np.zeros([int(dim.evaluate(SIZES)) for dim in shape])


@settings(max_examples=150, deadline=None)
@given(shapes, shapes)
def test_binary_broadcasts_as_numpy(left: Shape, right: Shape) -> None:
    try:
        shape = result_shape(OPERATORS["add"], [left, right])
    except VerifyException:
        if len(left) == len(right):
            with pytest.raises(ValueError, match="broadcast"):
                _ = zeros(left) + zeros(right)
        return
    assert zeros(shape).shape == (zeros(left) + zeros(right)).shape


@settings(max_examples=150, deadline=None)
@given(shapes, shapes)
def test_matmul_contracts_as_numpy(left: Shape, right: Shape) -> None:
    try:
        shape = result_shape(OPERATORS["matmul"], [left, right])
    except VerifyException:
        same_batch = len(left) == len(right) >= 2 and left[:-2] == right[:-2]
        if same_batch:
            with pytest.raises(ValueError, match="matmul"):
                _ = zeros(left) @ zeros(right)
        return
    assert zeros(shape).shape == (zeros(left) @ zeros(right)).shape


@settings(max_examples=50, deadline=None)
@given(shapes, st.integers(-1, 4))
def test_sum_keeps_the_dim(shape: Shape, dim: int) -> None:
    if not 0 <= dim < len(shape):
        with pytest.raises(VerifyException, match="dim: expected one of"):
            result_shape(OPERATORS["sum"], [shape], dim)
        return
    result = result_shape(OPERATORS["sum"], [shape], dim)
    assert zeros(result).shape == zeros(shape).sum(axis=dim, keepdims=True).shape
