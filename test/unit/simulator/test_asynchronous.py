"""cp.async: sizes, zero fill, groups, and late completion."""

import numpy as np
import pytest

from prism.simulator import AsyncReadError, MisalignedAccessError, OutOfBoundsError, Simulator

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
SIZE = 16


def copy_kernel(copies, waits, size=SIZE, cache="cg"):
    """Each thread copies `size` bytes, waits, and stores its bytes of shared memory."""
    words = size // 4
    regs = "{" + ", ".join(f"%w{i}" for i in range(words)) + "}" if words > 1 else "%w0"
    vector = f".v{words}" if words > 1 else ""
    return f"""{HEADER}.entry k(.param .u64 o, .param .u64 g, .param .u64 c) {{
      .reg .b64 %o, %g, %c, %q; .reg .b32 %t, %a, %n, %w<4>, %s; .reg .pred %p;
      .shared .align 16 .b8 sm[2048];
      ld.param.u64 %o, [o]; ld.param.u64 %g, [g]; ld.param.u64 %c, [c]; mov.u32 %t, %tid.x; mov.u32 %s, sm;
      mul.wide.u32 %q, %t, {size}; add.s64 %o, %o, %q; add.s64 %g, %g, %q; mad.lo.u32 %a, %t, {size}, %s;
      mul.wide.u32 %q, %t, 4; add.s64 %c, %c, %q; ld.global.u32 %n, [%c]; setp.eq.u32 %p, %n, 0;
      {copies}
      {waits}
      ld.shared{vector}.b32 {regs}, [%a];
      st.global{vector}.b32 [%o], {regs}; ret; }}"""


def launch(text, counts, size=SIZE, threads=32, source=None):
    simulator = Simulator()
    data = np.arange(threads * size, dtype=np.uint8) + 1 if source is None else source
    out = simulator.alloc(np.zeros(threads * size, np.uint8))
    args = [out, simulator.alloc(data), simulator.alloc(np.asarray(counts, np.uint32))]
    report = simulator.load(text, "copy.ptx")["k"].launch(1, threads, args)
    return out.numpy(), data, report


@pytest.mark.parametrize(("cache", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
@pytest.mark.parametrize(
    "wait", ["cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;"]
)
def test_copies(cache, size, wait):
    copies = f"cp.async.{cache}.shared.global.L2::128B [%a], [%g], {size};"
    out, data, report = launch(copy_kernel(copies, wait, size), np.zeros(32), size)
    assert (out == data).all()
    assert report.global_read_bytes == 32 * size + 32 * 4
    assert report.instructions["cp.async"] >= 64


def test_source_size_fills_with_zeros():
    counts = np.arange(32) % 20
    text = copy_kernel("cp.async.cg.shared.global [%a], [%g], 16, %n;", "cp.async.wait_all;")
    out, data, report = launch(text, counts)
    keep = np.arange(16) < np.minimum(counts, 16)[:, None]
    assert (out.reshape(32, 16) == np.where(keep, data.reshape(32, 16), 0)).all()
    assert report.global_read_bytes == int(np.minimum(counts, 16).sum()) + 32 * 4


def test_ignored_source_may_be_anywhere():
    text = copy_kernel(
        "@%p add.s64 %g, %g, 1000000; cp.async.cg.shared.global [%a], [%g], 16, %p;",
        "cp.async.wait_all;",
    )
    counts = np.arange(32) % 2
    out, data, _ = launch(text, counts)
    assert (out.reshape(32, 16) == np.where(counts[:, None] == 0, 0, data.reshape(32, 16))).all()


def test_groups_complete_in_order():
    """Two groups; after wait_group 1 the first may be read and the second may not."""
    copies = """cp.async.ca.shared.global [%a], [%g], 16; cp.async.commit_group;
      cp.async.ca.shared.global [%a+1024], [%g], 16; cp.async.commit_group;"""
    out, data, _ = launch(copy_kernel(copies, "cp.async.wait_group 1;"), np.zeros(32))
    assert (out == data).all()
    with pytest.raises(
        AsyncReadError, match=r"copy\.ptx:\d+: .*not waited for.*thread \(0, 0, 0\)"
    ):
        launch(copy_kernel(copies, "cp.async.wait_group 1; add.u32 %a, %a, 1024;"), np.zeros(32))
    out, data, _ = launch(
        copy_kernel(copies, "cp.async.wait_group 0; add.u32 %a, %a, 1024;"), np.zeros(32)
    )
    assert (out == data).all()


@pytest.mark.parametrize("wait", ["", "cp.async.commit_group;", "cp.async.wait_group 0;"])
def test_missing_wait_or_commit(wait):
    text = copy_kernel("cp.async.cg.shared.global [%a], [%g], 16;", wait)
    with pytest.raises(AsyncReadError) as caught:
        launch(text, np.zeros(32))
    line = next(i for i, t in enumerate(text.split("\n"), 1) if "ld.shared" in t)
    assert (caught.value.line, caught.value.block, caught.value.thread) == (
        line,
        (0, 0, 0),
        (0, 0, 0),
    )


def test_groups_belong_to_threads():
    """Lower lanes commit one group more than the others, so wait_group 1 means more to them."""
    copies = """cp.async.ca.shared.global [%a], [%g], 16; cp.async.commit_group;
      @%p cp.async.commit_group;"""
    waits = "cp.async.wait_group 1; @!%p bra OUT;"
    text = copy_kernel(copies, waits).replace(" ret; }", " OUT: ret; }")
    out, data, _ = launch(text, np.arange(32) >= 16)
    assert (out[:256] == data[:256]).all()
    assert not out[256:].any()
    with pytest.raises(AsyncReadError, match=r"thread \(16, 0, 0\)"):
        launch(copy_kernel(copies, "cp.async.wait_group 1;"), np.arange(32) >= 16)


def test_addresses_are_checked():
    copy = "cp.async.cg.shared.global [%a{0}], [%g{1}], 16;"
    with pytest.raises(OutOfBoundsError, match="shared"):
        launch(copy_kernel(copy.format("+2048", ""), "cp.async.wait_all;"), np.zeros(32))
    with pytest.raises(OutOfBoundsError, match="global") as caught:
        launch(copy_kernel(copy.format("", "+16"), "cp.async.wait_all;"), np.zeros(32))
    assert caught.value.thread == (31, 0, 0)
    with pytest.raises(MisalignedAccessError, match="global"):
        launch(
            copy_kernel(copy.format("", "+8"), "cp.async.wait_all;"),
            np.zeros(32),
            source=np.zeros(1024, np.uint8),
        )
