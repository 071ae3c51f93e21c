"""ldmatrix, stmatrix, movmatrix and mma.sync against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.simulator import DivergenceError, Simulator

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"


def launch(text, *arrays, grid=1, block=32):
    simulator = Simulator()
    buffers = [simulator.alloc(a) for a in arrays]
    kernel = simulator.load(HEADER + text, "test.ptx")["k"]
    kernel.launch(grid, block, buffers)
    return buffers


def ldmatrix_kernel(count, trans):
    regs = ", ".join(f"%r{i}" for i in range(count))
    stores = "".join(f"st.global.b32 [%o+{4 * i}], %r{i};" for i in range(count))
    return f""".entry k(.param .u64 o, .param .u64 g, .param .u64 rows) {{
      .reg .b64 %o, %g, %q, %m; .reg .b32 %t, %r<8>, %a, %s, %c;
      .shared .align 16 .b8 sm[8192];
      ld.param.u64 %o, [o]; ld.param.u64 %g, [g]; ld.param.u64 %m, [rows];
      mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %s, sm;
      mul.wide.u32 %q, %c, 2048; add.s64 %g, %g, %q;
      mul.wide.u32 %q, %t, 32; add.s64 %g, %g, %q; mad.lo.u32 %a, %t, 32, %s;
      ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%g]; st.shared.v4.b32 [%a], {{%r0, %r1, %r2, %r3}};
      ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%g+16]; st.shared.v4.b32 [%a+16], {{%r0, %r1, %r2, %r3}};
      bar.sync 0;
      mul.wide.u32 %q, %t, 4; add.s64 %m, %m, %q; ld.global.u32 %a, [%m]; mad.lo.u32 %a, %a, 16, %s;
      ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{regs}}}, [%a];
      mad.lo.u32 %t, %c, 64, %t; mul.wide.u32 %q, %t, {4 * count}; add.s64 %o, %o, %q; {stores} ret; }}"""


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_ldmatrix(count, trans, seed):
    """Two blocks of two warps load 8x8 matrices from rows at arbitrary places."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 2**16, (2, 128, 8), dtype=np.uint16)
    rows = rng.integers(0, 128, 64, dtype=np.uint32)
    out, *_ = launch(
        ldmatrix_kernel(count, trans),
        np.zeros((2, 64, count, 2), np.uint16),
        data,
        rows,
        grid=2,
        block=64,
    )
    for block in range(2):
        for warp in range(2):
            for j in range(count):
                matrix = data[block, rows[32 * warp + 8 * j : 32 * warp + 8 * j + 8]]
                matrix = matrix.T if trans else matrix
                got = out.numpy()[block, 32 * warp : 32 * warp + 32, j].reshape(8, 8)
                assert (got == matrix).all()


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_undoes_ldmatrix(trans):
    text = f""".entry k(.param .u64 o) {{
      .reg .b64 %o, %q; .reg .b32 %t, %r<4>, %a, %s; .shared .align 16 .b8 sm[512];
      ld.param.u64 %o, [o]; mov.u32 %t, %tid.x; mov.u32 %s, sm; mad.lo.u32 %a, %t, 16, %s;
      mul.lo.u32 %r0, %t, 4; add.u32 %r1, %r0, 1; add.u32 %r2, %r0, 2; add.u32 %r3, %r0, 3;
      stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%a], {{%r0, %r1, %r2, %r3}};
      bar.warp.sync -1;
      ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r0, %r1, %r2, %r3}}, [%a];
      mul.wide.u32 %q, %t, 16; add.s64 %o, %o, %q; st.global.v4.b32 [%o], {{%r0, %r1, %r2, %r3}}; ret; }}"""
    (out,) = launch(text.replace("add.u32", "add.u32"), np.zeros(128, np.uint32))
    assert out.numpy().tolist() == list(range(128))


def test_movmatrix_transposes(evaluate):
    matrix = np.arange(64, dtype=np.uint16)
    got = evaluate(
        "movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;", matrix.view(np.uint32), out=np.uint32
    )
    assert (got.view(np.uint16).reshape(8, 8) == matrix.reshape(8, 8).T).all()


def a_fragment(matrix):
    """(16, k) 16-bit elements to (32 lanes, registers, 2), by the figures of the PTX ISA."""
    out = np.zeros((32, matrix.shape[1] // 4, 2), matrix.dtype)
    for lane in range(32):
        for i in range(out.shape[1]):
            for h in range(2):
                out[lane, i, h] = matrix[lane // 4 + 8 * (i % 2), 2 * (lane % 4) + h + 8 * (i // 2)]
    return out


def b_fragment(matrix):
    out = np.zeros((32, matrix.shape[0] // 8, 2), matrix.dtype)
    for lane in range(32):
        for i in range(out.shape[1]):
            for h in range(2):
                out[lane, i, h] = matrix[2 * (lane % 4) + h + 8 * i, lane // 4]
    return out


def c_fragment(matrix):
    out = np.zeros((32, 4), matrix.dtype)
    for lane in range(32):
        for i in range(4):
            out[lane, i] = matrix[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2]
    return out


def mma_kernel(shape, d_type, ab_type, a_count, b_count, c_count):
    def load(name, pointer, count):
        return "".join(f"ld.global.b32 %{name}{i}, [%{pointer}+{4 * i}];" for i in range(count))

    def listed(name, count):
        return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"

    def advance(pointer, count):
        return f"ld.param.u64 %{pointer}, [{pointer}]; mul.wide.u32 %q, %t, {4 * count}; add.s64 %{pointer}, %{pointer}, %q;"

    stores = "".join(f"st.global.b32 [%pc+{4 * i}], %c{i};" for i in range(c_count))
    return f""".entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc) {{
      .reg .b64 %pa, %pb, %pc, %q; .reg .b32 %t, %u, %a<4>, %b<2>, %c<4>;
      mov.u32 %t, %tid.x; mov.u32 %u, %ctaid.x; mad.lo.u32 %t, %u, 64, %t;
      {advance("pa", a_count)} {advance("pb", b_count)} {advance("pc", c_count)}
      {load("a", "pa", a_count)} {load("b", "pb", b_count)} {load("c", "pc", c_count)}
      mma.sync.aligned.{shape}.row.col.{d_type}.{ab_type}.{ab_type}.{d_type}
        {listed("c", c_count)}, {listed("a", a_count)}, {listed("b", b_count)}, {listed("c", c_count)};
      {stores} ret; }}"""


@pytest.mark.parametrize("k", [8, 16])
@pytest.mark.parametrize(("d_type", "ab_type"), [("f32", "f16"), ("f16", "f16"), ("f32", "bf16")])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_mma(k, d_type, ab_type, seed):
    """Small integers, so that every order of summation gives the same: exact equality."""
    rng = np.random.default_rng(seed)
    a, b, c = (
        rng.integers(-8, 9, (4, *size)).astype(np.float32) for size in ((16, k), (k, 8), (16, 8))
    )

    def narrow(x):
        return (
            x.astype(np.float16).view(np.uint16)
            if ab_type == "f16"
            else (x.view(np.uint32) >> 16).astype(np.uint16)
        )

    fragments = [
        np.stack([make(narrow(m)) for m in x]) for make, x in ((a_fragment, a), (b_fragment, b))
    ]
    c_dtype = np.float32 if d_type == "f32" else np.float16
    accumulators = np.stack([c_fragment(m.astype(c_dtype)) for m in c])
    text = mma_kernel(f"m16n8k{k}", d_type, ab_type, k // 4, k // 8, 4 if d_type == "f32" else 2)
    *_, out = launch(text, *fragments, accumulators, grid=2, block=64)
    expected = np.stack([c_fragment(m) for m in c + a @ b]).astype(c_dtype)
    assert out.numpy().tobytes() == expected.tobytes()


def test_mma_needs_the_whole_warp():
    text = mma_kernel("m16n8k16", "f32", "f16", 4, 2, 4).replace(
        "mma.sync", ".reg .pred %p; setp.lt.u32 %p, %t, 31; @!%p ret;\nmma.sync"
    )
    with pytest.raises(DivergenceError, match="all 32 threads"):
        launch(text, np.zeros((64, 4), "u4"), np.zeros((64, 2), "u4"), np.zeros((64, 4), "u4"))
