"""mbarrier: phases, counts, bytes, and the faults of their use."""

import numpy as np
import pytest

from prism.simulator import Simulator, SimulatorError, UninitializedReadError

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
FRAME = """.entry k(.param .u64 o) {{ .reg .b64 %o, %q, %s, %u, %g; .reg .b32 %t, %v, %w; .reg .pred %p, %z;
  .shared .align 8 .b64 bar; .shared .align 16 .b8 sm[1024];
  ld.param.u64 %o, [o]; mov.u32 %t, %tid.x; mul.wide.u32 %q, %t, 4; add.s64 %q, %q, %o;
  setp.eq.u32 %z, %t, 0; mov.b32 %v, 0; cvta.shared.u64 %g, %u;
  @%z mbarrier.init.shared.b64 [bar], {count}; bar.sync 0;
  {body}
  st.global.u32 [%q], %v; ret; }}"""


def launch(body, count=1, block=64):
    simulator = Simulator(budget=200_000)
    out = simulator.alloc(np.zeros(block, "u4"))
    text = HEADER + FRAME.format(body=body, count=count)
    simulator.load(text, "m.ptx")["k"].launch(1, block, [out])
    return out.numpy()


def test_phases_alternate():
    body = """mbarrier.test_wait.parity.shared.b64 %p, [bar], 0; selp.u32 %w, 1, 0, %p; or.b32 %v, %v, %w; bar.sync 0;
    mbarrier.test_wait.parity.shared.b64 %p, [bar], 1; selp.u32 %w, 2, 0, %p; or.b32 %v, %v, %w; bar.sync 0;
    mbarrier.arrive.shared::cta.b64 %s, [bar]; bar.sync 0;
    mbarrier.test_wait.parity.shared.b64 %p, [bar], 0; selp.u32 %w, 4, 0, %p; or.b32 %v, %v, %w;
    mbarrier.test_wait.parity.shared.b64 %p, [bar], 1; selp.u32 %w, 8, 0, %p; or.b32 %v, %v, %w;
    mbarrier.test_wait.shared.b64 %p, [bar], %s; selp.u32 %w, 16, 0, %p; or.b32 %v, %v, %w;
    mbarrier.pending_count.b64 %w, %s; shl.b32 %w, %w, 8; or.b32 %v, %v, %w;"""
    # The first phase is open: parity 0 is not complete, parity 1 (of the one before) is.
    found = launch(body, count=64)
    assert ((found & 255) == 2 + 4 + 16).all()
    assert ((found >> 8) == np.arange(64, 0, -1)).all()


def test_counts_bytes_and_drops():
    """With a count of 3: two by one thread, bytes that come and go, and a drop to 2."""
    body = """@!%z bra END; mbarrier.arrive.noComplete.release.cta.shared.b64 %s, [bar], 2;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48;
    mbarrier.test_wait.parity.shared.b64 %p, [bar], 0; selp.u32 %v, 1, 0, %p;
    mbarrier.complete_tx.shared.b64 [bar], 32; mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 16;
    mbarrier.complete_tx.shared.b64 [bar], 32;
    mbarrier.test_wait.parity.shared.b64 %p, [bar], 0; selp.u32 %w, 2, 0, %p; or.b32 %v, %v, %w;
    mbarrier.arrive_drop.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 %s, [bar], 2;
    mbarrier.test_wait.shared.b64 %p, [bar], %s; selp.u32 %w, 4, 0, %p; or.b32 %v, %v, %w;
    mbarrier.arrive.shared.b64 %s, [bar], 2;
    mbarrier.try_wait.shared.b64 %p, [bar], %s, 100; selp.u32 %w, 8, 0, %p; or.b32 %v, %v, %w;
    mbarrier.inval.shared.b64 [bar]; END:"""
    assert launch(body, count=3)[0] == 2 + 4 + 8


def test_generic_addresses():
    body = "mov.u64 %u, bar; cvta.shared.u64 %g, %u; mbarrier.arrive.b64 _, [%g]; L: mbarrier.try_wait.parity.b64 %p, [%g], 0; @!%p bra L; mov.b32 %v, 7;"
    assert (launch(body, count=64) == 7).all()


def test_copies_of_threads():
    """Each thread's cp.async arrives at the object; then another thread's data is read."""
    body = """mov.u32 %w, sm; mad.lo.u32 %w, %t, 4, %w; @%z st.global.u32 [%o], 5; bar.sync 0;
    cp.async.ca.shared.global [%w], [%o], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    L: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra L;
    mov.u32 %w, sm; xor.b32 %t, %t, 33; mad.lo.u32 %w, %t, 4, %w; ld.shared.u32 %v, [%w];"""
    assert (launch(body, count=64) == 5).all()


@pytest.mark.parametrize(
    ("body", "count", "kind", "message"),
    [
        ("mbarrier.arrive.shared.b64 _, [sm];", 1, UninitializedReadError, "nothing wrote it"),
        ("st.shared.u64 [sm], 0; bar.sync 0; @%z mbarrier.arrive.shared.b64 _, [sm];", 1, SimulatorError, "holds no mbarrier"),
        ("st.shared.u64 [sm], 0; bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p, [sm], 0;", 1, SimulatorError, "holds no mbarrier"),
        ("@%z mbarrier.arrive.shared.b64 _, [bar], 2;", 1, SimulatorError, "more arrivals"),
        ("", 0, SimulatorError, "count is 1 to"),
        ("mbarrier.arrive.b64 _, [%q];", 1, SimulatorError, "lies in shared memory"),
        ("L: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra L;", 1, SimulatorError, "nothing completes"),
    ],
)  # fmt: skip
def test_faults(body, count, kind, message):
    with pytest.raises(kind, match=message) as caught:
        launch(body, count)
    assert caught.value.line is not None
    assert caught.value.block == (0, 0, 0)
