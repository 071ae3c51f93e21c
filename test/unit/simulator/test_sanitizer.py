"""Seeded faults: each is found, and named with file, line, block and thread."""

import numpy as np
import pytest

from prism.simulator import (
    DivergenceError,
    MisalignedAccessError,
    OutOfBoundsError,
    RaceError,
    Simulator,
    SimulatorError,
    UninitializedReadError,
)

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
FRAME = """.entry k(.param .u64 o, .param .u64 n) {
  .reg .b64 %o, %n, %q, %z; .reg .b32 %t, %b, %v, %s; .reg .pred %p;
  .shared .align 16 .b8 one[256];
  .shared .align 16 .b8 two[256];
  .local .align 8 .b8 mine[16];
  ld.param.u64 %o, [o]; ld.param.u64 %n, [n]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;
  mad.lo.u32 %s, %b, 32, %t; mul.wide.u32 %q, %s, 4; mov.b32 %v, 0;
  BODY
  ret; }"""


def launch(body, grid=2, block=32, size=64, **options):
    simulator = Simulator(**options)
    text = HEADER + FRAME.replace("BODY", "\n" + body)
    out = simulator.alloc(np.zeros(size, np.uint32))
    simulator.load(text, "fault.ptx")["k"].launch(grid, block, [out, 0])
    return out.numpy()


FAULTS = {
    "global past the end": ("add.s64 %q, %o, %q;\nst.global.u32 [%q+4], %v;", OutOfBoundsError, 1, (1, 0, 0), (31, 0, 0)),
    "global before the start": ("add.s64 %q, %o, %q;\nld.global.u32 %v, [%q+-4];", OutOfBoundsError, 1, (0, 0, 0), (0, 0, 0)),
    "global null": ("\nld.global.u32 %v, [%n];", OutOfBoundsError, 1, (0, 0, 0), (0, 0, 0)),
    "vector across the end": ("add.s64 %q, %o, %q; and.b64 %q, %q, -16;\nsetp.eq.u32 %p, %s, 63; @%p add.s64 %q, %q, 16;\n@%p ld.global.v2.u32 {%v, _}, [%q+-4];", OutOfBoundsError, 2, (1, 0, 0), (31, 0, 0)),
    "only in active lanes": ("add.s64 %q, %o, %q; setp.eq.u32 %p, %s, 40;\n@%p ld.global.u32 %v, [%q+1000];", OutOfBoundsError, 1, (1, 0, 0), (8, 0, 0)),
    "generic nowhere": ("mov.u64 %z, 0x0500000000000000;\nld.u32 %v, [%z];", OutOfBoundsError, 1, (0, 0, 0), (0, 0, 0)),
    "global misaligned": ("\nst.global.v2.u32 [%o+4], {%v, %v};", MisalignedAccessError, 1, (0, 0, 0), (0, 0, 0)),
    "shared misaligned": ("mov.u32 %s, one; add.u32 %s, %s, %t;\nst.shared.u16 [%s], 0;", MisalignedAccessError, 1, (0, 0, 0), (1, 0, 0)),
    "shared past the end": ("mov.u32 %s, two; mad.lo.u32 %s, %t, 16, %s;\nst.shared.u32 [%s], 0;", OutOfBoundsError, 1, (0, 0, 0), (16, 0, 0)),
    "shared between variables": ("mov.u32 %s, one; mad.lo.u32 %s, %t, 8, %s;\nst.shared.u32 [%s+16], 0;", OutOfBoundsError, 1, (0, 0, 0), (30, 0, 0)),
    "shared negative": ("mov.u32 %s, one; sub.u32 %s, %s, %t;\nst.shared.u8 [%s], 0;", OutOfBoundsError, 1, (0, 0, 0), (1, 0, 0)),
    "shared unwritten": ("mov.u32 %s, two; mad.lo.u32 %s, %t, 4, %s; setp.ne.u32 %p, %t, 9;\n@%p st.shared.u32 [%s], 0; bar.sync 0;\nld.shared.u32 %v, [%s];", UninitializedReadError, 2, (0, 0, 0), (9, 0, 0)),
    "shared partly written": ("mov.u32 %s, two; mad.lo.u32 %s, %t, 4, %s;\nst.shared.u16 [%s], 0; bar.sync 0;\nld.shared.u32 %v, [%s];", UninitializedReadError, 2, (0, 0, 0), (0, 0, 0)),
    "shared unwritten in one block": ("mov.u32 %s, two; mad.lo.u32 %s, %t, 4, %s; setp.eq.u32 %p, %b, 0;\n@%p st.shared.u32 [%s], 0; bar.sync 0;\nld.shared.u32 %v, [%s];", UninitializedReadError, 2, (1, 0, 0), (0, 0, 0)),
    "shared unwritten, atomic": ("\nred.shared.add.u32 [two], 1;", UninitializedReadError, 1, (0, 0, 0), (0, 0, 0)),
    "ldmatrix unwritten": (".reg .b32 %w; mov.u32 %s, two; mad.lo.u32 %s, %t, 16, %s;\nsetp.lt.u32 %p, %t, 7; @%p st.shared.v2.u32 [%s], {%v, %v};\n@%p st.shared.v2.u32 [%s+8], {%v, %v}; bar.warp.sync -1;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%w}, [%s];", UninitializedReadError, 3, (0, 0, 0), (7, 0, 0)),
    "local past the end": ("mov.u64 %z, mine;\nst.local.u64 [%z+16], 0;", OutOfBoundsError, 1, (0, 0, 0), (0, 0, 0)),
    "shuffle from an ended lane": ("setp.ge.u32 %p, %t, 20; @%p ret;\nshfl.sync.down.b32 %v, %t, 4, 31, -1;", DivergenceError, 1, (0, 0, 0), (16, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_seeded_fault(name):
    body, kind, offset, block, thread = FAULTS[name]
    with pytest.raises(SimulatorError) as caught:
        launch(body)
    error = caught.value
    assert type(error) is kind
    first = (HEADER + FRAME).split("\n").index("  BODY") + 2
    assert (error.file, error.line) == ("fault.ptx", first + offset)
    assert (error.block, error.thread) == (block, thread)
    assert str(error).startswith(f"fault.ptx:{error.line}: error: ")


RACES = {
    "read of another warp's word": ("st.shared.u32 [%s], %t;\nld.shared.u32 %v, [%a];", "read", "warp 1 wrote", (0, 0, 0)),
    "write to what another warp reads": ("FILL; ld.shared.u32 %v, [%a];\nst.shared.u32 [%s], %t;", "write", "warp 1 read", (0, 0, 0)),
    "write after several read": ("FILL; ld.shared.u32 %v, [one]; setp.eq.u32 %p, %t, 40;\n@%p st.shared.u32 [one], %t;", "write", "several warps read", (40, 0, 0)),
    "part of a vector": ("setp.eq.u32 %p, %t, 63; @%p st.shared.u16 [one+6], 1; setp.eq.u32 %p, %t, 2;\n@%p st.shared.v2.u32 [one], {%t, %t};", "write", "warp 1 wrote", (2, 0, 0)),
    "atomic and plain read": ("FILL; red.shared.add.u32 [%s], 1;\nld.shared.u32 %v, [%a];", "read", "an atomic of warp 1 wrote", (0, 0, 0)),
    "many atomics and plain read": ("FILL; red.shared.add.u32 [one], 1;\nld.shared.u32 %v, [one];", "read", "several atomics wrote", (0, 0, 0)),
    "several read, then atomic": ("FILL; ld.shared.u32 %v, [one];\nred.shared.add.u32 [one], 1;", "atomic", "several warps read", (0, 0, 0)),
    "plain write and atomic": ("FILL; st.shared.u32 [%s], 1;\nred.shared.add.u32 [%a], 1;", "atomic", "warp 1 wrote", (0, 0, 0)),
    "in the second interval": ("FILL; st.shared.u32 [%s], 1; bar.sync 0; ld.shared.u32 %v, [%a];\nst.shared.u32 [%s], 2;", "write", "warp 1 read", (0, 0, 0)),
    "in one block only": ("FILL; setp.eq.u32 %p, %b, 1; mov.u32 %v, %s; @%p mov.u32 %v, %a; st.shared.u32 [%s], 1;\nld.shared.u32 %v, [%v];", "read", "warp 1 wrote", (0, 0, 0)),
}  # fmt: skip
# %s is the thread's own word, %a that of its partner in the other warp.
SETUP = """.reg .b32 %a; mov.u32 %s, one; mad.lo.u32 %s, %t, 4, %s; xor.b32 %v, %t, 32;
  mov.u32 %a, one; mad.lo.u32 %a, %v, 4, %a;
  """


def racing(body):
    return SETUP + body.replace("FILL", "st.shared.u32 [%s], %t; bar.sync 0")


@pytest.mark.parametrize("name", RACES)
def test_races(name):
    body, what, verb, thread = RACES[name]
    with pytest.raises(RaceError, match=f"shared {what} races: {verb} the place") as caught:
        launch(racing(body), block=64)
    text = (HEADER + FRAME.replace("BODY", "\n" + racing(body))).split("\n")
    assert text[caught.value.line - 1].startswith(body.split("\n")[1].split(";")[0])
    assert caught.value.thread == thread
    assert caught.value.block == ((1, 0, 0) if name == "in one block only" else (0, 0, 0))
    # A barrier before the second access makes it right.
    first, second = racing(body).rsplit("\n", 1)
    launch(first + "\nbar.sync 0;" + second, block=64)


def test_orders_that_are_no_race():
    """One warp alone; atomics among themselves; a barrier for part of the block ends the watch."""
    launch(
        racing("FILL; st.shared.u32 [%s], 1; ld.shared.u32 %v, [%s]; st.shared.u32 [%s], 2;"),
        block=64,
    )
    launch(racing("FILL; red.shared.add.u32 [one], 1; red.shared.add.u32 [one], 1;"), block=64)
    launch(
        racing(
            "FILL; red.shared.add.u32 [%s], 1; ld.shared.u32 %v, [%s]; st.shared.u32 [%s], %v; red.shared.add.u32 [%s], 1;"
        ),
        block=64,
    )
    launch(racing("FILL; st.shared.u32 [%s], 1; bar.sync 1, 64; ld.shared.u32 %v, [%a];"), block=64)
    part = "setp.ge.u32 %p, %t, 64; @%p bra L; st.shared.u32 [%s], 1; bar.sync 1, 64; ld.shared.u32 %v, [%a]; L:"
    with pytest.raises(OutOfBoundsError):
        launch(racing(part + "@%p ld.shared.u32 %v, [two+256];"), block=96, grid=1, size=96)
    launch(racing(part), block=96, grid=1, size=96)


def test_many_intervals():
    """Tags start anew after a thousand barriers; a race is still found."""
    body = "FILL; mov.b32 %v, 0;\nL: bar.sync 0; add.u32 %v, %v, 1; setp.lt.u32 %p, %v, 1100; @%p bra L; st.shared.u32 [%s], 1;\nld.shared.u32 %v, [%a];"
    with pytest.raises(RaceError, match="warp 1 wrote"):
        launch(racing(body), block=64)


def test_a_chunk_of_the_grid_knows_its_blocks():
    """Block 700 of 1000 is in a later chunk than the first."""
    body = "setp.eq.u32 %p, %s, 22405; @%p mov.b64 %o, 8;\n@%p st.global.u32 [%o], %v;"
    with pytest.raises(OutOfBoundsError) as caught:
        launch(body, grid=1000)
    assert (caught.value.block, caught.value.thread) == ((700, 0, 0), (5, 0, 0))


def test_correct_accesses_give_no_report():
    """The same kernel, each thread within its rights; also the last byte of everything."""
    body = """mov.u32 %s, two; mad.lo.u32 %s, %t, 8, %s; st.shared.u32 [%s], %t; st.shared.u32 [%s+4], %t;
    bar.sync 0; ld.shared.v2.u32 {%v, _}, [%s]; add.s64 %q, %o, %q; st.global.u32 [%q], %v;
    st.shared.u8 [one+255], 1; ld.shared.u8 %v, [one+255]; st.local.u64 [mine+8], 3; ld.local.u64 %z, [mine+8];"""
    assert launch(body).tolist() == [*range(32), *range(32)]


def test_sanitizer_off_still_checks_bounds():
    body, *_ = FAULTS["shared unwritten"]
    launch(body, sanitize=False)
    with pytest.raises(OutOfBoundsError):
        launch(FAULTS["global past the end"][0], sanitize=False)


def test_use_after_free_and_foreign_buffers():
    simulator = Simulator()
    text = HEADER + FRAME.replace("BODY", "st.global.u32 [%o], %v;")
    kernel = simulator.load(text, "fault.ptx")["k"]
    first, second = simulator.alloc(np.zeros(4, "u4")), simulator.alloc(np.zeros(4, "u4"))
    kernel.launch(1, 32, [first, 0])
    address = first.address
    first.free()
    for argument in (first, address):
        with pytest.raises(OutOfBoundsError):
            kernel.launch(1, 32, [argument, 0])
    kernel.launch(1, 32, [second, 0])
    with pytest.raises(SimulatorError, match="freed"):
        first.numpy()
    with pytest.raises(SimulatorError, match="another simulator"):
        kernel.launch(1, 32, [Simulator().alloc(np.zeros(4)), 0])


def test_unwritten_registers_hold_poison():
    """A sum that forgets to start at zero is not silently right."""
    simulator = Simulator()
    text = (
        HEADER
        + ".entry k(.param .u64 o) { .reg .b64 %o; .reg .f32 %f;\nld.param.u64 %o, [o]; add.f32 %f, %f, 1.0; st.global.f32 [%o], %f; ret; }"
    )
    out = simulator.alloc(np.zeros(1, "f4"))
    simulator.load(text)["k"].launch(1, 1, [out])
    assert np.isnan(out.numpy()[0])
