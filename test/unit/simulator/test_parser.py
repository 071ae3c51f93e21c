"""Texts that cannot be loaded: an error with the line. Mutated texts are in test_fuzz."""

import pytest

from prism.simulator import PtxError, Simulator

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def load(text):
    return Simulator().load(text, "bad.ptx")


def in_kernel(body):
    return f"{HEADER}.entry k(.param .u64 o, .param .align 4 .b8 s[8]) {{\n.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .pred %p<9>; .reg .b16 %h<9>;\n.shared .align 4 .b8 sm[16];\n{body}\nret; }}"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "expected '.version'"),
        (".version 8.0\n.target sm_80\n.address_size 32", 3, "not within 64 to 64"),
        (".version 8\n.target sm_80\n", 2, "expected a version"),
        (HEADER + "@", 4, "unexpected '@'"),
        (HEADER + "/* never\nclosed", 4, "unclosed comment"),
        (HEADER + "# x", 4, "unexpected character '#'"),
        (HEADER + ".entry k(", 4, "expected '.param'"),
        (HEADER + ".entry k()\n{ ret;", 5, "unclosed '{'"),
        (HEADER + ".entry k() { ret; }\n.entry k() { ret; }", 5, "defined twice"),
        (HEADER + ".entry k()\n.maxntid 2048 { ret; }", 5, "not within 1 to 1024"),
        (HEADER + ".entry k()\n.reqnctapercluster 2 { ret; }", 5, "not within 1 to 1"),
        (HEADER + ".entry k()\n.frobnicate { ret; }", 5, "unknown directive"),
        (
            HEADER + ".shared .b8 a[300000];\n.entry k() { ret; }",
            5,
            "300000 bytes of shared memory",
        ),
        (HEADER + ".global .b32 x[99999999999];", 4, "not within"),
        (HEADER + ".global .s32 x[2] = {1, 2, 3};", 4, "too many initial values"),
        (HEADER + ".global .b32 x[1] = " + "{" * 5000, 4, "nested deeper"),
        (HEADER + ".global .u32 x[0f00000000];", 4, "expected an array size"),
        (HEADER + ".global .u32 x[];", 4, "needs a size"),
        (HEADER + ".extern .global .u32 x;", 4, "is defined in no module"),
        (HEADER + ".shared .u32 x = 3;", 4, "cannot have an initial value"),
    ],
)
def test_declarations(text, line, message):
    with pytest.raises(PtxError) as caught:
        load(text)
    assert message in caught.value.message
    assert caught.value.line == line
    assert str(caught.value).startswith(f"bad.ptx:{line}: error: ")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("frob.b32 %r1, %r2;", "unknown or unsupported instruction 'frob.b32'"),
        ("wgmma.fence.sync.aligned;", "unknown or unsupported instruction"),
        ("add.s32 %r1, %r2, %r3", "expected ';'"),
        ("add.s32 %r1, %r2;", "takes 3 operands, found 2"),
        ("add.s32 %r1, %r2, %r3, %r4;", "takes 3 operands, found 4"),
        ("add.s32 %r1, %r2, %zz;", "unknown name '%zz'"),
        ("add.s32 %r1, %r2, %r9;", "unknown name '%r9'"),
        ("add.s32 %r1, %r2, %r01;", "unknown name '%r01'"),
        ("add.s32 5, %r2, %r3;", "the destination must be a register"),
        ("add.s32 %d1, %r2, %r3;", "'%d1' has type .b64, expected .s32"),
        ("add.s32 %r1, %f2, %r3;", "'%f2' has type .f32, expected .s32"),
        ("add.s32 %r1, %p2, %r3;", "'%p2' has type .pred, expected .s32"),
        ("add.s32 %r1, %r2, 0x1FFFFFFFF;", "does not fit in .s32"),
        ("add.s32 %r1, %r2, 99999999999999999999;", "does not fit in 64 bits"),
        ("add.f32 %f1, %f2, 0d3FF0000000000000;", "a literal of 64 bits, expected .f32"),
        ("add.s32 %r1, %r2, 1.5;", "a float literal, expected .s32"),
        ("add.b32 %r1, %r2, %r3;", "'add' does not support the type '.b32'"),
        ("add.rn.s32 %r1, %r2, %r3;", "unsupported modifier '.rn' of 'add.s32'"),
        ("add.wat.f32 %f1, %f2, %f3;", "unsupported modifier '.wat'"),
        ("add.rn.rz.f32 %f1, %f2, %f3;", "unsupported"),
        ("add.ftz.ftz.f32 %f1, %f2, %f3;", "repeated"),
        ("mul.s32 %r1, %r2, %r3;", "unsupported or missing modifier"),
        ("fma.f32 %f1, %f2, %f3, %f4;", "unsupported or missing modifier"),
        ("add %r1, %r2, %r3;", "does not support the type"),
        ("setp.lt.b32 %p1, %r1, %r2;", "unsupported modifier"),
        ("setp.lt.nand.s32 %p1, %r1, %r2, %p3;", "unsupported modifier"),
        ("setp.lt.s32 %r1, %r1, %r2;", "'%r1' has type .b32, expected .pred"),
        ("cvt.s32.f32 %r1, %f1;", "unsupported conversion"),
        ("cvt.f32.s32 %f1, %r1;", "unsupported conversion"),
        ("cvt.rn.f64.f32 %d1, %f1;", "unsupported conversion"),
        ("cvt.u32.u64 %r1, %r2;", "'%r2' has type .b32, expected .u64"),
        ("cvt.rn.e4m3x2.f32 %h1, %f1, %f2;", "unsupported conversion"),
        ("cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;", "unsupported type"),
        ("ld.global.u32 %r1, [%r2];", "needs 64 bits"),
        ("ld.global.u32 %r1, %d2;", "expected an address in brackets"),
        ("ld.global.v4.u64 {%d1, %d2, %d3, %d4}, [%d5];", "more than 16 bytes"),
        ("ld.global.v2.u32 {%r1, %r2, %r3}, [%d5];", "expected a vector of 2"),
        ("ld.global.shared.u32 %r1, [%d5];", "unsupported modifier"),
        ("ld.global.L3::hot.u32 %r1, [%d5];", "unsupported modifier '.L3::hot'"),
        ("ld.global.u32 %r1, [%d5-4];", "expected ']'"),
        ("ld.volatile.local.u32 %r1, [%d5];", "unsupported modifier '.volatile'"),
        ("ld.shared.u32 %r1, [s];", "'s' is in .param, not in .shared"),
        ("ld.param.u32 %r1, [s+8];", "beyond the 8 bytes of 's'"),
        ("ld.param.u32 %r1, [s+2];", "misaligned"),
        ("ld.param.f32 %d1, [s];", "'%d1' has type .b64, expected .f32"),
        ("st.param.u32 [s], %r1;", "a store to a kernel parameter"),
        ("st.const.u32 [%d1], %r1;", "a store to .const"),
        ("ld.global.u64 %r1, [%d1];", "'%r1' has type .b32, expected .u64"),
        ("mov.u32 %r1, %tid.w;", "unknown name '%tid.w'"),
        ("mov.u64 %d1, %tid.x;", "has 32 bits"),
        ("mov.b64 %d1, {%r1, %r2, %r3};", "does not make up"),
        ("bra NOWHERE;", "unknown name 'NOWHERE'"),
        ("bra %r1;", "expected a label"),
        ("L: bra L; L: ret;", "declared twice"),
        ("@%r1 bra L; L:", "the guard '%r1' is not a predicate"),
        ("@5 ret;", "expected a register"),
        (".reg .b32 %r<2>;", "declared twice"),
        (".reg .f8 %q;", "unknown or unsupported type"),
        (".reg .v4 .f32 %q;", "unsupported vector register"),
        ("bar.sync;", "takes 1 operands"),
        ("bar.sync 0, 33;", "not a multiple of 32"),
        ("bar.red.xor.pred %p1, 0, %p1;", "unsupported 'bar.red.xor.pred'"),
        ("shfl.bfly.b32 %r1, %r2, 1, 31;", "unsupported 'shfl.bfly.b32'"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f1,%f2,%f3,%f4},{%r1,%r2,%r3,%r4},{%r5,%r6},{%f1,%f2,%f3,%f4};", "unsupported 'mma"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3},{%r1,%r2,%r3,%r4},{%r5,%r6},{%f1,%f2,%f3,%f4};", "expected a vector of 4"),
        ("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1,%r2,%r3}, [%r4];", "unsupported 'ldmatrix"),
        ("cp.async.cg.shared.global [%r1], [%d1], 8;", "copy size 8 of '.cg'"),
        ("cp.async.ca.shared.global [%r1], [%d1], %r2;", "must be an integer literal"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], [%r2];", "unsupported 'cp.async.bulk.tensor"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [%r1], 16;", "unsupported 'cp.reduce"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4},{%r1,%r2,%r3,%r4},{%r5,%r6,%r7,%r8},{%f1,%f2,%f3,%f4},%r1,0;", "sparse matrices"),
        ("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r1,%r2,%r3,%r4},{%r1,%r2},{%r1,%r2},{%r1,%r2,%r3,%r4};", "unsupported 'mma"),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.f32.f16.f16.f32 {%f1,%f2,%f3,%f4},{%r1,%r2,%r3,%r4},{%r5,%r6},{%f1,%f2,%f3,%f4};", "unsupported 'mma"),
        ("wmma.load.a.sync.aligned.row.m16n16k4.global.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%d1], 16;", "unsupported 'wmma"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 {%r1}, {%r1}, {%r1}, {%r1};", "unsupported 'wmma"),
        ("mbarrier.frob.shared.b64 [%r1];", "unsupported 'mbarrier"),
        ("add.cc.u16 %h1, %h2, %h3;", "unsupported 'add.cc.u16'"),
        ("madc.wide.u32 %d1, %r2, %r3, %d1;", "unsupported 'madc"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;", "unknown or unsupported instruction"),
        ("atom.global.mul.u32 %r1, [%d1], %r2;", "unsupported 'atom.global.mul.u32'"),
        ("atom.local.add.u32 %r1, [%d1], %r2;", "unsupported"),
        ("red.global.cas.b32 [%d1], %r1, %r2;", "unsupported"),
        ("call foo;", "unknown name 'foo'"),
        ("call k, (%d1);", "kernel and cannot be called"),
        ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "not within 0 to 255"),
        ("prmt.b32.zz %r1, %r2, %r3, %r4;", "unsupported mode"),
        ("{" * 100, "nested deeper"),
    ],
)  # fmt: skip
def test_bodies(body, message):
    with pytest.raises(PtxError) as caught:
        load(in_kernel(body))
    assert message in caught.value.message
    expected = {"expected ';'": (8,), "unclosed": (7,)}
    assert caught.value.line in next((v for k, v in expected.items() if message == k), (7,))


def test_recursion_is_refused():
    text = (
        HEADER
        + ".func f(.reg .b32 %a) {\ncall f, (%a);\nret; }\n.entry k() { .reg .b32 %x; mov.b32 %x, 1; call f, (%x); ret; }"
    )
    with pytest.raises(PtxError, match="recursive call of 'f'") as caught:
        load(text)
    assert caught.value.line == 5


def test_expansion_is_bounded():
    """Thirty functions that each call the next one twice: a billion instructions when expanded."""
    text = HEADER + ".func f30() { ret; }\n"
    text += "".join(
        f".func f{i}() {{ call f{i + 1}; call f{i + 1}; ret; }}\n" for i in range(29, 0, -1)
    )
    with pytest.raises(PtxError, match="instructions with calls expanded"):
        load(text + ".entry k() { call f1; ret; }")


def test_harmless_directives_are_skipped():
    text = """.version 8.0
    .target sm_80, debug
    .address_size 64
    .file 1 "a.cu"
    .section .debug_str { .b8 1, 2 }
    .visible .entry k(.param .u64 .ptr .global .align 16 o) .maxntid 32, 1, 1 .minnctapersm 2
    { .pragma "nounroll"; .loc 1 2 3, function_name L, inlined_at 1 2 3
      .reg .b64 %d; ; ld.param.u64 %d, [o]; prefetch.global.L2 [%d]; fence.acq_rel.gpu; membar.cta; nanosleep.u32 5;
      ret; }"""
    kernel = load(text)["k"]
    assert (kernel.maxntid, kernel.reqntid, kernel.static_smem) == ((32, 1, 1), None, 0)
    assert [(p.name, p.type) for p in kernel.params] == [("o", "u64")]
