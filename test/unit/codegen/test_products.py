"""Single thread ops against numpy: products for every layout, copies of ragged windows."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f16, f32
from xdsl.ir import Block, Region

from prism.codegen.emit import emit_kernel
from prism.codegen.lower_thread import lower_kernel
from prism.dialects.thread import (
    AllocOp,
    BarrierOp,
    CopyOp,
    ForOp,
    KernelOp,
    MapOp,
    MmaOp,
    ReturnOp,
    StoreOp,
    SumWarpsOp,
    YieldOp,
    ZeroOp,
)
from prism.dialects.thread_sums import scratch_type
from prism.dialects.thread_types import DimWindow, FragmentType, MmaLayout, RowsLayout, SharedType


def kernel_of(tensors, grid, warps, build):
    """The PTX of a thread kernel whose body `build(block, arguments)` appends."""
    block = Block(arg_types=tensors)
    build(block, block.args)
    block.add_op(ReturnOp())
    kernel = KernelOp("k0", grid, warps, "sm_80", Region(block))
    kernel.verify()
    code = lower_kernel(kernel, "7.0")
    code.verify()
    return emit_kernel(code)


def add(block, op):
    block.add_op(op)
    return op.results[0] if op.results else None


def whole(rows, columns):
    return DimWindow(rows), DimWindow(columns)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    ("warps", "tiles"),
    [((1, 1, 1), (1, 1)), ((2, 2, 1), (1, 3)), ((1, 2, 2), (2, 2)), ((1, 1, 4), (1, 1))],
)
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_mma_layouts(lab, rng, warps, tiles, swap, steps):
    """Integers that f16 and f32 hold exactly: the product must be exact in every layout."""
    layout = MmaLayout(warps, tiles, swap)
    m, n = layout.shape
    k = 16 * warps[2] * steps
    lhs, rhs = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    types = [TensorType(f16, (m, k)), TensorType(f16, (k, n)), TensorType(f32, (m, n))]

    def build(block, arguments):
        a = add(block, AllocOp(SharedType((m, k), f16, k + 8)))
        b = add(block, AllocOp(SharedType((k, n), f16, n + 8)))
        add(block, CopyOp(arguments[0], whole(m, k), a))
        add(block, CopyOp(arguments[1], whole(k, n), b))
        add(block, BarrierOp())
        partial = FragmentType((m, n), layout, partial=warps[2] > 1)
        result = add(block, MmaOp(a, b, add(block, ZeroOp(partial))))
        if partial.owed:
            result = add(block, SumWarpsOp(result, add(block, AllocOp(scratch_type(partial)))))
        add(block, StoreOp(result, arguments[2], whole(m, n)))

    kernel = kernel_of(types, [1, 1, 1], layout.threads // 32, build)
    (found,) = lab.simulate(kernel, [lhs, rhs], [np.full((m, n), np.nan, np.float32)])
    np.testing.assert_array_equal(found, lhs.astype(np.float32) @ rhs.astype(np.float32))


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 70),
    cuts=st.tuples(*[st.sampled_from([1, 3, 4, 8, 16, 24, 50])] * 3),
    warps=st.sampled_from([1, 2]),
    element=st.sampled_from([f16, f32]),
)
@example(rows=2, columns=40, cuts=(1, 4, 8), warps=1, element=f16)
def test_copies_cover_the_tensor(lab, rows, columns, cuts, warps, element):
    """
    Blocks along x and y and a loop inside x cut a tensor by ceil: every element is copied and
    stored by the part that holds it, whatever divides what.
    """
    tile_y, tile_x, tile_i = cuts
    dtype = np.float16 if element == f16 else np.float32
    tensor = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
    grid = [-(-columns // tile_x), -(-rows // tile_y), 1]
    window = (
        DimWindow(rows, (("y", tile_y),)),
        DimWindow(columns, (("x", tile_x), ("i", tile_i))),
    )
    # a tile larger than the part: the rest is zeros and is never stored
    sizes = (tile_y + 1, tile_i + 8)
    type = TensorType(element, (rows, columns))

    def build(block, arguments):
        tile = add(block, AllocOp(SharedType(sizes, element, sizes[1] + 8)))
        body = Block()
        add(body, CopyOp(arguments[0], window, tile))
        add(body, BarrierOp())
        region = Region(Block(arg_types=[f32]))
        region.block.add_op(YieldOp(region.block.args[0]))
        layout = RowsLayout(warps * 32, 8, 1)
        copied = add(body, MapOp([tile], FragmentType(sizes, layout), region))
        add(body, StoreOp(copied, arguments[1], window))
        add(body, BarrierOp())
        body.add_op(YieldOp())
        add(block, ForOp("i", -(-tile_x // tile_i), (), Region(body)))

    kernel = kernel_of([type, type], grid, warps, build)
    (found,) = lab.simulate(kernel, [tensor], [np.full_like(tensor, np.nan)])
    np.testing.assert_array_equal(found, tensor)


def test_copies_are_as_wide_as_the_rows_allow(lab):
    """16 bytes where rows are multiples of 8 f16, 4 bytes at 130, 2 bytes at 131."""
    for columns, access in ((1000, "v4.b32"), (1004, "v2.b32"), (130, "b32"), (131, "b16")):
        type = TensorType(f16, (8, columns))

        def build(block, arguments, columns=columns):
            tile = add(block, AllocOp(SharedType((8, 1008), f16, 1016)))
            add(block, CopyOp(arguments[0], whole(8, columns), tile))

        ptx = kernel_of([type], [1, 1, 1], 4, build).ptx
        assert {
            line.split()[1 if "@" in line else 0]
            for line in ptx.splitlines()
            if "ld.global" in line
        } == {f"ld.global.{access}"}
