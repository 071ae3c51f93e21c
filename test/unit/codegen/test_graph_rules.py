"""One hand-written graph per lowering rule, run in the simulator against float64."""

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f32

from prism.codegen.errors import CannotLower
from prism.codegen.lower_graph import lower_graph
from prism.dialects.thread import ForOp


def half(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float16)


def wide(*arrays):
    return [array.astype(np.float64) for array in arrays]


UNARY = {
    "neg": lambda x: -x,
    "exp": np.exp,
    "square": np.square,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    # of positive numbers
    "log": lambda x: np.log(np.abs(x) + 1),
    "sqrt": lambda x: np.sqrt(np.abs(x) + 1),
    "rsqrt": lambda x: 1 / np.sqrt(np.abs(x) + 1),
    "reciprocal": lambda x: 1 / (np.abs(x) + 1),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(lab, rng, name):
    """Elementwise, no product: rows spread over threads."""
    x = half(rng, 5, 12, scale=2)
    positive = name in ("log", "sqrt", "rsqrt", "reciprocal")

    def body(b):
        tile = b.input(0, {}, {})
        if positive:
            square = b.op("square", tile)
            tile = b.op("shift", b.op("sqrt", square), constant=1)
        return b.output(b.op(name, tile), {})

    t = lab.tensor("n", "d")
    graph = lab.graph([t], t, body)
    (x64,) = wide(x)
    lab.run(graph, {"n": 5, "d": 12}, {"warps": 1}, [x], UNARY[name](x64), 1e-3)


@pytest.mark.parametrize("name", ["sigmoid", "silu", "tanh", "relu", "exp", "gelu", "gelu_tanh"])
def test_unary_limits(lab, name):
    """No NaN where exp overflows: the functions reach their limits."""
    x = np.array([[-6e4, -100, -20, 0, 8, 10.5]], np.float16)
    t = lab.tensor("n", "d")
    graph = lab.graph([t], t, lambda b: b.output(b.op(name, b.input(0, {}, {})), {}))
    kernel = lab.emit(graph, {"n": 1, "d": 6}, {"warps": 1})
    (found,) = lab.simulate(kernel, [x], [np.full_like(x, np.nan)])
    with np.errstate(over="ignore"):
        expected = UNARY[name](x.astype(np.float64))
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2e-3, atol=1e-6)


SCALAR = {
    ("pow", 3): lambda x: x**3,
    ("pow", -2): lambda x: x**-2.0,
    ("at_least", 1): lambda x: np.maximum(x, 1),
    ("at_most", 1): lambda x: np.minimum(x, 1),
}


@pytest.mark.parametrize(("name", "constant"), SCALAR)
def test_scalar(lab, name, constant):
    x = np.array([[-3, -1, -0.5, 0.5, 1, 2.5]], np.float16)
    t = lab.tensor("n", "d")

    def body(b):
        return b.output(b.op(name, b.input(0, {}, {}), constant=constant), {})

    expected = SCALAR[name, constant](x.astype(np.float64))
    lab.run(lab.graph([t], t, body), {"n": 1, "d": 6}, {"warps": 1}, [x], expected, 1e-3)


def test_fractional_power(lab):
    x = np.array([[0.25, 1, 4, 100]], np.float16)
    t = lab.tensor("n", "d")

    def body(b):
        return b.output(b.op("pow", b.input(0, {}, {}), constant=Fraction(3, 2)), {})

    expected = x.astype(np.float64) ** 1.5
    lab.run(lab.graph([t], t, body), {"n": 1, "d": 4}, {"warps": 1}, [x], expected, 1e-3)


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": lambda a, b: a / (np.square(b) + 1),
    "maximum": np.maximum,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shape", [("n", "d"), ("n", 1), (1, "d")])
def test_binary_broadcast(lab, rng, name, shape):
    """Columns and rows of size 1 broadcast."""
    sizes = {"n": 7, "d": 10}
    x = half(rng, 7, 10)
    y = half(rng, *(sizes.get(size, 1) for size in shape))
    t = lab.tensor("n", "d")

    def body(b):
        left, right = b.input(0, {}, {}), b.input(1, {}, {})
        if name == "div":
            right = b.op("shift", b.op("square", right), constant=1)
        return b.output(b.op(name, left, right), {})

    graph = lab.graph([t, lab.tensor(*shape)], t, body)
    lab.run(graph, sizes, {"warps": 2}, [x, y], BINARY[name](*wide(x, y)), 1e-3)


@pytest.mark.parametrize(("dim", "shape"), [(0, (1, "d")), (1, ("n", 1))])
@pytest.mark.parametrize("sizes", [{"n": 3, "d": 5}, {"n": 40, "d": 70}, {"n": 1, "d": 600}])
def test_sum_counts_no_padding(lab, rng, dim, shape, sizes):
    """exp of padding is 1: a sum that counted it would be off."""
    x = half(rng, sizes["n"], sizes["d"])

    def body(b):
        return b.output(b.op("sum", b.op("exp", b.input(0, {}, {})), dim=dim), {})

    graph = lab.graph([lab.tensor("n", "d")], lab.tensor(*shape, element=f32), body)
    expected = np.exp(wide(x)[0]).sum(dim, keepdims=True)
    lab.run(graph, sizes, {"warps": 4}, [x], expected, 1e-5)


@pytest.mark.parametrize("dim", [0, 1])
def test_sum_over_ragged_loop(lab, rng, dim):
    """The last part of the loop is short: what lies beyond does not count."""
    x = half(rng, 9, 37)
    cut = {"i": dim}
    shape = (1, "d") if dim == 0 else ("n", 1)

    def body(b):
        tile = b.op("exp", b.input(0, {}, cut))
        return b.output(b.accum(b.op("sum", tile, dim=dim)), {})

    graph = lab.graph([lab.tensor("n", "d")], lab.tensor(*shape, element=f32), body, (), ("i",))
    tile, count = (4, 3) if dim == 0 else (16, 3)
    params = {"loop.i": count, "tile.i": tile, "warps": 2}
    expected = np.exp(wide(x)[0]).sum(dim, keepdims=True)
    lab.run(graph, {"n": 9, "d": 37}, params, [x], expected, 1e-5)


@pytest.mark.parametrize("swap", [0, 1])
@pytest.mark.parametrize("warps", [1, 4])
def test_scaled_accumulator(lab, rng, swap, warps):
    """A product that is scaled before it is accumulated is not accumulated in place."""
    x, w = half(rng, 9, 40), half(rng, 40, 24)

    def body(b):
        left, right = b.input(0, {}, {"i": 1}), b.input(1, {}, {"i": 0})
        scaled = b.op("scale", b.op("matmul", left, right), constant="n")
        return b.output(b.accum(b.op("neg", scaled)), {})

    graph = lab.graph(
        [lab.tensor("n", "k"), lab.tensor("k", "m")], lab.tensor("n", "m"), body, (), ("i",)
    )
    x64, w64 = wide(x, w)
    params = {"loop.i": 3, "tile.i": 16, "warps": warps, "swap": swap}
    lab.run(graph, {"n": 9, "k": 40, "m": 24}, params, [x, w], -9 * (x64 @ w64))


def test_scaled_sum_accumulator(lab, rng):
    """A row sum that is scaled before it is accumulated."""
    x = half(rng, 6, 50)

    def body(b):
        total = b.op("sum", b.op("square", b.input(0, {}, {"i": 1})), dim=1)
        return b.output(b.accum(b.op("scale", total, constant=2)), {})

    result = lab.tensor("n", 1, element=f32)
    graph = lab.graph([lab.tensor("n", "d")], result, body, (), ("i",))
    params = {"loop.i": 4, "tile.i": 16, "warps": 1}
    expected = 2 * np.square(wide(x)[0]).sum(1, keepdims=True)
    lab.run(graph, {"n": 6, "d": 50}, params, [x], expected, 1e-5)


@pytest.mark.parametrize("swap", [0, 1])
@pytest.mark.parametrize("in_loop", [False, True])
def test_product_of_product(lab, rng, swap, in_loop):
    """The first product becomes an f16 operand of the second, rows and columns padded with zeros."""
    a, b_, c = half(rng, 5, 24), half(rng, 24, 20, scale=0.3), half(rng, 20, 11)
    fmap_b, fmap_c = ({"i": 1}, {"i": 0}) if in_loop else ({}, {})

    def body(b):
        left, middle = b.input(0, {}, {}), b.input(1, {}, fmap_b)
        inner = b.op("relu", b.op("matmul", left, middle))
        outer = b.op("matmul", inner, b.input(2, {}, fmap_c))
        return b.output(b.accum(outer) if in_loop else outer, {})

    tensors = [lab.tensor("n", "k"), lab.tensor("k", "m"), lab.tensor("m", "p")]
    loops = ("i",) if in_loop else ()
    graph = lab.graph(tensors, lab.tensor("n", "p"), body, (), loops)
    a64, b64, c64 = wide(a, b_, c)
    params = {"warps": 4, "swap": swap, "loop.i": 3, "tile.i": 8}
    sizes = {"n": 5, "k": 24, "m": 20, "p": 11}
    lab.run(graph, sizes, params, [a, b_, c], np.maximum(a64 @ b64, 0) @ c64)


@pytest.mark.parametrize("depth", [8, 40, 100])
@pytest.mark.parametrize("swap", [0, 1])
@pytest.mark.parametrize("warps", [1, 8])
def test_padded_depth(lab, rng, depth, swap, warps):
    """Both operands are computed, and exp of padding is 1: only zeros beyond the depth are right."""
    x, w = half(rng, 5, depth, scale=0.5), half(rng, depth, 12, scale=0.5)

    def body(b):
        left, right = b.op("exp", b.input(0, {}, {})), b.op("exp", b.input(1, {}, {}))
        return b.output(b.op("matmul", left, right), {})

    tensors = [lab.tensor("n", "k"), lab.tensor("k", "m")]
    graph = lab.graph(tensors, lab.tensor("n", "m"), body)
    x64, w64 = wide(x, w)
    sizes, params = {"n": 5, "k": depth, "m": 12}, {"warps": warps, "swap": swap}
    lab.run(graph, sizes, params, [x, w], np.exp(x64) @ np.exp(w64), 1e-3)


def test_softmax_row_of_a_product(lab, rng):
    """A sum over a product's columns goes through shared memory; padded columns do not count."""
    x, w = half(rng, 10, 16, scale=0.3), half(rng, 16, 21)

    def body(b):
        e = b.op("exp", b.op("matmul", b.input(0, {}, {}), b.input(1, {}, {})))
        return b.output(b.op("div", e, b.op("sum", e, dim=1)), {})

    tensors = [lab.tensor("n", "k"), lab.tensor("k", "m")]
    graph = lab.graph(tensors, lab.tensor("n", "m"), body)
    x64, w64 = wide(x, w)
    e = np.exp(x64 @ w64)
    sizes = {"n": 10, "k": 16, "m": 21}
    for warps in (1, 2, 8):
        lab.run(graph, sizes, {"warps": warps}, [x, w], e / e.sum(1, keepdims=True))


def test_bias_and_residual_of_f32(lab, rng):
    """Inputs of f32 meet a product elementwise; the output is f32 too."""
    x, w = half(rng, 13, 20), half(rng, 20, 18)
    bias = rng.standard_normal((1, 18)).astype(np.float32)
    mixed = lab.tensor(1, "m", element=f32)

    def body(b):
        product = b.op("matmul", b.input(0, {"y": 0}, {}), b.input(1, {"x": 1}, {}))
        return b.output(b.op("add", product, b.input(2, {"x": 1}, {})), {"x": 1, "y": 0})

    tensors = [lab.tensor("n", "k"), lab.tensor("k", "m"), mixed]
    graph = lab.graph(tensors, lab.tensor("n", "m", element=f32), body, ("x", "y"))
    x64, w64 = wide(x, w)
    params = {"warps": 2, "tile.x": 8, "grid.x": 3, "tile.y": 5, "grid.y": 3, "swap": 1}
    lab.run(graph, {"n": 13, "k": 20, "m": 18}, params, [x, w, bias], x64 @ w64 + bias, 1e-5)


def test_replicated_output_is_stored_once(lab, rng):
    """Of the blocks along an axis that cuts nothing of the output only the first stores."""
    x = half(rng, 4, 8)
    t = lab.tensor("n", "d")

    def body(b):
        return b.output(b.op("neg", b.input(0, {}, {})), {})

    graph = lab.graph([t], t, body, ("x",))
    kernel = lab.run(graph, {"n": 4, "d": 8}, {"warps": 1, "grid.x": 3}, [x], -wide(x)[0])
    assert "setp.eq.s32" in kernel.ptx


def test_input_that_is_the_output(lab, rng):
    """A graph without operators copies, of ragged sizes."""
    x = half(rng, 7, 29)
    t = lab.tensor("n", "d")
    graph = lab.graph([t], t, lambda b: b.output(b.input(0, {"x": 1}, {}), {"x": 1}), ("x",))
    kernel = lab.emit(graph, {"n": 7, "d": 29}, {"warps": 2, "grid.x": 4, "tile.x": 8})
    (found,) = lab.simulate(kernel, [x], [np.full_like(x, np.nan)])
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("swap", [0, 1])
def test_product_of_one_row_is_broadcast(lab, rng, swap):
    """A bias row's product is padded to as many rows as the other product has: it is broadcast."""
    x, bias, w = half(rng, 7, 16), half(rng, 1, 16), half(rng, 16, 24)

    def body(b):
        weight = b.input(2, {}, {})
        left = b.op("matmul", b.input(0, {}, {}), weight)
        return b.output(b.op("add", left, b.op("matmul", b.input(1, {}, {}), weight)), {})

    tensors = [lab.tensor("n", "k"), lab.tensor(1, "k"), lab.tensor("k", "m")]
    graph = lab.graph(tensors, lab.tensor("n", "m"), body)
    x64, bias64, w64 = wide(x, bias, w)
    sizes, params = {"n": 7, "k": 16, "m": 24}, {"warps": 1, "swap": swap}
    lab.run(graph, sizes, params, [x, bias, w], x64 @ w64 + bias64 @ w64)


@pytest.mark.parametrize("stages", [1, 2])
def test_operand_of_one_row_is_broadcast(lab, rng, stages):
    """A row that is an operand, padded to 8 rows, and added to many rows as well."""
    x, row, w = half(rng, 7, 32), half(rng, 1, 32), half(rng, 32, 24)

    def body(b):
        tile, weight = b.input(1, {}, {"i": 1}), b.input(2, {}, {"i": 0})
        left = b.op("matmul", b.op("add", b.input(0, {}, {"i": 1}), tile), weight)
        return b.output(b.op("add", b.accum(left), b.accum(b.op("matmul", tile, weight))), {})

    tensors = [lab.tensor("n", "k"), lab.tensor(1, "k"), lab.tensor("k", "m")]
    graph = lab.graph(tensors, lab.tensor("n", "m"), body, (), ("i",))
    x64, row64, w64 = wide(x, row, w)
    params = {"loop.i": 2, "tile.i": 16, "warps": 1, "swap": 1, "stages": stages}
    lab.run(graph, {"n": 7, "k": 32, "m": 24}, params, [x, row, w], (x64 + 2 * row64) @ w64)


@pytest.mark.parametrize("stages", [1, 2])
def test_operand_used_in_and_after_the_loop(lab, rng, stages):
    """What the loop computes in registers does not exist after it: the operand is made again."""
    x, v = half(rng, 6, 16, scale=0.3), half(rng, 16, 32, scale=0.3)
    w, a, c = half(rng, 32, 48, scale=0.3), half(rng, 32, 48, scale=0.3), half(rng, 48, 8)

    def body(b):
        e = b.op("exp", b.op("matmul", b.input(0, {}, {}), b.input(1, {}, {})))
        total = b.accum(b.op("sum", b.op("matmul", e, b.input(2, {}, {"i": 1})), dim=1))
        later = b.accum(b.op("matmul", b.input(3, {}, {"i": 1}), b.input(4, {}, {"i": 0})))
        return b.output(b.op("mul", b.op("matmul", e, later), total), {})

    shapes = (("n", "k"), ("k", "m"), ("m", "q"), ("m", "q"), ("q", "p"))
    tensors = [lab.tensor(*shape) for shape in shapes]
    graph = lab.graph(tensors, lab.tensor("n", "p", element=f32), body, (), ("i",))
    sizes = {"n": 6, "k": 16, "m": 32, "q": 48, "p": 8}
    params = {"loop.i": 3, "tile.i": 16, "warps": 2, "swap": 0, "stages": stages}
    x64, v64, w64, a64, c64 = wide(x, v, w, a, c)
    e = np.exp(x64 @ v64)
    expected = (e @ (a64 @ c64)) * (e @ w64).sum(1, keepdims=True)
    lab.run(graph, sizes, params, [x, v, w, a, c], expected)
    kernel = lower_graph(graph, "k0", sizes, params, "sm_80")
    exps = [op for op in kernel.body.walk() if op.name == "math.exp"]
    inside = [any(isinstance(p, ForOp) for p in parents(op)) for op in exps]
    assert inside == [True, False]


def parents(op):
    while op is not None:
        yield op
        op = op.parent_op()


def test_product_used_twice_in_the_loop(lab, rng):
    """A product with two uses is computed once per index and accumulated twice."""
    x, w = half(rng, 9, 40), half(rng, 40, 24)

    def body(b):
        product = b.op("matmul", b.input(0, {}, {"i": 1}), b.input(1, {}, {"i": 0}))
        twice = b.accum(b.op("add", product, product))
        return b.output(b.op("mul", b.accum(product), twice), {})

    tensors = [lab.tensor("n", "k"), lab.tensor("k", "m")]
    graph = lab.graph(tensors, lab.tensor("n", "m"), body, (), ("i",))
    x64, w64 = wide(x, w)
    params = {"loop.i": 3, "tile.i": 16, "warps": 8, "swap": 1}
    sizes = {"n": 9, "k": 40, "m": 24}
    kernel = lab.run(graph, sizes, params, [x, w], 2 * np.square(x64 @ w64))
    assert kernel.ptx.count("mma.sync") == 1


def test_loop_invariant_operand(lab, rng):
    """An operand that the loop does not cut is computed once, before it."""
    x, v, w = half(rng, 6, 16), half(rng, 16, 40, scale=0.3), half(rng, 40, 8)

    def body(b):
        left = b.op("silu", b.input(0, {}, {}))
        inner = b.op("square", b.op("matmul", left, b.input(1, {}, {"i": 1})))
        return b.output(b.accum(b.op("matmul", inner, b.input(2, {}, {"i": 0}))), {})

    tensors = [lab.tensor("n", "k"), lab.tensor("k", "m"), lab.tensor("m", "p")]
    graph = lab.graph(tensors, lab.tensor("n", "p"), body, (), ("i",))
    x64, v64, w64 = wide(x, v, w)
    expected = np.square((x64 / (1 + np.exp(-x64))) @ v64) @ w64
    params = {"loop.i": 3, "tile.i": 16, "warps": 2, "swap": 0}
    kernel = lab.run(graph, {"n": 6, "k": 16, "m": 40, "p": 8}, params, [x, v, w], expected)
    before_loop = kernel.ptx[: kernel.ptx.index("for_1:")]
    assert "ex2.approx.f32" in before_loop
    assert "ex2.approx.f32" not in kernel.ptx[len(before_loop) :]


def test_two_outputs(lab, rng):
    """Every result of a graph has its own tensor."""
    x = half(rng, 5, 9)
    t = lab.tensor("n", "d")
    total = lab.tensor("n", 1, element=f32)
    graph = lab.graph_of_results(
        [t],
        [t, total],
        lambda b: (
            lambda tile: [
                b.output(b.op("neg", tile), {}, t),
                b.output(b.op("sum", tile, dim=1), {}, total),
            ]
        )(b.input(0, {}, {})),
    )
    kernel = lab.emit(graph, {"n": 5, "d": 9}, {"warps": 1})
    outputs = [np.full((5, 9), np.nan, np.float16), np.full((5, 1), np.nan, np.float32)]
    negated, summed = lab.simulate(kernel, [x], outputs)
    np.testing.assert_array_equal(negated, -x)
    np.testing.assert_allclose(summed, wide(x)[0].sum(1, keepdims=True), rtol=1e-5)


def test_shared_input_is_copied_once(lab, rng):
    """Two products and a sum of one input read it from global memory once."""
    x, v, w = half(rng, 8, 32), half(rng, 32, 16), half(rng, 32, 16)

    def body(b):
        tile = b.input(0, {}, {})
        left = b.op("matmul", tile, b.input(1, {}, {}))
        right = b.op("matmul", tile, b.input(2, {}, {}))
        total = b.op("sum", b.op("square", tile), dim=1)
        return b.output(b.op("div", b.op("mul", left, right), total), {})

    weight = lab.tensor("d", "m")
    graph = lab.graph([lab.tensor("n", "d"), weight, weight], lab.tensor("n", "m"), body)
    x64, v64, w64 = wide(x, v, w)
    expected = (x64 @ v64) * (x64 @ w64) / np.square(x64).sum(1, keepdims=True)
    sizes, params = {"n": 8, "d": 32, "m": 16}, {"warps": 1, "swap": 1}
    kernel = lab.run(graph, sizes, params, [x, v, w], expected)
    # 3 tiles of 8x32, 32x16 and 32x16 f16, 16 bytes for each of 32 threads
    assert kernel.ptx.count("ld.global") == 1 + 2 + 2


class TestRefused:
    """What cannot be lowered is refused with a message, never miscompiled."""

    def graph(self, lab, element=None):
        t = lab.tensor("n", "d") if element is None else lab.tensor("n", "d", element=element)
        w = lab.tensor("d", "m") if element is None else lab.tensor("d", "m", element=element)

        def body(b):
            product = b.op("matmul", b.input(0, {}, {"i": 1}), b.input(1, {"x": 1}, {"i": 0}))
            return b.output(b.accum(product), {"x": 1})

        return lab.graph([t, w], lab.tensor("n", "m"), body, ("x",), ("i",))

    PARAMS: ClassVar = {"grid.x": 2, "tile.x": 16, "loop.i": 2, "tile.i": 16, "warps": 2}
    SIZES: ClassVar = {"n": 8, "d": 32, "m": 32}

    @pytest.mark.parametrize(
        ("sizes", "params", "message"),
        [
            ({}, {"grid.x": 3}, "axis x: 3 parts of 16 do not make up 32 elements"),
            ({}, {"tile.i": 8}, "axis i: 2 parts of 8 do not make up 32 elements"),
            ({}, {"warps": 3}, "warps: expected a power of two, found 3"),
            ({}, {"tile.x": 0}, "parameter tile.x: expected at least 1, found 0"),
            ({"n": 4000}, {}, "shared memory of a block: k0 takes"),
            ({"n": 512}, {"warps": 1}, "accumulators: k0 takes"),
            ({"n": 2**26}, {}, "tensor of 4294967296 bytes: expected at most 2147483647"),
            ({}, {"warps": 64}, "threads of a block: k0 takes 2048 threads, sm_80 has 1024"),
        ],
    )
    def test_parameters(self, lab, sizes, params, message):
        with pytest.raises(CannotLower, match=message):
            lab.emit(self.graph(lab), self.SIZES | sizes, self.PARAMS | params)

    def test_missing(self, lab):
        with pytest.raises(CannotLower, match="parameter warps: expected a number, found none"):
            lab.emit(
                self.graph(lab), self.SIZES, {"grid.x": 2, "tile.x": 16, "loop.i": 2, "tile.i": 16}
            )
        with pytest.raises(CannotLower, match="size m has no value"):
            lab.emit(self.graph(lab), {"n": 8, "d": 32}, self.PARAMS)

    def test_types(self, lab):
        with pytest.raises(CannotLower, match="operand of a product: expected f16, found f32"):
            lab.emit(self.graph(lab, f32), self.SIZES, self.PARAMS)

    def test_mixed_operands(self, lab):
        """mma.sync multiplies operands of one type."""
        tensors = [lab.tensor("n", "d"), lab.tensor("d", "m", element=bf16)]

        def body(b):
            return b.output(b.op("matmul", b.input(0, {}, {}), b.input(1, {}, {})), {})

        graph = lab.graph(tensors, lab.tensor("n", "m"), body)
        with pytest.raises(CannotLower, match="operand of a product: expected bf16, found f16"):
            lab.emit(graph, self.SIZES, {"warps": 1})

    def test_rank(self, lab):
        t = lab.tensor("a", "b", "n", "d")
        graph = lab.graph([t], t, lambda b: b.output(b.op("exp", b.input(0, {}, {})), {}))
        with pytest.raises(CannotLower, match="tensor of rank 4: expected rank 2 or 3"):
            lab.emit(graph, {"a": 2, "b": 2, "n": 2, "d": 2}, {"warps": 1})

    def test_sum_over_the_batch(self, lab):
        t = lab.tensor("b", "n", "d")
        graph = lab.graph(
            [t],
            lab.tensor(1, "n", "d"),
            lambda b: b.output(b.op("sum", b.input(0, {}, {}), dim=0), {}),
        )
        with pytest.raises(CannotLower, match="a sum over the dim of a batch is not lowered"):
            lab.emit(graph, {"b": 2, "n": 2, "d": 2}, {"warps": 1})
