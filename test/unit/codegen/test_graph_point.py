"""Layouts and pitches in exact numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.codegen.graph_point import GraphPoint, shared_pitch
from prism.dialects.thread_types import MmaLayout, RowsLayout


def point(lab, **params):
    t = lab.tensor("n", "d")
    graph = lab.graph([t], t, lambda b: b.output(b.op("exp", b.input(0, {}, {})), {}))
    return GraphPoint(graph, {"n": 1, "d": 1}, params)


@pytest.mark.parametrize(
    ("warps", "swap", "sizes", "layout"),
    [
        # 4 tiles of 16 columns for 4 warps; 8 rows fill one 8-side
        (4, 1, (8, 64, 64), MmaLayout((4, 1, 1), (1, 1), True)),
        # more warps than tiles split the contraction
        (8, 1, (8, 64, 64), MmaLayout((4, 1, 2), (1, 1), True)),
        (8, 1, (8, 16, 512), MmaLayout((1, 1, 8), (1, 1), True)),
        # squares of products load the fewest operands
        (4, 0, (64, 64, 64), MmaLayout((2, 2, 1), (2, 4), False)),
        (1, 0, (20, 12, 16), MmaLayout((1, 1, 1), (2, 2), False)),
    ],
)
def test_mma_layout(lab, warps, swap, sizes, layout):
    assert point(lab, warps=warps, swap=swap).mma_layout(*sizes) == layout


@given(
    warps=st.sampled_from([1, 2, 4, 8, 16]),
    swap=st.integers(0, 1),
    sizes=st.tuples(*[st.integers(1, 200)] * 3),
)
def test_mma_layout_covers(lab, warps, swap, sizes):
    layout = point(lab, warps=warps, swap=swap).mma_layout(*sizes)
    assert layout.shape[0] >= sizes[0]
    assert layout.shape[1] >= sizes[1]
    assert layout.threads == warps * 32


@pytest.mark.parametrize(
    ("warps", "shape", "layout"),
    [
        (4, (8, 64), RowsLayout(128, 16, 4)),
        (1, (64, 64), RowsLayout(32, 8, 8)),
        (4, (7, 64), RowsLayout(128, 16, 4)),
        (8, (8, 512), RowsLayout(256, 32, 8)),
        (1, (8, 1), RowsLayout(32, 1, 1)),
        (1, (4, 37), RowsLayout(32, 32, 1)),
    ],
)
def test_rows_layout(lab, warps, shape, layout):
    assert point(lab, warps=warps).rows_layout(*shape) == layout


@given(columns=st.integers(2, 5000), element_bytes=st.sampled_from([2, 4]))
def test_pitch_spreads_rows_over_banks(columns, element_bytes):
    """8 rows of 16 bytes, as ldmatrix reads them, lie in 8 different groups of 4 banks."""
    pitch = shared_pitch(columns, element_bytes)
    assert pitch >= columns
    assert (pitch - columns) * element_bytes < 32
    groups = {row * pitch * element_bytes // 16 % 8 for row in range(8)}
    assert len(groups) == 8


def test_one_column_is_dense():
    assert shared_pitch(1, 4) == 1
