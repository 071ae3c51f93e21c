"""Copies that run ahead of the loop, swizzled tiles, and what the simulator counts of them."""

import dataclasses

import numpy as np
import pytest

from prism.codegen.errors import CannotLower
from prism.simulator import Simulator
from prism.simulator.errors import SimulatorError


def product_graph(lab):
    def body(b):
        product = b.op("matmul", b.input(0, {}, {"i": 1}), b.input(1, {"x": 1}, {"i": 0}))
        return b.output(b.accum(product), {"x": 1})

    tensors = [lab.tensor("n", "k"), lab.tensor("k", "m")]
    return lab.graph(tensors, lab.tensor("n", "m"), body, ("x",), ("i",))


def emit(lab, rng, sizes, tiles, stages, warps=4, swap=1):
    """The kernel of a product, its inputs and the expected output."""
    x = rng.standard_normal((sizes["n"], sizes["k"])).astype(np.float16)
    w = rng.standard_normal((sizes["k"], sizes["m"])).astype(np.float16)
    params = {
        "tile.x": tiles[0],
        "grid.x": -(-sizes["m"] // tiles[0]),
        "tile.i": tiles[1],
        "loop.i": -(-sizes["k"] // tiles[1]),
        "warps": warps,
        "swap": swap,
        "stages": stages,
    }
    expected = x.astype(np.float64) @ w.astype(np.float64)
    return lab.emit(product_graph(lab), sizes, params), [x, w], expected


def check(lab, kernel, inputs, expected):
    (found,) = lab.simulate(kernel, inputs, [np.full(expected.shape, np.nan, np.float16)])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=2e-3)


@pytest.mark.parametrize("stages", range(1, 7))
@pytest.mark.parametrize(
    ("sizes", "tiles"),
    [
        ({"n": 8, "k": 256, "m": 64}, (32, 32)),
        # fewer indices than stages
        ({"n": 5, "k": 64, "m": 40}, (16, 32)),
        # rows of 8, 4 and 2 aligned bytes
        ({"n": 9, "k": 100, "m": 36}, (16, 16)),
        ({"n": 9, "k": 90, "m": 34}, (16, 16)),
        ({"n": 9, "k": 91, "m": 33}, (16, 48)),
    ],
)
def test_stages(lab, rng, sizes, tiles, stages):
    check(lab, *emit(lab, rng, sizes, tiles, stages))


def test_copies_run_ahead(lab, rng):
    """Of 4 stages 3 are on their way when the loop starts, and each index waits for the oldest."""
    kernel, _, _ = emit(lab, rng, {"n": 8, "k": 512, "m": 64}, (64, 64), 4)
    before, _, loop = kernel.ptx.partition("for_1:")
    assert before.count("commit_group") == 3
    assert loop.count("commit_group") == 1
    assert "cp.async.wait_group 2;" in loop
    assert "ld.global" not in kernel.ptx


@pytest.mark.parametrize(
    "removed", ["  cp.async.wait_group 2;\n  bar.sync 0;\n", "  cp.async.wait_group 2;\n"]
)
def test_the_sanitizer_sees_a_missing_wait(lab, rng, removed):
    kernel, inputs, expected = emit(lab, rng, {"n": 8, "k": 512, "m": 64}, (64, 64), 4)
    assert removed in kernel.ptx
    broken = dataclasses.replace(kernel, ptx=kernel.ptx.replace(removed, ""))
    with pytest.raises(SimulatorError):
        check(lab, broken, inputs, expected)


@pytest.mark.parametrize("tiles", [(8, 64), (16, 128), (32, 64), (64, 32), (128, 16)])
@pytest.mark.parametrize("swap", [0, 1])
def test_traffic(lab, rng, tiles, swap):
    """No bank conflicts, all input bytes by 16-byte copies, every byte of the weight read once."""
    columns = tiles[0] * 4
    kernel, inputs, expected = emit(lab, rng, {"n": 8, "k": 256, "m": columns}, tiles, 3, swap=swap)
    simulator = Simulator(sanitize=False, meter=True)
    output = np.full(expected.shape, np.nan, np.float16)
    buffers = [simulator.alloc(array) for array in (*inputs, output)]
    report = simulator.load(kernel.ptx)[kernel.name].launch(
        grid=kernel.grid, block=kernel.block, args=buffers, dynamic_smem=kernel.dynamic_smem
    )
    assert report.bank_conflicts <= 0.02 * report.shared_wavefronts
    assert report.wide_share == 1
    assert report.dram_read_bytes == sum(array.nbytes for array in inputs)


@pytest.mark.parametrize("stages", [0, 7])
def test_refused(lab, rng, stages):
    with pytest.raises(CannotLower, match=f"parameter stages: expected 1 to 6, found {stages}"):
        emit(lab, rng, {"n": 8, "k": 64, "m": 64}, (32, 32), stages)
