"""mov, ld, st, parameters, variables and generic addresses."""

import numpy as np
import pytest

from prism.simulator import Simulator

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def launch(text, *arrays, grid=1, block=32, dynamic_smem=0, **options):
    """Runs the kernel k of a text on arrays; returns the buffers and the report."""
    simulator = Simulator(**options)
    buffers = [simulator.alloc(a) if isinstance(a, np.ndarray) else a for a in arrays]
    kernel = simulator.load(HEADER + text, "test.ptx")["k"]
    report = kernel.launch(grid, block, buffers, dynamic_smem=dynamic_smem)
    return buffers, report


def test_pack_and_unpack(evaluate):
    a, b = np.array([0x11112222], np.uint32), np.array([0x33334444], np.uint32)
    assert evaluate("mov.b64 %d, {%a, %b};", a, b, out=np.uint64).tolist() == [0x3333444411112222]
    body = ".reg .b32 %x, %y; mov.b64 {%x, %y}, %a; sub.s32 %d, %y, %x;"
    assert evaluate(body, np.array([5 << 32 | 3], np.uint64), out=np.uint32).tolist() == [2]
    body = ".reg .b16 %x, %y; mov.b32 {%x, _}, %a; mov.b32 {_, %y}, %a; mov.b32 %d, {%y, %x};"
    assert evaluate(body, a, out=np.uint32).tolist() == [0x22221111]
    body = ".reg .b16 %x<4>; mov.b64 {%x0, %x1, %x2, %x3}, %a; mov.b64 %d, {%x3, %x2, %x1, %x0};"
    got = evaluate(body, np.array([0x1111222233334444], np.uint64), out=np.uint64)
    assert got.tolist() == [0x4444333322221111]


def test_special_registers():
    text = """.entry k(.param .u64 o) {
      .reg .b64 %o, %q; .reg .b32 %r<20>;
      ld.param.u64 %o, [o];
      mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;
      mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y; mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y;
      mov.u32 %r7, %nctaid.x; mov.u32 %r8, %laneid; mov.u32 %r9, %warpid; mov.u32 %r10, %lanemask_lt;
      mad.lo.u32 %r11, %r2, %r4, %r1; mad.lo.u32 %r11, %r11, %r3, %r0;
      mad.lo.u32 %r12, %r6, %r7, %r5; mad.lo.u32 %r12, %r12, 48, %r11;
      mul.wide.u32 %q, %r12, 16; add.s64 %o, %o, %q;
      mad.lo.u32 %r0, %r1, 100, %r0; mad.lo.u32 %r0, %r2, 10000, %r0; mad.lo.u32 %r5, %r6, 100, %r5;
      mad.lo.u32 %r8, %r9, 100, %r8;
      st.global.v4.u32 [%o], {%r0, %r5, %r8, %r10}; ret; }"""
    (out,), _ = launch(text, np.zeros((6, 48, 4), np.uint32), grid=(3, 2), block=(6, 4, 2))
    for block in range(6):
        for t in range(48):
            x, y, z = t % 6, t // 6 % 4, t // 24
            expected = [
                x + 100 * y + 10000 * z,
                block % 3 + 100 * (block // 3),
                t % 32 + 100 * (t // 32),
                2 ** (t % 32) - 1,
            ]
            assert out.numpy()[block, t].tolist() == expected


@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_access_widths_and_extension(space):
    """Bytes stored one by one are read back at every width, sign- and zero-extended."""
    setup = {
        "global": "mul.wide.u32 %q, %t, 16; add.s64 %q, %s, %q;",
        "shared": "mul.wide.u32 %q, %t, 16; mov.u64 %p, sm; add.s64 %q, %q, %p;",
        "local": "mov.u64 %q, lo;",
    }[space]
    loads = [
        ("ld.{s}.s8 %r, [%q];", -2),
        ("ld.{s}.u8 %r, [%q+1];", 0xF1),
        ("ld.{s}.s16 %r, [%q+2];", -3085),
        ("ld.{s}.u16 %r, [%q+2];", 0xF3F3),
        ("ld.{s}.b32 %r, [%q+8];", 0x0B0A0908),
        ("ld.{s}.u32 %r, [%q+12];", 0x0F0E0D0C),
    ]
    code = "".join(
        f"st.{space}.u8 [%q+{i}], {value};"
        for i, value in enumerate(
            [0xFE, 0xF1, 0xF3, 0xF3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        )
    )
    for i, (load, _) in enumerate(loads):
        code += load.format(s=space) + f"st.global.u32 [%o+{4 * i}], %r;"
    code += f"ld.{space}.v2.u64 {{%x, %y}}, [%q]; st.global.v2.b64 [%o+32], {{%y, %x}};"
    text = f""".entry k(.param .u64 po, .param .u64 ps) {{
      .reg .b64 %o, %s, %q, %p, %x, %y; .reg .b32 %r, %t;
      .shared .align 16 .b8 sm[512]; .local .align 16 .b8 lo[16];
      ld.param.u64 %o, [po]; ld.param.u64 %s, [ps]; mov.u32 %t, %tid.x;
      mul.wide.u32 %q, %t, 48; add.s64 %o, %o, %q; {setup} {code} ret; }}"""
    (out, _), _ = launch(text, np.zeros((32, 12), np.int32), np.zeros(512, np.uint8))
    expected = [value for _, value in loads]
    assert (out.numpy()[:, : len(loads)] == expected).all()
    tail = np.ascontiguousarray(out.numpy()[:, 8:]).view(np.uint64)
    assert tail[5].tolist() == [0x0F0E0D0C0B0A0908, 0x07060504F3F3F1FE]


def test_parameters_are_cast_and_vectors_load():
    text = """.entry k(.param .u64 o, .param .f32 f, .param .s16 h, .param .f64 g, .param .align 16 .b8 s[16]) {
      .reg .b64 %o, %x; .reg .b32 %f, %h, %a, %b, %c, %e; .reg .f64 %g;
      ld.param.u64 %o, [o]; ld.param.f32 %f, [f]; ld.param.s16 %h, [h]; ld.param.f64 %g, [g];
      ld.param.v4.u32 {%a, %b, %c, %e}, [s]; ld.param.u32 %b, [s+8];
      st.global.f32 [%o], %f; st.global.u32 [%o+4], %h; st.global.f64 [%o+8], %g;
      st.global.v2.u32 [%o+16], {%b, %e}; ret; }"""
    struct = np.array([1, 2, 3, 4], np.uint32).tobytes()
    (out, *_), _ = launch(text, np.zeros(24, np.uint8), 2, -7, np.float32(0.5), struct, block=1)
    raw = out.numpy()
    assert raw[:4].view(np.float32)[0] == 2.0
    assert raw[4:8].view(np.int32)[0] == -7
    assert raw[8:16].view(np.float64)[0] == 0.5
    assert raw[16:].view(np.uint32).tolist() == [3, 4]


def test_variables_with_initial_values():
    text = """.const .align 4 .f32 c[2] = {1.5, 0f40000000};
    .global .align 4 .s32 g[3] = {-1, 7};
    .entry k(.param .u64 o) {
      .reg .b64 %o, %g; .reg .f32 %f; .reg .b32 %r;
      ld.param.u64 %o, [o]; ld.const.f32 %f, [c+4]; st.global.f32 [%o], %f;
      mov.u64 %g, g; ld.global.s32 %r, [%g]; st.global.u32 [%o+4], %r;
      ld.global.s32 %r, [g+8]; st.global.u32 [%o+8], %r; ret; }"""
    (out,), _ = launch(text, np.zeros(3, np.int32), block=1)
    assert out.numpy().tolist() == [0x40000000, -1, 0]


def test_generic_addresses_may_mix_spaces():
    """Odd threads use shared memory, even ones global memory, through the same instructions."""
    text = """.entry k(.param .u64 o, .param .u64 g) {
      .reg .b64 %o, %g, %s, %q, %a; .reg .b32 %t, %r; .reg .pred %p;
      .shared .align 4 .b32 sm[32];
      ld.param.u64 %o, [o]; ld.param.u64 %g, [g]; mov.u32 %t, %tid.x; mul.wide.u32 %q, %t, 4;
      mov.u64 %s, sm; cvta.shared.u64 %s, %s; cvta.to.global.u64 %g, %g;
      and.b32 %r, %t, 1; setp.eq.u32 %p, %r, 1; selp.b64 %a, %s, %g, %p; add.s64 %a, %a, %q;
      st.u32 [%a], %t; ld.u32 %r, [%a]; add.s32 %r, %r, 100;
      add.s64 %o, %o, %q; st.global.u32 [%o], %r; ret; }"""
    (out, other), _ = launch(text, np.zeros(32, np.uint32), np.zeros(32, np.uint32), grid=3)
    assert out.numpy().tolist() == [t + 100 for t in range(32)]
    assert other.numpy().tolist() == [0 if t % 2 else t for t in range(32)]


def test_calls_pass_parameters_both_ways():
    text = """
    .func (.param .b32 r) triple(.param .b32 x, .reg .b32 %y) {
      .reg .b32 %a; .reg .pred %p;
      ld.param.b32 %a, [x]; setp.gt.s32 %p, %a, 5; @%p bra BIG;
      mad.lo.s32 %a, %a, 3, %y; st.param.b32 [r], %a; ret;
      BIG: mov.b32 %y, 0; st.param.b32 [r], -1; ret; }
    .entry k(.param .u64 o) {
      .reg .b64 %o, %q; .reg .b32 %t, %r, %u; .reg .pred %p;
      ld.param.u64 %o, [o]; mov.u32 %t, %tid.x; mul.wide.u32 %q, %t, 4; add.s64 %o, %o, %q;
      mov.b32 %r, -5; mov.b32 %u, 1; setp.ne.u32 %p, %t, 3;
      { .param .b32 a; .param .b32 b; st.param.b32 [a], %t;
        @%p call.uni (b), triple, (a, %u); @!%p bra SKIP; ld.param.b32 %r, [b]; SKIP: }
      add.s32 %r, %r, %u; st.global.u32 [%o], %r; ret; }"""
    (out,), _ = launch(text, np.zeros(10, np.int32), block=10)
    assert out.numpy().tolist() == [2, 5, 8, -4, 14, 17, 0, 0, 0, 0]
