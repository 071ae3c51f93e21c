"""Shuffles, votes and their like."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

LANES = np.arange(64, dtype=np.uint32)


def reference_shuffle(mode, values, b, c):
    """The pseudocode of shfl.sync in the PTX ISA for one warp."""
    result, flags = [], []
    for lane in range(32):
        bval, cval, mask = b & 0x1F, c & 0x1F, (c >> 8) & 0x1F
        high, low = (lane & mask) | (cval & ~mask & 0x1F), lane & mask
        if mode == "up":
            j = lane - bval
            inside = j >= high
        else:
            j = {"down": lane + bval, "bfly": lane ^ bval, "idx": low | (bval & ~mask & 0x1F)}[mode]
            inside = j <= high
        result.append(values[j if inside else lane])
        flags.append(inside)
    return result, flags


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@settings(max_examples=12, deadline=None)
@given(b=st.integers(0, 31), log_width=st.integers(0, 5), dynamic=st.booleans())
def test_shuffles(evaluate, mode, b, log_width, dynamic):
    c = ((32 - (1 << log_width)) << 8) | (0 if mode == "up" else 31)
    a = LANES * 3 + 1
    operand = "%b" if dynamic else str(b)
    args = (a, np.full(64, b, np.uint32))
    got = evaluate(f"shfl.sync.{mode}.b32 %d, %a, {operand}, {c}, -1;", *args, out=np.uint32)
    body = f".reg .b32 %x; shfl.sync.{mode}.b32 %x|%d, %a, {operand}, {c}, 0xffffffff;"
    inside = evaluate(body, *args, out=np.bool_)
    for warp in (0, 32):
        values, flags = reference_shuffle(mode, a[warp : warp + 32].tolist(), b, c)
        assert got[warp : warp + 32].tolist() == values
        assert inside[warp : warp + 32].tolist() == flags


def test_shuffle_by_lane(evaluate):
    source = (LANES * 7 + 3) % 32
    got = evaluate("shfl.sync.idx.b32 %d, %a, %b, 31, -1;", LANES, source, out=np.uint32)
    assert got.tolist() == (LANES // 32 * 32 + source).tolist()


def test_votes(evaluate):
    p = np.array([t < 40 and t % 3 == 0 for t in range(64)])
    masks = [sum(1 << i for i in range(32) if p[w + i]) for w in (0, 32)]
    assert (
        evaluate("vote.sync.ballot.b32 %d, %a, -1;", p, out=np.uint32).tolist()
        == np.repeat(masks, 32).tolist()
    )
    assert (
        evaluate("vote.sync.ballot.b32 %d, !%a, -1;", p, out=np.uint32).tolist()
        == np.repeat([m ^ 0xFFFFFFFF for m in masks], 32).tolist()
    )
    assert evaluate("vote.sync.any.pred %d, %a, -1;", p, out=np.bool_).all()
    low = LANES < 32
    assert evaluate("vote.sync.all.pred %d, %a, -1;", low, out=np.bool_).tolist() == low.tolist()
    assert evaluate("vote.sync.uni.pred %d, %a, -1;", low, out=np.bool_).all()
    assert evaluate("vote.sync.uni.pred %d, %a, -1;", p, out=np.bool_).any() == False  # noqa: E712


def test_votes_count_members_only(evaluate):
    body = """.reg .pred %q; setp.lt.u32 %q, %a, 8; mov.b32 %d, 0;
    @!%q bra OUT; activemask.b32 %d; OUT: bar.warp.sync -1;"""
    got = evaluate(body, LANES % 32, out=np.uint32)
    assert got.tolist() == [0xFF if t % 32 < 8 else 0 for t in range(64)]


def test_match_redux_elect(evaluate):
    keys = LANES % 5
    got = evaluate("match.any.sync.b32 %d, %a, -1;", keys, out=np.uint32)
    for t in range(64):
        warp = t // 32 * 32
        assert got[t] == sum(1 << i for i in range(32) if keys[warp + i] == keys[t])
    same = np.repeat(np.array([4, 9], np.uint32), 32)
    body = ".reg .b32 %x; match.all.sync.b32 %x|%d, %a, -1;"
    assert evaluate(body, same, out=np.bool_).all()
    assert not evaluate(body, keys, out=np.bool_).any()
    signed = (LANES.astype(np.int32) - 40).view(np.uint32)
    assert evaluate("redux.sync.add.s32 %d, %a, -1;", signed, out=np.int32)[::32].tolist() == [
        -784,
        240,
    ]
    assert evaluate("redux.sync.min.s32 %d, %a, -1;", signed, out=np.int32)[::32].tolist() == [
        -40,
        -8,
    ]
    assert evaluate("redux.sync.max.u32 %d, %a, -1;", LANES, out=np.uint32)[::32].tolist() == [
        31,
        63,
    ]
    assert evaluate("redux.sync.xor.b32 %d, %a, -1;", LANES, out=np.uint32)[::32].tolist() == [0, 0]
    body = ".reg .b32 %x; elect.sync %x|%d, -1;"
    assert np.flatnonzero(evaluate(body, LANES, out=np.bool_)).tolist() == [0, 32]


def test_diverged_lanes_meet_at_a_shuffle(evaluate):
    """The two sides of the branch reach the shuffle at different times; it waits for all 32."""
    body = """.reg .pred %q; .reg .b32 %x; setp.lt.u32 %q, %a, 7; mov.b32 %x, %a;
    @%q bra LOW; add.s32 %x, %x, 1000; bra.uni MEET; LOW: add.s32 %x, %x, 2000;
    MEET: shfl.sync.bfly.b32 %d, %x, 1, 31, -1;"""
    got = evaluate(body, LANES % 32, out=np.uint32)
    lane = LANES % 32 ^ 1
    assert got.tolist() == (lane + np.where(lane < 7, 2000, 1000)).tolist()
