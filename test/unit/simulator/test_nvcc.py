"""Kernels that nvcc compiled for these tests (sources beside the PTX in nvcc/), against numpy."""

import math
from pathlib import Path

import numpy as np
import pytest

from prism.simulator import (
    AsyncReadError,
    DeadlockError,
    Simulator,
    SimulatorError,
    UninitializedReadError,
)

FOLDER = Path(__file__).parent / "nvcc"


def load(name, kernel, text=None, **options):
    simulator = Simulator(**options)
    text = (FOLDER / f"{name}.ptx").read_text() if text is None else text
    return simulator, simulator.load(text, f"{name}.ptx")[kernel]


def rng():
    return np.random.default_rng(11)


def bf16(values):
    return (values.astype("f4").view("u4") >> 16).astype("u2")


def from_bf16(bits):
    return (bits.astype("u4") << 16).view("f4").astype("f8")


SIZES = [(64, 96, 80), (32, 32, 16), (96, 64, 144)]


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize("kind", ["f16", "s8", "tf32", "bf16", "f64"])
def test_wmma(kind, m, n, k):
    simulator, kernel = load("wmma", f"wmma_{kind}")
    a, b = rng().standard_normal((m, k)), rng().standard_normal((k, n))
    c, tolerance, tile = np.zeros((m, n), "f4"), 1e-4, (16, 16)
    if kind == "f16":
        a, b = a.astype("f2"), b.astype("f2")
        expected, args = 2 * (a.astype("f8") @ b.astype("f8")), [a, np.ascontiguousarray(b.T)]
    elif kind == "s8":
        a, b = (rng().integers(-128, 128, s).astype("i1") for s in ((m, k), (k, n)))
        c, tolerance, tile = rng().integers(-999, 999, (m, n)).astype("i4"), 0, (8, 32)
        expected, args = c + a.astype("i4") @ b.astype("i4"), [a, b]
    elif kind == "tf32":
        a, b, tolerance = a.astype("f4"), b.astype("f4"), 4e-3 * k**0.5
        expected, args = a.astype("f8") @ b, [np.ascontiguousarray(a.T), b]
    elif kind == "bf16":
        args, tile = [bf16(a), bf16(b)], (32, 8)
        expected = from_bf16(args[0]) @ from_bf16(args[1])
    else:
        args, c, tolerance, tile, expected = [a, b], np.zeros((m, n)), 1e-12, (8, 8), a @ b
    out = simulator.alloc(c)
    grid = (n // tile[1], m // tile[0])
    report = kernel.launch(grid, 32, [*map(simulator.alloc, args), out, m, n, k])
    np.testing.assert_allclose(out.numpy(), expected, rtol=0, atol=tolerance)
    assert report.mma_flops == 2 * m * n * k


@pytest.mark.parametrize("n", [1, 128, 300])
def test_carry_chains(n):
    simulator, kernel = load("wide", "wide")
    data = rng().bytes(32 * n)
    values = [int.from_bytes(data[i : i + 16], "little") for i in range(0, 32 * n, 16)]
    a, b = values[:n], values[n:]
    a[0] = b[0] = (1 << 128) - 1
    buffers = [
        simulator.alloc(np.frombuffer(b"".join(v.to_bytes(16, "little") for v in half), "u1"))
        for half in (a, b)
    ]
    out = simulator.empty(48 * n, "u1")
    kernel.launch(-(-n // 128), 128, [*buffers, out, n])
    raw = out.numpy().tobytes()
    found = [int.from_bytes(raw[i : i + 16], "little") for i in range(0, 48 * n, 16)]
    over = 1 << 128
    expected = [(x + y, x - y, x * y) for x, y in zip(a, b, strict=True)]
    assert found == [value % over for three in expected for value in three]


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (4, 96), (3, 100)])
def test_barriers_that_reduce(grid, block):
    simulator, kernel = load("wide", "anyall")
    x = rng().integers(-60, 95, (grid, block)).astype("i4")
    x[0, 3] = -101
    out = simulator.empty((grid, block), "i4")
    report = kernel.launch(grid, block, [simulator.alloc(x), out])
    expected = (x > 0).sum(1) + 10000 * (x > -100).all(1) + 100000 * (x > 90).any(1)
    assert (out.numpy() == expected[:, None]).all()
    assert report.barriers == 3 * grid


def test_spin_locks_and_a_barrier_of_the_grid_make_progress():
    simulator, kernel = load("wide", "locks")
    counter, seen = simulator.alloc(np.zeros(1, "i4")), simulator.empty(5 * 64, "i4")
    kernel.launch(5, 64, [counter, seen])
    assert counter.numpy()[0] == 320
    assert (seen.numpy() == 320).all()


@pytest.mark.parametrize(("grid", "block", "tiles"), [(1, 32, 1), (3, 96, 5), (2, 128, 4)])
def test_bulk_copies(grid, block, tiles):
    simulator, kernel = load("barrier", "bulk")
    data = rng().integers(-1000, 1000, (grid, tiles, 1024)).astype("i4")
    sums, out = simulator.empty(grid, "i4"), simulator.empty(data.shape, "i4")
    report = kernel.launch(grid, block, [simulator.alloc(data), sums, out, tiles])
    assert (out.numpy() == data + 1).all()
    padded = np.zeros((grid, tiles, -(-1024 // block) * block), "i8")
    padded[..., :1024] = data
    per_thread = padded.reshape(grid, tiles, -1, block).sum(2)
    expected = per_thread.sum((1, 2)) + ((per_thread & 1).sum((1, 2)) << 20)
    assert (sums.numpy() == expected.astype("i4")).all()
    assert report.copy_bytes_in_flight == 4096 * min(tiles, 2)
    assert report.dram_read_bytes == data.nbytes


@pytest.mark.parametrize(("grid", "n"), [(1, 1), (3, 7), (2, 12)])
def test_barrier_objects_with_tokens(grid, n):
    simulator, kernel = load("barrier", "tokens")
    data = rng().integers(0, 1000, (grid, n, 32)).astype("i4")
    out = simulator.empty((grid, 64), "i4")
    kernel.launch(grid, 96, [simulator.alloc(data), out, n])
    assert (out.numpy() == np.tile(data.sum(1), (1, 2))).all()


def bulk(text, tiles=3, empty=False):
    simulator, kernel = load("barrier", "bulk", text)
    source = simulator.empty((1, tiles, 1024), "i4")
    if not empty:
        source.write(np.ones(source.shape))
    buffers = [source, simulator.empty(1, "i4")]
    kernel.launch(1, 64, [*buffers, simulator.empty((1, tiles, 1024), "i4"), tiles])


def test_bulk_faults():
    text = (FOLDER / "barrier.ptx").read_text()
    bulk(text)
    with pytest.raises(UninitializedReadError, match="global read of 4096 bytes"):
        bulk(text, empty=True)
    wait = "mbarrier.try_wait.parity.shared::cta.b64  P_OUT, [%r8], %r7;"
    with pytest.raises(AsyncReadError, match="is not waited for"):
        bulk(text.replace(wait, "setp.eq.u32 P_OUT, 0, 0;"))
    # The bytes that come are more than those expected, so no phase completes.
    with pytest.raises(DeadlockError, match="mbarrier phase that nothing completes"):
        bulk(text.replace("[%r23], %r25;", "[%r23], 4080;"))
    with pytest.raises(SimulatorError, match="4092 bytes, not a multiple of 16"):
        bulk(text.replace("[%r66], %r67;", "[%r66], 4092;"))
    with pytest.raises(SimulatorError, match="global access of 16 bytes"):
        bulk(text.replace("[%r21], [%rd6], %r25,", "[%r21], [%rd6], 12304,"))
    with pytest.raises(SimulatorError, match="more arrivals"):
        bulk(text.replace("mov.u32 	%r19, 1;", "mov.u32 %r19, 1; mov.u32 %r20, 0;").replace(
            "// 8. ", "mbarrier.arrive.shared.b64 _, [%r23]; mbarrier.arrive.shared.b64 _, [%r23];", 1))  # fmt: skip


@pytest.mark.parametrize(("heads", "keys"), [(2, 256), (1, 1024), (3, 512)])
def test_attention(heads, keys):
    simulator, kernel = load("attention", "attention")
    q, kt, v = (
        (rng().standard_normal(s) / 8).astype("f2")
        for s in ((heads, 8, 128), (heads, 128, keys), (heads, keys, 128))
    )
    out, total = (simulator.alloc(np.zeros(s, "f4")) for s in ((heads, 8, 128), (heads, 8)))
    args = [*map(simulator.alloc, (q, kt, v)), out, total, keys]
    report = kernel.launch(
        (keys // 256, heads), 128, args, dynamic_smem=2 * (128 * 72 + 64 * 136) * 2
    )
    e = np.exp(q.astype("f8") @ kt.astype("f8"))
    np.testing.assert_allclose(total.numpy(), e.sum(2), rtol=1e-4)
    np.testing.assert_allclose(out.numpy(), e @ v.astype("f8"), atol=2e-3 * keys**0.5)
    assert report.copy_bytes_in_flight == 2 * 64 * 128 * 2 * 2


FUNCTIONS = [
    lambda a, b: math.sin(a),
    lambda a, b: math.cos(a),
    lambda a, b: math.exp(b),
    lambda a, b: math.log(abs(a)),
    lambda a, b: abs(a) ** b,
    lambda a, b: math.erf(b),
    math.fmod,
    lambda a, b: math.copysign(abs(a) ** (1 / 3), a),
    math.atan2,
    math.hypot,
    lambda a, b: math.tanh(b),
    lambda a, b: a / b,
    lambda a, b: float(round(a)),
    lambda a, b: math.sqrt(abs(a)),
    lambda a, b: math.lgamma(abs(b)),
]


@pytest.mark.parametrize(("kernel", "dtype", "ulps"), [("f32", "f4", 8), ("f64", "f8", 8)])
def test_the_device_library(kernel, dtype, ulps):
    """Correct to a few units in the last place, as CUDA promises, also of large arguments."""
    n = 200
    simulator, launched = load("functions", kernel)
    x = (rng().standard_normal(n) * 10.0 ** rng().integers(-3, 7, n)).astype(dtype)
    y = (rng().standard_normal(n) * 3).astype(dtype)
    out = simulator.empty((16, n), dtype)
    launched.launch(2, 128, [simulator.alloc(x), simulator.alloc(y), out, n])
    found = out.numpy()
    for row, function in enumerate(FUNCTIONS):
        expected = np.array([function(float(a), float(b)) for a, b in zip(x, y, strict=True)])
        unit = np.spacing(np.abs(expected).astype(dtype)).astype("f8")
        # lgamma has zeros at 1 and 2, where only the absolute error is small.
        slack = 1e-6 if row == 14 and dtype == "f4" else 1e-14 if row == 14 else 0
        error = np.abs(found[row].astype("f8") - expected)
        assert (error <= ulps * unit + slack).all(), row
    assert (found[15] == np.nextafter(x, y)).all()


def test_assertions_printing_and_packed_bytes():
    simulator, kernel = load("functions", "checks")
    x = rng().integers(0, 1 << 30, 64).astype("i4")
    out = simulator.empty(64, "i4")
    kernel.launch(1, 64, [simulator.alloc(x), out])

    def expected(v):
        low, high = ((v & 0xFFFF) ^ 0x8000) - 0x8000, ((v >> 16) ^ 0x8000) - 0x8000
        dot = low * 2 + high * -1
        parts = [(v >> s & 255, 0x10203 >> s & 255) for s in (0, 8, 16, 24)]
        absolute = sum(abs(p - q) << (8 * k) for k, (p, q) in enumerate(parts))
        places = [k for k in range(3, 32) if v >> k & 1]
        return v + dot + 1 + absolute + (places[1] if len(places) > 1 else -1)

    wrapped = np.array([expected(int(v)) for v in x]).astype("i8").astype("i4")
    assert (out.numpy() == wrapped).all()
    x[7] = -1
    with pytest.raises(SimulatorError, match="trap") as caught:
        kernel.launch(1, 64, [simulator.alloc(x), out])
    assert caught.value.thread == (7, 0, 0)


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (2, 64), (3, 45)])
def test_vector_atomics(grid, block):
    simulator, kernel = load("hopper", "v")
    a, b, out = (simulator.alloc(np.zeros(n, "f4")) for n in (4, 8, 4 * block))
    kernel.launch(grid, block, [a, b, out])
    count = grid * block
    assert a.numpy().tolist() == [0, 0, count, 2 * count]
    assert b.numpy().tolist() == [0, 0, 0, 0, *(count * np.arange(1, 5))]
    # Each element is atomic by itself: all old values of one differ.
    if grid == 1:
        assert sorted(out.numpy().reshape(-1, 4)[:, 3]) == [4 * i for i in range(block)]


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (2, 64), (3, 45)])
def test_a_cluster_of_one_block(grid, block):
    simulator, kernel = load("hopper", "c")
    out = simulator.empty(block, "i4")
    report = kernel.launch(grid, block, [out])
    assert (out.numpy() == 5 + 1 + 0).all()
    assert report.barriers == 2 * grid
