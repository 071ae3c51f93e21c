"""Divergence, loops, early ends, barriers, fairness."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.simulator import BudgetError, DeadlockError, DivergenceError, Simulator, SimulatorError

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def launch(text, *arrays, grid=1, block=32, **options):
    simulator = Simulator(**options)
    buffers = [simulator.alloc(a) for a in arrays]
    report = simulator.load(HEADER + text, "test.ptx")["k"].launch(grid, block, buffers)
    return buffers[0].numpy(), report


def line_of(text, what):
    return next(i for i, line in enumerate((HEADER + text).split("\n"), 1) if what in line)


@settings(max_examples=15, deadline=None)
@given(values=st.lists(st.integers(0, 40), min_size=1, max_size=150))
def test_nested_ifs_in_loops_of_different_length(evaluate, values):
    """Sums over odd i below x of i, twice if divisible by 3, leaving the loop at i = 31."""
    body = """.reg .b32 %j, %r; .reg .pred %p, %q;
    mov.u32 %d, 0; mov.u32 %j, 0;
    LOOP: setp.ge.u32 %p, %j, %a; @%p bra END;
      and.b32 %r, %j, 1; setp.eq.u32 %q, %r, 0; @%q bra NEXT;
        add.u32 %d, %d, %j;
        rem.u32 %r, %j, 3; setp.ne.u32 %q, %r, 0; @%q bra AFTER;
          add.u32 %d, %d, %j;
        AFTER: setp.eq.u32 %q, %j, 31; @%q bra END;
      NEXT: add.u32 %j, %j, 1; bra LOOP;
    END:"""
    got = evaluate(body, np.array(values, np.uint32), out=np.uint32)
    expected = [sum(i * (2 if i % 3 == 0 else 1) for i in range(1, min(x, 32), 2)) for x in values]
    assert got.tolist() == expected


def test_early_returns_leave_no_store(evaluate):
    body = """.reg .pred %p; setp.eq.u32 %p, %a, 3; @%p ret; setp.eq.u32 %p, %a, 5; @%p exit;
    setp.ne.u32 %p, %a, 7; @%p bra ON; ret; ON: mul.lo.u32 %d, %a, 2;"""
    got = evaluate(body, np.arange(10, dtype=np.uint32), out=np.uint32)
    assert got.tolist() == [0, 2, 4, 0, 8, 0, 12, 0, 16, 18]


def test_switch_by_branch_table(evaluate):
    body = """JUMP: .branchtargets A0, A1, A2;
    min.u32 %d, %a, 2; brx.idx %d, JUMP;
    A0: mov.b32 %d, 100; bra.uni JOIN;
    A1: mov.b32 %d, 200; bra.uni JOIN;
    A2: mov.b32 %d, 300;
    JOIN: add.u32 %d, %d, %a;"""
    got = evaluate(body, np.arange(5, dtype=np.uint32), out=np.uint32)
    assert got.tolist() == [100, 201, 302, 303, 304]


def test_scopes_shadow_names(evaluate):
    body = """.reg .b32 %x; mov.b32 %x, 1;
    { .reg .b32 %x; mov.b32 %x, 10; L: setp.lt.u32 %in, %x, 12; add.u32 %x, %x, 1; @%in bra L; mov.b32 %d, %x; }
    { L: add.u32 %d, %d, %x; setp.lt.u32 %in, %d, 20; @%in bra L; }"""
    assert evaluate(body, np.zeros(3, np.uint32), out=np.uint32).tolist() == [20, 20, 20]


REVERSE = """.entry k(.param .u64 o) {
  .reg .b64 %o, %q; .reg .b32 %t, %s, %v, %n; .reg .pred %p; .shared .align 4 .b32 sm[96];
  ld.param.u64 %o, [o]; mov.u32 %t, %tid.x; mov.u32 %s, sm; mad.lo.u32 %v, %t, 4, %s; mov.u32 %n, %ntid.x;
  st.shared.u32 [%v], %t;
  BARRIER
  sub.u32 %v, %n, %t; sub.u32 %v, %v, 1; mad.lo.u32 %v, %v, 4, %s; ld.shared.u32 %v, [%v];
  mul.wide.u32 %q, %t, 4; add.s64 %o, %o, %q; st.global.u32 [%o], %v;
  AFTER
  ret; }"""


@pytest.mark.parametrize(
    "barrier", ["bar.sync 0;", "barrier.cta.sync.aligned 3;", "barrier.sync 1, 96;"]
)
def test_barriers_order_shared_memory(barrier):
    out, report = launch(
        REVERSE.replace("BARRIER", barrier).replace("AFTER", ""), np.zeros(96, "u4"), block=96
    )
    assert out.tolist() == list(range(95, -1, -1))
    assert report.instructions["bar"] == 96


def test_barrier_with_warps_at_different_places():
    """Warps may use different barrier instructions; threads of one warp may not."""
    split = """setp.lt.u32 %p, %t, 32; @%p bra L;
      bar.sync 0;
      bra.uni M; L: bar.sync 0; M:"""
    out, _ = launch(
        REVERSE.replace("BARRIER", split).replace("AFTER", ""), np.zeros(96, "u4"), block=96
    )
    assert out.tolist() == list(range(95, -1, -1))
    text = REVERSE.replace("BARRIER", split.replace("%t, 32", "%t, 40")).replace("AFTER", "")
    with pytest.raises(DivergenceError, match="different barrier instructions") as caught:
        launch(text, np.zeros(96, "u4"), block=96)
    assert caught.value.line == line_of(text, "      bar.sync 0;")


def test_threads_that_ended_are_not_waited_for():
    text = REVERSE.replace("BARRIER", "setp.ge.u32 %p, %t, 50; @%p ret;\nbar.sync 0;").replace(
        "AFTER", ""
    )
    out, _ = launch(text, np.full(96, 7, "u4"), block=96)
    assert out.tolist() == list(range(95, 45, -1)) + [7] * 46


def test_guarded_barrier_must_agree_in_a_warp():
    text = REVERSE.replace("BARRIER", "setp.lt.u32 %p, %t, 16;\n@%p bar.sync 0;").replace(
        "AFTER", ""
    )
    with pytest.raises(DivergenceError, match="only some threads of a warp") as caught:
        launch(text, np.zeros(96, "u4"), block=96)
    assert caught.value.line == line_of(text, "@%p bar.sync")


def test_barrier_that_never_fills():
    text = REVERSE.replace("BARRIER", "setp.lt.u32 %p, %t, 32;\nbar.sync 0;").replace(
        "AFTER", "@%p bra W;\nbar.sync 2, 96;\nW: ret;"
    )
    with pytest.raises(DeadlockError, match=r"barrier 2 waits for 96 threads, 64 came") as caught:
        launch(text, np.zeros(96, "u4"), block=96)
    assert caught.value.line == line_of(text, "bar.sync 2, 96")
    assert caught.value.thread == (32, 0, 0)


def test_producers_arrive_without_waiting():
    text = """.entry k(.param .u64 o) {
      .reg .b64 %o, %q; .reg .b32 %t, %v; .reg .pred %p; .shared .align 4 .b32 sm[1];
      ld.param.u64 %o, [o]; mov.u32 %t, %tid.x; setp.ge.u32 %p, %t, 32; @%p bra CONSUME;
      st.shared.u32 [sm], 42; bar.arrive 1, 64; ret;
      CONSUME: bar.sync 1, 64; ld.shared.u32 %v, [sm]; mul.wide.u32 %q, %t, 4; add.s64 %o, %o, %q;
      st.global.u32 [%o], %v; ret; }"""
    out, _ = launch(text, np.zeros(64, "u4"), block=64)
    assert out.tolist() == [0] * 32 + [42] * 32


def test_spin_lock_makes_progress():
    """Every thread takes a lock in turn; the spinning ones sit at a lower place than the holder."""
    text = """.entry k(.param .u64 o) {
      .reg .b64 %o; .reg .b32 %v, %old; .reg .pred %p;
      ld.param.u64 %o, [o];
      SPIN: atom.global.cas.b32 %old, [%o], 0, 1; setp.ne.u32 %p, %old, 0; @%p bra SPIN;
      ld.volatile.global.u32 %v, [%o+4]; add.u32 %v, %v, 1; st.volatile.global.u32 [%o+4], %v;
      membar.gl; atom.global.exch.b32 %old, [%o], 0; ret; }"""
    out, _ = launch(text, np.zeros(2, "u4"), grid=2, block=10)
    assert out.tolist() == [0, 20]


def test_endless_loop_is_found():
    text = ".entry k(.param .u64 o) { .reg .b32 %a; .reg .pred %p;\nmov.u32 %a, %tid.x; setp.ne.u32 %p, %a, 3; @%p ret;\nL: add.u32 %a, %a, 1;\nbra L; }"
    with pytest.raises(BudgetError) as caught:
        launch(text, np.zeros(1, "u4"), budget=2000)
    assert caught.value.line in (6, 7)
    assert caught.value.thread == (3, 0, 0)


def test_trap_and_bad_branch_index():
    text = ".entry k(.param .u64 o) { .reg .b32 %a; .reg .pred %p; mov.u32 %a, %tid.x;\nsetp.eq.u32 %p, %a, 9;\n@%p trap; ret; }"
    with pytest.raises(SimulatorError, match="trap") as caught:
        launch(text, np.zeros(1, "u4"))
    assert (caught.value.line, caught.value.thread) == (6, (9, 0, 0))
    text = ".entry k(.param .u64 o) { .reg .b32 %a; mov.u32 %a, %tid.x; T: .branchtargets X, Y;\nbrx.idx %a, T; X: Y: ret; }"
    with pytest.raises(SimulatorError, match="branch index"):
        launch(text, np.zeros(1, "u4"))
