"""PTX that nvcc and Triton wrote, against the formulas of its sources (corpus/ is of /shared/ptx-corpus)."""

from pathlib import Path

import numpy as np
import pytest

from prism.simulator import (
    AsyncReadError,
    RaceError,
    Simulator,
    SimulatorError,
    UninitializedReadError,
)

CORPUS = Path(__file__).parent / "corpus"


def read(name):
    return (CORPUS / f"{name}.ptx").read_text()


def load(name, kernel, text=None):
    simulator = Simulator()
    return simulator, simulator.load(text or read(name), f"{name}.ptx")[kernel]


def pad(kernel, args):
    """Triton adds pointers to scratch memory that these kernels do not use."""
    return args + [0] * (len(kernel.params) - len(args))


def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("n", [1, 1000, 4096])
def test_saxpy(n):
    simulator, kernel = load("saxpy", "saxpy")
    x, y = rng().standard_normal((2, n)).astype("f4")
    out = simulator.alloc(y)
    report = kernel.launch(-(-n // 128), 128, [n, 2.5, simulator.alloc(x), out])
    # One fused multiply-add: rounding once of the exact value.
    assert (out.numpy() == (x.astype("f8") * 2.5 + y).astype("f4")).all()
    assert (report.global_read_bytes, report.global_write_bytes) == (8 * n, 4 * n)
    assert report.instructions["fma"] == n
    assert report.dram_write_bytes == -(-4 * n // 32) * 32


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (70, 50, 45), (33, 17, 100)])
def test_tiled(m, n, k):
    simulator, kernel = load("tiled", "tiled")
    a, b = rng().standard_normal((m, k)).astype("f4"), rng().standard_normal((k, n)).astype("f4")
    out = simulator.alloc(np.full((m, n), np.nan, "f4"))
    grid = (-(-n // 16), -(-m // 16))
    kernel.launch(grid, (16, 16), [simulator.alloc(a), simulator.alloc(b), out, m, n, k])
    np.testing.assert_allclose(out.numpy(), a.astype("f8") @ b, rtol=0, atol=1e-4)


def run_mma(m, n, k, text=None):
    simulator, kernel = load("mma", "mma", text)
    a, b = rng().standard_normal((m, k)).astype("f2"), rng().standard_normal((k, n)).astype("f2")
    out = simulator.alloc(np.full((m, n), np.nan, "f4"))
    report = kernel.launch(
        (n // 64, m // 64), 128, [simulator.alloc(a), simulator.alloc(b), out, m, n, k]
    )
    np.testing.assert_allclose(out.numpy(), a.astype("f8") @ b.astype("f8"), rtol=0, atol=2e-3)
    return report


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (64, 128, 96), (192, 64, 256)])
def test_mma(m, n, k):
    report = run_mma(m, n, k)
    warp_instructions = m // 16 * n // 8 * k // 16
    assert report.instructions["mma"] == 32 * warp_instructions
    assert report.dram_read_bytes == 2 * (m * k + k * n)
    assert report.global_read_bytes == 2 * (m * k * (n // 64) + k * n * (m // 64))


@pytest.mark.parametrize(("n", "grid", "block"), [(5, 1, 32), (1000, 3, 128), (777, 2, 1024)])
def test_reduce(n, grid, block):
    simulator, kernel = load("reduce", "reduce")
    x = rng().standard_normal(n).astype("f4")
    out = simulator.alloc(np.array([2.0], "f4"))
    kernel.launch(grid, block, [simulator.alloc(x), out, n])
    assert abs(out.numpy()[0] - (2 + x.astype("f8").sum())) < 1e-4


@pytest.mark.parametrize(("n", "grid", "block"), [(1, 1, 32), (5000, 3, 96), (3001, 2, 300)])
def test_hist(n, grid, block):
    simulator, kernel = load("hist", "hist")
    data = rng().integers(0, 256, n, dtype=np.uint8)
    out = simulator.alloc(np.zeros(256, "u4"))
    kernel.launch(grid, block, [simulator.alloc(data), out, n])
    assert (out.numpy() == np.bincount(data, minlength=256)).all()


def collatz(v, cap):
    count = 0
    while v != 1:
        v = 3 * v + 1 if v & 1 else v >> 1
        count += 1
        if count >= cap:
            return -1
        if count % 5 == 4 and v > 1000000000:
            return -2
    return count


@pytest.mark.parametrize(("n", "block", "top"), [(1, 32, 9), (300, 100, 10**5), (200, 64, 10**12)])
def test_collatz(n, block, top):
    simulator, kernel = load("diverge", "collatz")
    x = rng().integers(1, top, n, dtype=np.uint64)
    out = simulator.alloc(np.zeros(n, "i4"))
    kernel.launch(-(-n // block), block, [simulator.alloc(x), out, n, 150])
    assert out.numpy().tolist() == [collatz(int(v), 150) for v in x]


@pytest.mark.parametrize("n", [1, 1024, 2999])
def test_triton_add(n):
    simulator, kernel = load("add_sm80", "add")
    x, y = rng().standard_normal((2, n)).astype("f4")
    out = simulator.alloc(np.full(n, np.nan, "f4"))
    kernel.launch(-(-n // 1024), 128, pad(kernel, [simulator.alloc(x), simulator.alloc(y), out, n]))
    assert (out.numpy() == x + y).all()


@pytest.mark.parametrize("target", ["sm80", "sm90"])
@pytest.mark.parametrize(("rows", "cols", "grid"), [(1, 1024, 1), (37, 777, 5), (8, 3, 16)])
def test_triton_softmax(target, rows, cols, grid):
    simulator, kernel = load(f"softmax_{target}", "softmax")
    x = rng().standard_normal((rows, cols)).astype("f4") * 4
    out = simulator.alloc(np.full((rows, cols), np.nan, "f4"))
    args = pad(kernel, [out, simulator.alloc(x), cols, cols, rows, cols])
    kernel.launch(grid, 128, args, dynamic_smem=4112)
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), e / e.sum(1, keepdims=True), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize(("m", "n", "k"), [(128, 64, 32), (200, 144, 96), (16, 16, 16)])
def test_triton_matmul(m, n, k):
    simulator, kernel = load("matmul_sm80", "matmul")
    a, b = rng().standard_normal((m, k)).astype("f2"), rng().standard_normal((k, n)).astype("f2")
    out = simulator.alloc(np.full((m, n), np.nan, "f2"))
    grid = -(-m // 128) * -(-n // 64)
    args = pad(kernel, [simulator.alloc(a), simulator.alloc(b), out, m, n, k, k, n, n])
    kernel.launch(grid, 128, args, dynamic_smem=24576)
    c = a.astype("f8") @ b.astype("f8")
    np.testing.assert_allclose(out.numpy(), np.where(c > 0, c, 0.01 * c), rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("target", ["sm80", "sm90"])
@pytest.mark.parametrize(("rows", "n"), [(1, 1024), (9, 784), (5, 16)])
def test_triton_layernorm(target, rows, n):
    simulator, kernel = load(f"layernorm_{target}", "layernorm")
    x = rng().standard_normal((rows, n)).astype("f2")
    w, b = rng().standard_normal((2, n)).astype("f4")
    out, mean, rstd = (
        simulator.alloc(np.full(s, np.nan, t))
        for s, t in (((rows, n), "f2"), (rows, "f4"), (rows, "f4"))
    )
    args = [simulator.alloc(x), out, simulator.alloc(w), simulator.alloc(b), mean, rstd, n, n, 1e-5]
    kernel.launch(rows, 128, pad(kernel, args), dynamic_smem=16)
    wide = x.astype("f8")
    mu, r = wide.mean(1), 1 / np.sqrt(wide.var(1) + 1e-5)
    np.testing.assert_allclose(mean.numpy(), mu, atol=1e-5)
    np.testing.assert_allclose(rstd.numpy(), r, rtol=1e-4)
    np.testing.assert_allclose(
        out.numpy(), (wide - mu[:, None]) * r[:, None] * w + b, rtol=2e-3, atol=2e-3
    )


def without(text, what, number):
    """The text with the given occurrence of a line turned into a comment."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if what in line]
    lines[places[number]] = "//" + lines[places[number]]
    return "\n".join(lines)


def test_removed_waits_are_found():
    """Each wait_group of the pipelined mma kernel is needed."""
    text = read("mma")
    count = text.count("cp.async.wait_group")
    assert count == 2
    for number in range(count):
        with pytest.raises(AsyncReadError, match=r"mma\.ptx:\d+: error: shared read"):
            run_mma(64, 64, 128, without(text, "cp.async.wait_group", number))


@pytest.mark.parametrize("number", range(2))
def test_removed_barriers_of_mma_are_found(number):
    """One barrier makes copies visible to other warps, one keeps them from what is still read."""
    assert read("mma").count("bar.sync") == 2
    with pytest.raises(RaceError, match=r"mma\.ptx:\d+: error: shared (read|write) races"):
        run_mma(64, 64, 128, without(read("mma"), "bar.sync", number))


@pytest.mark.parametrize("number", range(2))
def test_removed_barriers_of_tiled_are_found(number):
    simulator, kernel = load("tiled", "tiled", without(read("tiled"), "bar.sync", number))
    a = simulator.alloc(np.ones((32, 32), "f4"))
    with pytest.raises(RaceError, match="no barrier in between"):
        kernel.launch(
            (2, 2), (16, 16), [a, a, simulator.alloc(np.ones((32, 32), "f4")), 32, 32, 32]
        )


@pytest.mark.parametrize("number", range(2))
def test_removed_barriers_of_hist_are_found(number):
    simulator, kernel = load("hist", "hist", without(read("hist"), "bar.sync", number))
    data = simulator.alloc(np.arange(512)[::-1].astype(np.uint8))
    with pytest.raises(RaceError, match=r"shared (atomic|read) races"):
        kernel.launch(1, 128, [data, simulator.alloc(np.zeros(256, "u4")), 512])


def test_removed_commit_is_found():
    with pytest.raises(AsyncReadError):
        run_mma(64, 64, 128, without(read("mma"), "cp.async.commit_group", 0))


def test_index_one_past_the_end_is_found():
    """reduce reads one element beyond its input."""
    simulator, kernel = load("reduce", "reduce")
    x = simulator.alloc(np.ones(100, "f4"))
    with pytest.raises(SimulatorError, match="global access of 4 bytes") as caught:
        kernel.launch(1, 128, [x, simulator.alloc(np.zeros(1, "f4")), 101])
    assert (caught.value.block, caught.value.thread) == ((0, 0, 0), (100, 0, 0))
    assert "ld.global" in read("reduce").split("\n")[caught.value.line - 1]


def test_unwritten_shared_words_are_found():
    """hist without its first loop adds to counters that nothing set."""
    simulator, kernel = load("hist", "hist", without(read("hist"), "st.shared.u32", 0))
    with pytest.raises(UninitializedReadError, match="nothing wrote it"):
        kernel.launch(
            1,
            64,
            [simulator.alloc(np.zeros(64, np.uint8)), simulator.alloc(np.zeros(256, "u4")), 64],
        )
