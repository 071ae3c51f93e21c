"""Seeded faults: each is found, and named with file, line, block and thread."""

import numpy as np
import pytest

from prism.simulator import (
    BudgetError,
    DeadlockError,
    DivergenceError,
    LaunchError,
    MisalignedAccessError,
    OutOfBoundsError,
    RaceError,
    Simulator,
    SimulatorError,
    UninitializedReadError,
    UseAfterFreeError,
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
    "byte read of a written word": ("st.shared.u32 [%s], %t;\nld.shared.u8 %v, [%a+3];", "read", "warp 1 wrote", (0, 0, 0)),
    "byte write of a read word": ("FILL; ld.shared.u32 %v, [%a];\nst.shared.u8 [%s+1], %t;", "write", "warp 1 read", (0, 0, 0)),
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
    other = caught.value.other_line
    assert other is not None
    assert f"the place at line {other}, thread {caught.value.other_thread}, with" in str(
        caught.value
    )
    verb = {"wrote": ("st", "red"), "read": ("ld",)}[verb.split()[-1]]
    assert any(f"{name}.shared" in text[other - 1] for name in verb)
    # The other thread is of another warp.
    assert (caught.value.other_thread[0] < 32) != (thread[0] < 32)
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
    # Neighbouring bytes of two warps.
    launch("mov.u32 %s, one; xor.b32 %v, %t, 32; shl.b32 %v, %v, 1; and.b32 %v, %v, 63; shr.u32 %b, %t, 5; add.u32 %s, %s, %v; add.u32 %s, %s, %b; st.shared.u8 [%s], %t; ld.shared.u8 %v, [%s];", block=64)  # fmt: skip
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


def test_two_warps_write_at_once():
    """Different values race; the same value, or lanes of one warp, do not."""
    with pytest.raises(RaceError, match="another warp writes another value") as caught:
        launch(racing("setp.eq.u32 %p, %t, 9;\nst.shared.u32 [one], %t;"), block=64)
    text = (HEADER + FRAME.replace("BODY", "\n" + racing("\n"))).split("\n")
    assert caught.value.line <= len(text)
    assert caught.value.block == (0, 0, 0)
    launch(racing("st.shared.u32 [one], 7;"), block=64)
    launch(racing("st.shared.v4.u32 [one], {-1, -1, -1, -1};"), block=64)
    launch("st.shared.u32 [one], %t;", block=32)


def test_reads_of_empty_buffers():
    simulator = Simulator()
    body = "add.s64 %q, %o, %q; LOAD\nst.global.u32 [%q], %v;"
    text = HEADER + FRAME.replace("BODY", body)
    write = simulator.load(text.replace("LOAD", ""), "w.ptx")["k"]
    read = simulator.load(text.replace("LOAD", "\nld.global.u32 %v, [%q];"), "r.ptx")["k"]
    out = simulator.empty((2, 32), np.uint32)
    write.launch(1, 32, [out, 0])
    read.launch(1, 32, [out, 0])
    with pytest.raises(
        UninitializedReadError, match=r"global read of 4 bytes at .* nothing wrote"
    ) as caught:
        read.launch(2, 32, [out, 0])
    assert (caught.value.file, caught.value.block, caught.value.thread) == (
        "r.ptx",
        (1, 0, 0),
        (0, 0, 0),
    )
    out.write(np.ones((2, 32)))
    read.launch(2, 32, [out, 0])
    for instruction in (
        "red.global.add.u32 [%o], 1;",
        ".reg .b32 %x; mov.u32 %x, one; cp.async.ca.shared.global [%x], [%o], 4;",
    ):
        kernel = simulator.load(HEADER + FRAME.replace("BODY", instruction))["k"]
        with pytest.raises(UninitializedReadError):
            kernel.launch(1, 32, [simulator.empty(1, np.uint32), 0])
    loose = Simulator(sanitize=False)
    loose.load(text.replace("LOAD", "ld.global.u32 %v, [%q];"))["k"].launch(
        1, 32, [loose.empty(32, "u4"), 0]
    )


def test_an_endless_loop_is_found():
    with pytest.raises(BudgetError, match="an endless loop") as caught:
        launch("L: add.u32 %v, %v, 1;\nbra L;", budget=1000)
    assert caught.value.line in (12, 13)
    assert (caught.value.block, caught.value.thread) == ((0, 0, 0), (0, 0, 0))


BARRIERS = {
    "half a warp": ("setp.lt.u32 %p, %t, 16;\n@%p bar.sync 0;", DivergenceError, 32),
    "in a divergent branch": ("setp.lt.u32 %p, %t, 16; @%p bra L;\nbar.sync 0; bra M;\nL: bar.sync 0; M:", DivergenceError, 32),
    "one of two warps, ended or not": ("setp.lt.u32 %p, %t, 32; @%p bra L;\nbar.sync 1; bra M;\nL: bar.sync 0; M:", DeadlockError, 64),
    "too many expected": ("\nbar.sync 1, 96;", DeadlockError, 64),
}  # fmt: skip


@pytest.mark.parametrize("name", BARRIERS)
def test_barriers_that_threads_miss(name):
    body, kind, block = BARRIERS[name]
    with pytest.raises(kind) as caught:
        launch(body, block=block)
    text = (HEADER + FRAME.replace("BODY", "\n" + body)).split("\n")
    assert "bar.sync" in text[caught.value.line - 1]
    assert caught.value.file == "fault.ptx"
    assert caught.value.block == (0, 0, 0)
    assert caught.value.thread is not None


def test_blocks_that_wait_for_later_ones():
    """A barrier over 1000 blocks: beyond what runs at once, unless the launch is cooperative."""
    body = "@%p bra L; red.global.add.u32 [%o], 1; bra L;\nL: ld.volatile.global.u32 %v, [%o]; setp.lt.u32 %p, %v, 1000; @%p bra L;"
    text = HEADER + FRAME.replace("BODY", "setp.ne.u32 %p, %t, 0;" + body)
    for cooperative in (True, False):
        simulator = Simulator(budget=20000)
        args = [simulator.alloc(np.zeros(1, "u4")), 0]
        kernel = simulator.load(text)["k"]
        if cooperative:
            kernel.launch(1000, 32, args, cooperative=True)
        else:
            with pytest.raises(BudgetError):
                kernel.launch(1000, 32, args)
    with pytest.raises(LaunchError, match="too many to run at once"):
        kernel.launch(10**7, 32, args, cooperative=True)


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
        with pytest.raises(UseAfterFreeError, match="byte 0 of a buffer that was freed"):
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
