"""Layouts and pitches in exact numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import f16, f32

from prism.codegen.graph_point import GraphPoint, shared_type
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


@given(columns=st.integers(1, 5000), element=st.sampled_from([f16, f32]))
def test_rows_lie_in_different_banks(columns, element):
    """8 rows of 16 bytes, as ldmatrix reads them, lie in 8 different groups of 4 banks."""
    tile = shared_type((8, columns), element)
    size = tile.element_bytes
    assert (tile.pitch.data - columns) * size < 32
    if columns == 1:
        assert tile.pitch.data == 1
        return
    units = tile.row_units
    for unit in range(columns * size // 16):
        groups = {
            (row * units + (unit ^ phase(row, units) if tile.swizzled else unit)) % 8
            for row in range(8)
        }
        assert len(groups) == 8


@pytest.mark.parametrize("columns", [16, 32])
def test_short_rows_are_dense(columns):
    """8 threads that copy 16 bytes each fill all banks, whatever rows they are of."""
    tile = shared_type((64, columns), f16)
    assert tile.swizzled
    assert tile.pitch.data == columns


def phase(row, units):
    """What `swizzle_phase` emits."""
    return row // (8 // units) % units
