"""Graphs on batches of matrices: one matrix of a batch at a time, attention among them."""

import numpy as np
import pytest

from prism.codegen.errors import CannotLower


def attention_graph(lab, *, split_values=False, loops=("i",)):
    """exp(Q Kt) V over its row sums, the keys in a loop; x cuts the batch, y the values' columns."""
    maps = {"x": 0, "y": 2} if split_values else {"x": 0}
    keys, values = ({"i": 2}, {"i": 1}) if loops else ({}, {})

    def body(b):
        scores = b.op("matmul", b.input(0, {"x": 0}, {}), b.input(1, {"x": 0}, keys))
        e = b.op("exp", scores)
        total = b.op("sum", e, dim=2)
        product = b.op("matmul", e, b.input(2, maps, values))
        if loops:
            total, product = b.accum(total), b.accum(product)
        return b.output(b.op("div", product, total), maps)

    tensors = [lab.tensor("b", "g", "d"), lab.tensor("b", "d", "h"), lab.tensor("b", "h", "d")]
    axes = ("x", "y") if split_values else ("x",)
    return lab.graph(tensors, lab.tensor("b", "g", "d"), body, axes, loops)


def attention_case(rng, sizes):
    b, g, h, d = (sizes[name] for name in "bghd")
    q = (rng.standard_normal((b, g, d)) / d**0.5).astype(np.float16)
    kt = rng.standard_normal((b, d, h)).astype(np.float16)
    v = rng.standard_normal((b, h, d)).astype(np.float16)
    e = np.exp(q.astype(np.float64) @ kt.astype(np.float64))
    return [q, kt, v], e / e.sum(-1, keepdims=True) @ v.astype(np.float64)


@pytest.mark.parametrize("swap", [0, 1])
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize(
    ("sizes", "tiles", "warps"),
    [
        ({"b": 2, "g": 8, "h": 256, "d": 64}, {"x": 1, "y": 32, "i": 64}, 4),
        # more rows than one mma has
        ({"b": 2, "g": 20, "h": 128, "d": 32}, {"x": 1, "y": 32, "i": 64}, 4),
        # the last part of the keys is short: exp of its padding is 1 and must not count
        ({"b": 3, "g": 5, "h": 100, "d": 40}, {"x": 1, "y": 24, "i": 32}, 2),
        # two matrices of the batch per block, the last block with one
        ({"b": 5, "g": 5, "h": 90, "d": 40}, {"x": 2, "y": 40, "i": 48}, 2),
    ],
)
def test_attention(lab, rng, sizes, tiles, warps, stages, swap):
    inputs, expected = attention_case(rng, sizes)
    params = {"warps": warps, "swap": swap, "stages": stages}
    params |= {f"tile.{axis}": tile for axis, tile in tiles.items()}
    for axis, size in (("x", "b"), ("y", "d")):
        params[f"grid.{axis}"] = -(-sizes[size] // tiles[axis])
    params["loop.i"] = -(-sizes["h"] // tiles["i"])
    split = params["grid.y"] > 1
    lab.run(attention_graph(lab, split_values=split), sizes, params, inputs, expected)


def test_attention_without_a_loop(lab, rng):
    sizes = {"b": 2, "g": 6, "h": 50, "d": 24}
    inputs, expected = attention_case(rng, sizes)
    params = {"warps": 2, "grid.x": 2, "tile.x": 1}
    lab.run(attention_graph(lab, loops=()), sizes, params, inputs, expected)


def test_batch_broadcast(lab, rng):
    """One matrix for the whole batch, which one block computes matrix by matrix."""
    x = rng.standard_normal((3, 5, 24)).astype(np.float16)
    bias = rng.standard_normal((1, 1, 24)).astype(np.float16)
    t = lab.tensor("b", "n", "d")

    def body(b):
        return b.output(b.op("add", b.input(0, {}, {}), b.input(1, {}, {})), {})

    graph = lab.graph([t, lab.tensor(1, 1, "d")], t, body)
    sizes = {"b": 3, "n": 5, "d": 24}
    expected = x.astype(np.float64) + bias.astype(np.float64)
    lab.run(graph, sizes, {"warps": 2}, [x, bias], expected, 1e-3)


def test_batches_differ(lab):
    """A block cannot loop over batches of two sizes."""
    t, u = lab.tensor("b", "n", "d"), lab.tensor("c", "n", "d")
    graph = lab.graph_of_results(
        [t, u],
        [t, u],
        lambda b: [
            b.output(
                b.op(
                    "neg",
                    b.input(0, {}, {}),
                ),
                {},
            ),
            b.output(b.op("neg", b.input(1, {}, {})), {}, u),
        ],
    )
    with pytest.raises(CannotLower, match="batches of one block: expected one size, found 2 and 3"):
        lab.emit(graph, {"b": 2, "c": 3, "n": 4, "d": 8}, {"warps": 1})


def test_scores_stay_in_registers(lab, rng):
    """
    From one product to the next nothing is stored: the loop has one barrier, that of the pipeline,
    and computes exp once for the product and the row sums.
    """
    sizes = {"b": 1, "g": 8, "h": 256, "d": 32}
    params = {"grid.x": 1, "tile.x": 1, "loop.i": 4, "tile.i": 64}
    params |= {"warps": 4, "swap": 0, "stages": 2}
    inputs, expected = attention_case(rng, sizes)
    kernel = lab.run(attention_graph(lab), sizes, params, inputs, expected)
    loop = kernel.ptx.partition("for_1:")[2].partition("bra for_1;")[0]
    assert "st.shared" not in loop
    assert "shfl" not in loop
    assert loop.count("bar.sync") == 1
    # 64 keys over 4 warps: two tiles of 8 a warp, four scores each
    assert loop.count("ex2.approx") == 8
    assert loop.count("cvt.rn.f16x2.f32") == 4
