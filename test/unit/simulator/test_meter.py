"""The meter: exact counts for accesses whose pattern is known."""

import numpy as np
import pytest

from prism.simulator import Simulator
from prism.simulator.dependence import Flow, bytes_under_way, innermost_loops, longest_chain
from prism.simulator.traffic import sectors, wavefronts

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
FRAME = """.entry k(.param .u64 o) {
  .reg .b64 %o, %q; .reg .b32 %t, %s, %v, %w, %i; .reg .pred %p;
  .shared .align 16 .b8 sm[8448];
  ld.param.u64 %o, [o]; mov.u32 %t, %tid.x; mov.b32 %v, 0; mov.u32 %s, sm;
  BODY
  ret; }"""


def launch(body, grid=2, block=64, **options):
    simulator = Simulator(**options)
    kernel = simulator.load(HEADER + FRAME.replace("BODY", body))["k"]
    return kernel.launch(grid, block, [simulator.alloc(np.zeros(1 << 16, np.uint8))])


@pytest.mark.parametrize(
    ("stride", "width", "per_warp"),
    [
        (4, 4, 4),
        (8, 8, 8),
        (16, 16, 16),
        (8, 4, 8),
        (32, 4, 32),
        (128, 4, 32),
        (0, 4, 1),
        (1, 1, 1),
    ],
)
def test_sectors(stride, width, per_warp):
    kind = {1: "u8", 4: "u32", 8: "u64", 16: "v2.u64"}[width]
    value = {1: "%v", 4: "%v", 8: "%q", 16: "{%q, %q}"}[width]
    body = f"mul.wide.u32 %q, %t, {stride}; add.s64 %o, %o, %q; ld.global.{kind} {value}, [%o];"
    report = launch(body)
    # Two blocks of two warps.
    assert report.global_read_sectors == 4 * per_warp
    assert report.global_read_bytes == 128 * width
    assert report.coalescing == 128 * width / (32 * 4 * per_warp)
    assert report.wide_share == (width == 16)
    assert report.load_bytes_in_flight == 64 * width
    assert report.bytes_in_flight == 64 * width


def test_sectors_of_active_lanes_only():
    body = "mul.wide.u32 %q, %t, 32; add.s64 %o, %o, %q; setp.lt.u32 %p, %t, 5; @%p st.global.u32 [%o], %v;"
    report = launch(body)
    assert (report.global_write_sectors, report.dram_write_bytes) == (10, 160)


@pytest.mark.parametrize("seed", range(20))
def test_sectors_and_wavefronts_against_sets(seed):
    rng = np.random.default_rng(seed)
    width = int(rng.choice([1, 2, 4, 8, 16]))
    rows, warps = int(rng.choice([1, 3])), int(rng.integers(1, 4))
    offset = rng.integers(0, int(rng.choice([8, 64, 4096])), (rows, 32 * warps)) * width
    exact = None if seed % 3 == 0 else rng.random((int(rng.choice([1, 3])), 32 * warps)) < 0.6
    wanted = np.broadcast_to(True if exact is None else exact, (3, 32 * warps))
    where = np.broadcast_to(offset, (3, 32 * warps))
    count = taken = least = 0
    lanes = 128 // max(width, 4)
    for block in range(3):
        for warp in range(warps):
            threads = range(32 * warp, 32 * warp + 32)
            count += len({int(where[block, t]) // 32 for t in threads if wanted[block, t]})
            for start in range(32 * warp, 32 * warp + 32, lanes):
                words = {
                    int(where[block, t]) // 4 + i
                    for t in range(start, start + lanes)
                    if wanted[block, t]
                    for i in range(max(width // 4, 1))
                }
                taken += max((sum(w % 32 == b for w in words) for b in range(32)), default=0)
                least += bool(words)
    assert sectors(offset, exact, warps, 3) == count
    assert wavefronts(offset, exact, width, warps, 3) == (taken, least)


@pytest.mark.parametrize(
    ("stride", "conflicts"), [(4, 0), (8, 1), (16, 3), (128, 31), (132, 0), (0, 0)]
)
def test_bank_conflicts(stride, conflicts):
    """Per warp and access, one wavefront and the conflicts."""
    report = launch(f"mad.lo.u32 %s, %t, {stride}, %s; st.shared.u32 [%s], %v;", sanitize=False)
    assert report.bank_conflicts == 4 * conflicts
    assert report.shared_wavefronts == 4 * (1 + conflicts)


def test_warps_issue_what_a_guard_switches_off():
    report = launch("setp.lt.u32 %p, %t, 5; @%p add.u32 %v, %v, 1;", grid=3)
    assert report.instructions["alu"] == 3 * (64 + 5)
    assert report.warp_instructions["alu"] == 3 * 2 * 2


def test_warps_of_a_branch():
    """Only the first warp of two takes the branch, with a part of its lanes."""
    report = launch("setp.ge.u32 %p, %t, 5; @%p bra L; add.u32 %v, %v, 1; add.u32 %v, %v, 1; L:")
    assert report.warp_instructions["alu"] == 2 * (2 + 2)
    assert report.instructions["alu"] == 2 * (64 + 10)


def test_barriers_are_of_blocks():
    body = "L: bar.sync 0; add.u32 %v, %v, 1; setp.lt.u32 %p, %v, 7; @%p bra L; setp.lt.u32 %p, %t, 32; @%p bar.sync 1, 32;"
    assert launch(body, grid=5).barriers == 5 * (7 + 1)


def test_copies_in_flight():
    """Two groups of 16 bytes a thread are under way, then one is waited for and one more starts."""
    copy = "cp.async.cg.shared.global [%s], [%o], 16; cp.async.commit_group; add.u32 %s, %s, 1024;"
    setup = "mul.wide.u32 %q, %t, 16; add.s64 %o, %o, %q; mad.lo.u32 %s, %t, 16, %s;"
    report = launch(f"{setup} {copy} {copy} cp.async.wait_group 1; {copy} cp.async.wait_all;")
    assert report.copy_bytes_in_flight == 2 * 64 * 16
    report = launch(f"{setup} {copy} {copy} {copy} cp.async.wait_all;")
    assert report.copy_bytes_in_flight == 3 * 64 * 16


def test_loop_chain():
    """Three of five instructions depend on each other; the inner loop is the one reported."""
    body = """mov.u32 %i, 0;
    OUT: mov.b32 %v, 0;
    IN: add.u32 %v, %v, 1;
    add.u32 %w, %v, 1; setp.lt.u32 %p, %v, 9; @%p bra IN;
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra OUT;"""
    report = launch(body)
    text = (HEADER + FRAME.replace("BODY", body)).split("\n")
    assert text[report.loop_line - 1].strip().startswith("IN:")
    assert (report.loop_instructions, report.loop_chain) == (4, 3)
    assert launch("").loop_line == 0


def test_dependence():
    load = Flow({1}, {2}, 16)
    assert bytes_under_way([load, Flow({1}, {3}, 8), Flow({3}, {4})]) == 24
    assert bytes_under_way([load, Flow({2}, {4}), Flow({1}, {3}, 8)]) == 16
    assert bytes_under_way([load, load]) == 16
    chain = [Flow({1}, {2}), Flow({2}, {3}), Flow({1}, {4}), Flow({3, 4}, {1}), Flow(set(), {9})]
    assert longest_chain(chain) == 3
    loops = innermost_loops([chain, chain, chain], [5, 6, 7], [(2, 0), (1, 1), (0, 2)])
    assert [(loop.first, loop.last, loop.line) for loop in loops] == [(1, 1, 6)]


def test_off():
    report = launch("ld.global.u32 %v, [%o]; st.shared.u32 [%s], %v;", meter=False, sanitize=False)
    assert report.global_read_bytes == 512
    assert report.global_read_sectors == report.shared_wavefronts == report.dram_read_bytes == 0
    assert report.warp_instructions == {}
