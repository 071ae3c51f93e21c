"""The assembler gives a cubin with its statistics, or messages that point at the printing op."""

import pytest

from prism.codegen.assembler import AssemblerError, AssemblerMessage, assemble, map_error_to_op

PTX = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{
  .reg .b64 %rd<3>;
  .reg .f32 %f<3>;
  .shared .align 16 .b8 sm[1024];
  ld.param.u64 %rd1, [a];
  ld.global.f32 %f1, [%rd1];
  st.shared.f32 [sm], %f1;
  bar.sync 0;
  ld.shared.f32 %f2, [sm+4];
  st.global.f32 [%rd1], %f2;
  ret;
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100"])
def test_statistics(arch: str):
    result = assemble(PTX, arch, "k")
    assert result.cubin[:4] == b"\x7fELF"
    assert result.smem_bytes == 1024
    assert result.spill_bytes == 0
    assert 4 <= result.registers <= 32


def many_values() -> str:
    # 300 values alive at once do not fit into the 255 registers that a thread may have.
    body = [f"  ld.volatile.global.f32 %f{k}, [%rd1+{4 * k}];" for k in range(300)]
    # The sum starts from the last load, so that no value can be used before all are there.
    body += ["  ld.volatile.global.f32 %f300, [%rd1];"]
    body += [f"  fma.rn.f32 %f300, %f300, %f300, %f{k};" for k in range(300)]
    ptx = PTX.replace("%f<3>", "%f<301>").replace("{\n", ".maxntid 256\n{\n")
    ptx = ptx.replace("  st.shared.f32 [sm], %f1;\n", "\n".join([*body, "mov.f32 %f2, %f300;\n"]))
    return ptx.replace("  ld.shared.f32 %f2, [sm+4];\n", "")


def test_spills_are_counted():
    assert assemble(many_values(), "sm_80", "k").spill_bytes >= 4 * (300 - 255)


@pytest.mark.parametrize("blocks", [2, 4])
def test_registers_leave_room_for_blocks(blocks: int):
    result = assemble(many_values(), "sm_80", "k", min_blocks_per_sm=blocks)
    assert result.registers * 256 * blocks <= 65536


def test_errors_point_at_lines_and_origins():
    bad = PTX.replace("st.global.f32", "st.glbal.f32").replace(
        "ld.global.f32 %f1", "ld.global.f32 %f9"
    )
    origins = [f"op {line}" for line in range(1, bad.count("\n") + 1)]
    with pytest.raises(AssemblerError) as caught:
        assemble(bad, "sm_80", "k", origins)
    lines = [message.ptx_line for message in caught.value.messages]
    assert lines == sorted(lines)
    assert {message.origin for message in caught.value.messages} == {"op 10", "op 14"}
    assert "PTX line 10: " in str(caught.value)
    assert "(printed by `op 10`)" in str(caught.value)


def test_syntax_error_has_a_line():
    with pytest.raises(AssemblerError) as caught:
        assemble(PTX.replace("bar.sync 0;", "bar.sync 0"), "sm_80", "k")
    assert [message.ptx_line for message in caught.value.messages] == [13]


@pytest.mark.parametrize(
    ("ptx", "arch", "name", "message"),
    [
        (PTX, "sm_999", "k", "architecture 'sm_999'"),
        (PTX.replace("7.0", "7.8").replace("sm_80", "sm_90"), "sm_80", "k", "SM version"),
        (PTX, "sm_80", "other", "no entry function 'other'"),
        ("", "sm_80", "k", "cannot assemble 'k'"),
        (PTX.replace("ret;", "\0ret;"), "sm_80", "k", "PTX line 15: NUL character"),
    ],
)
def test_refusals(ptx: str, arch: str, name: str, message: str):
    with pytest.raises(AssemblerError, match=message):
        assemble(ptx, arch, name)


def test_unknown_line_keeps_the_message():
    assert map_error_to_op(7, "m", ["a", "b"]) == AssemblerMessage(7, "m")
    assert map_error_to_op(2, "m", ["a", "b"]) == AssemblerMessage(2, "m", "b")
    assert map_error_to_op(1, "m", [""]) == AssemblerMessage(1, "m")
