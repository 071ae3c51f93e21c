"""Tensors of bf16: products, elementwise operators and attention, of aligned and ragged sizes."""

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f32

from prism.codegen.assembler import assemble
from prism.runtime.dtypes import ELEMENT_TYPES

BF16 = ELEMENT_TYPES["bf16"]


def brain(rng, *shape, scale=1.0):
    """Random bf16 values, stored as their bits, and as f64."""
    bits = BF16.encode(rng.standard_normal(shape) * scale)
    return bits, BF16.decode(bits)


def check(lab, graph, sizes, params, inputs, expected, decode=BF16.decode):
    kernel = lab.emit(graph, sizes, params)
    empty = np.full(expected.shape, 0x7FC0, np.uint16)
    if decode is not BF16.decode:
        empty = np.full(expected.shape, np.nan, np.float32)
    (found,) = lab.simulate(kernel, inputs, [empty])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(decode(found) / scale, expected / scale, rtol=0, atol=6e-3)
    return kernel


@pytest.mark.parametrize("sizes", [{"n": 8, "k": 128, "m": 64}, {"n": 5, "k": 67, "m": 33}])
@pytest.mark.parametrize("swap", [0, 1])
@pytest.mark.parametrize("stages", [1, 3])
def test_normalized_product(lab, rng, sizes, swap, stages):
    """Sums of squares and a product of one input; odd rows allow accesses of one element only."""
    x, x64 = brain(rng, sizes["n"], sizes["k"])
    w, w64 = brain(rng, sizes["k"], sizes["m"])

    def body(b):
        tile = b.input(0, {}, {"i": 1})
        product = b.accum(b.op("matmul", tile, b.input(1, {"x": 1}, {"i": 0})))
        total = b.accum(b.op("sum", b.op("square", tile), dim=1))
        return b.output(b.op("div", product, b.op("sqrt", total)), {"x": 1})

    tensors = [lab.tensor("n", "k", element=bf16), lab.tensor("k", "m", element=bf16)]
    result = lab.tensor("n", "m", element=bf16)
    graph = lab.graph(tensors, result, body, ("x",), ("i",))
    params = {"tile.x": 32, "grid.x": -(-sizes["m"] // 32), "tile.i": 32}
    params |= {"loop.i": -(-sizes["k"] // 32), "warps": 4, "swap": swap, "stages": stages}
    expected = x64 @ w64 / np.sqrt(np.square(x64).sum(1, keepdims=True))
    kernel = check(lab, graph, sizes, params, [x, w], expected)
    assert ".f32.bf16.bf16.f32" in kernel.ptx
    assert "f16.f16" not in kernel.ptx.replace("bf16.bf16", "")
    assert assemble(kernel.ptx, "sm_80", kernel.name).spill_bytes == 0


@pytest.mark.parametrize("columns", [24, 25])
def test_elementwise_keeps_the_range(lab, columns):
    """Beyond the range of f16, of either sign, and to an output of f32."""
    values = np.linspace(-1e30, 1e30, 3 * columns).reshape(3, columns)
    x = BF16.encode(values)
    t = lab.tensor("n", "d", element=bf16)

    def body(b):
        return b.output(b.op("scale", b.input(0, {}, {}), constant=2), {})

    graph = lab.graph([t], lab.tensor("n", "d", element=f32), body)
    expected = 2 * BF16.decode(x)
    sizes = {"n": 3, "d": columns}
    check(lab, graph, sizes, {"warps": 1}, [x], expected, lambda found: found.astype(np.float64))


@pytest.mark.parametrize("swap", [0, 1])
def test_attention(lab, rng, swap):
    """Scores become the operand of the next product, in registers or in shared memory."""
    sizes = {"b": 2, "g": 5, "h": 100, "d": 32}
    q, q64 = brain(rng, 2, 5, 32, scale=0.2)
    kt, kt64 = brain(rng, 2, 32, 100)
    v, v64 = brain(rng, 2, 100, 32)

    def body(b):
        scores = b.op("matmul", b.input(0, {"x": 0}, {}), b.input(1, {"x": 0}, {"i": 2}))
        e = b.op("exp", scores)
        product = b.accum(b.op("matmul", e, b.input(2, {"x": 0}, {"i": 1})))
        return b.output(b.op("div", product, b.accum(b.op("sum", e, dim=2))), {"x": 0})

    shapes = (("b", "g", "d"), ("b", "d", "h"), ("b", "h", "d"))
    tensors = [lab.tensor(*shape, element=bf16) for shape in shapes]
    graph = lab.graph(tensors, tensors[0], body, ("x",), ("i",))
    params = {"tile.x": 1, "grid.x": 2, "tile.i": 32, "loop.i": 4}
    params |= {"warps": 2, "swap": swap, "stages": 2}
    e = np.exp(q64 @ kt64)
    expected = e / e.sum(-1, keepdims=True) @ v64
    check(lab, graph, sizes, params, [q, kt, v], expected)
