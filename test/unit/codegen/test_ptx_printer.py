"""Exact PTX of small kernels, and where registers are shared."""

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, StringAttr
from xdsl.parser import Parser

from prism.codegen.assembler import AssemblerError, assemble
from prism.codegen.emit import emit_kernel
from prism.codegen.ptx_printer import print_kernel
from prism.dialects.cuda import Cuda, KernelOp

HEADER = (
    '(%x: !cuda.ptr<global>) grid [1, 1, 1] block 32 shared {shared} target "sm_80" version "7.0"'
)


def parse(body: str, shared: int = 0) -> KernelOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Cuda)
    text = f"cuda.kernel @k0{HEADER.format(shared=shared)} {{ {body} cuda.return }}"
    (kernel,) = Parser(context, text).parse_module().ops
    kernel.verify()
    assert isinstance(kernel, KernelOp)
    return kernel


def lines(body: str, shared: int = 0) -> list[str]:
    """The lines after the parameter's."""
    text = print_kernel(parse(body, shared)).text
    return [line.strip() for line in text.split("cvta.to.global.u64 %rd1, %rd1;\n")[1].splitlines()]


def test_whole_kernel():
    printed = print_kernel(
        parse("%c = cuda.constant 7 : i32 cuda.store %c : i32 to <global> %x[4]", 64)
    )
    assert printed.text == (
        ".version 7.0\n"
        ".target sm_80\n"
        ".address_size 64\n"
        ".visible .entry k0(\n"
        "  .param .u64 .ptr .global .align 16 k0_param_0\n"
        ")\n"
        ".reqntid 32, 1, 1\n"
        "{\n"
        "  .reg .b32 %r<2>;\n"
        "  .reg .b64 %rd<2>;\n"
        "  .shared .align 128 .b8 k0_shared[64];\n"
        "  ld.param.u64 %rd1, [k0_param_0];\n"
        "  cvta.to.global.u64 %rd1, %rd1;\n"
        "  mov.b32 %r1, 7;\n"
        "  st.global.b32 [%rd1+4], %r1;\n"
        "  ret;\n"
        "}\n"
    )
    assert len(printed.origins) == len(printed.text.splitlines())
    assert printed.origins[-4:] == [
        "%c = cuda.constant 7 : i32",
        "cuda.store %c : i32 to <global> %x[4]",
        "cuda.return",
        "cuda.kernel @k0",
    ]


def test_shared_memory_beyond_48_kib_is_dynamic():
    assert ".shared .align 128 .b8 k0_shared[49152];" in print_kernel(parse("", 49152)).text
    kernel = emit_kernel(parse("", 49153))
    assert ".extern .shared .align 128 .b8 k0_shared[];" in kernel.ptx
    assert (kernel.static_smem, kernel.dynamic_smem) == (0, 49153)


def test_predicated_load_is_zero_elsewhere():
    body = """
      %t = cuda.tid.x
      %p = cuda.setp.lt.s32 %t, %t
      %a, %b = cuda.load <global> %x[8] if %p -> f32, f32
      cuda.store %a : f32 to <global> %x if %p"""
    assert lines(body)[2:6] == [
        "mov.f32 %f1, 0f00000000;",
        "mov.f32 %f2, 0f00000000;",
        "@%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8];",
        "@%p1 st.global.f32 [%rd1], %f1;",
    ]


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        ("1.0", "0f3F800000"),
        ("-0.0", "0f80000000"),
        ("0.1", "0f3DCCCCCD"),
        ("0x7F800000", "0f7F800000"),
    ],
)
def test_float_literals_keep_all_bits(value, literal):
    assert lines(f"%c = cuda.constant {value} : f32")[0] == f"mov.f32 %f1, {literal};"


def test_warp_instructions():
    body = """
      %s = cuda.shared.base
      %a0, %a1, %a2, %a3 = cuda.ldmatrix trans <shared> %s[16] x 4
      %b0, %b1 = cuda.ldmatrix <shared> %s x 2
      %z = cuda.constant 0.0 : f32
      %d0, %d1, %d2, %d3 = cuda.mma %a0, %a1, %a2, %a3 * %b0, %b1 + %z, %z, %z, %z
      %e = cuda.shuffle %d0 xor 4
      cuda.barrier"""
    assert lines(body, 64) == [
        "mov.u32 %r1, k0_shared;",
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r2, %r3, %r4, %r5}, [%r1+16];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r6, %r7}, [%r1];",
        "mov.f32 %f1, 0f00000000;",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, "
        "{%r2, %r3, %r4, %r5}, {%r6, %r7}, {%f1, %f1, %f1, %f1};",
        "shfl.sync.bfly.b32 %f6, %f2, 4, 31, 0xffffffff;",
        "bar.sync 0;",
        "ret;",
        "}",
    ]


LOOP = """
  %z = cuda.constant 0.0 : f32
  %w = cuda.constant 1.0 : f32
  %r{results} = cuda.for %i = 0 to 3 step 1 carry ({carried}) {{ {body} }}
  cuda.store %r : f32 to <global> %x"""


def run(lab, body: str) -> float:
    (found,) = lab.simulate(emit_kernel(parse(body)), [], [np.zeros(1, np.float32)])
    return float(found[0])


def test_carried_value_is_computed_in_place(lab):
    body = LOOP.format(
        results="",
        carried="%a = %z : f32",
        body="%b = cuda.add.f32 %a, %w cuda.yield %b : f32",
    )
    assert "add.f32 %f3, %f3, %f2;" in lines(body)
    assert run(lab, body) == 3.0


def test_carried_value_that_is_needed_later_is_not(lab):
    """%c reads the old %a after %b, the new one, is computed."""
    body = LOOP.format(
        results=", %s",
        carried="%a = %w : f32, %t = %z : f32",
        body="%b = cuda.add.f32 %a, %a %c = cuda.add.f32 %t, %a cuda.yield %b, %c : f32, f32",
    )
    assert run(lab, body) == 8.0
    swapped = body.replace("store %r", "store %s")
    assert run(lab, swapped) == 7.0


def test_carried_values_that_swap(lab):
    body = LOOP.format(
        results=", %s", carried="%a = %z : f32, %b = %w : f32", body="cuda.yield %b, %a : f32, f32"
    )
    assert run(lab, body) == 1.0
    assert run(lab, body.replace("store %r", "store %s")) == 0.0


def test_inner_loop_carries_in_the_same_register(lab):
    body = LOOP.format(
        results="",
        carried="%a = %z : f32",
        body="""%b = cuda.for %j = 0 to 4 step 2 carry (%c = %a : f32) {
            %d = cuda.add.f32 %c, %w cuda.yield %d : f32 } cuda.yield %b : f32""",
    )
    assert run(lab, body) == 6.0
    assert sum(line.startswith("mov.f32") for line in lines(body)) == 3


def test_inner_loop_that_reads_the_outer_value_has_its_own(lab):
    """%a is read in the inner body, so the inner loop must not write its register."""
    body = LOOP.format(
        results="",
        carried="%a = %w : f32",
        body="""%b = cuda.for %j = 0 to 2 step 1 carry (%c = %a : f32) {
            %d = cuda.add.f32 %c, %a cuda.yield %d : f32 } cuda.yield %b : f32""",
    )
    assert run(lab, body) == 27.0


def test_if_skips_its_body(lab):
    body = """
      %t = cuda.tid.x
      %one = cuda.constant 1 : i32
      %p = cuda.setp.lt.s32 %t, %one
      %q = cuda.setp.lt.s32 %one, %t
      %v = cuda.constant 5.0 : f32
      %u = cuda.constant 6.0 : f32
      cuda.if %p { cuda.store %v : f32 to <global> %x }
      cuda.if %q { cuda.if %p { cuda.store %u : f32 to <global> %x } }"""
    assert run(lab, body) == 5.0


def test_assembler_errors_name_the_op():
    """The PTX version is too old for the target."""
    kernel = parse("cuda.barrier")
    kernel.properties["target"] = StringAttr("sm_90")
    emitted = emit_kernel(kernel)
    with pytest.raises(AssemblerError) as error:
        assemble(emitted.ptx, "sm_90", "k0", line_origins=emitted.origins)
    assert error.value.messages[0].origin == "cuda.kernel @k0"
