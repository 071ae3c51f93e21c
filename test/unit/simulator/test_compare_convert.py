"""Comparison, selection and conversion."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

INTS = np.array([0, 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32)
FLOATS = np.array([0.0, -0.0, 1.0, -1.0, np.inf, np.nan], np.float32)


@pytest.mark.parametrize("name", ["s32", "u32"])
@pytest.mark.parametrize("operator", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_integer_comparisons(evaluate, name, operator):
    a, b = np.repeat(INTS, len(INTS)), np.tile(INTS, len(INTS))
    typed = (a.astype(np.int32), b.astype(np.int32)) if name == "s32" else (a, b)
    function = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }[operator]
    got = evaluate(f"setp.{operator}.{name} %d, %a, %b;", a, b, out=np.bool_)
    assert (got == function(*typed)).all()


@pytest.mark.parametrize(
    ("operator", "ordered", "unordered"),
    [
        ("eq", lambda a, b: a == b, False),
        ("ne", lambda a, b: a != b, False),
        ("lt", lambda a, b: a < b, False),
        ("ge", lambda a, b: a >= b, False),
        ("equ", lambda a, b: a == b, True),
        ("neu", lambda a, b: a != b, True),
        ("ltu", lambda a, b: a < b, True),
        ("gtu", lambda a, b: a > b, True),
        ("num", lambda a, b: True, False),
        ("nan", lambda a, b: False, True),
    ],
)
def test_float_comparisons(evaluate, operator, ordered, unordered):
    a, b = np.repeat(FLOATS, len(FLOATS)), np.tile(FLOATS, len(FLOATS))
    expected = [
        unordered if math.isnan(x) or math.isnan(y) else ordered(x, y)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert evaluate(f"setp.{operator}.f32 %d, %a, %b;", a, b, out=np.bool_).tolist() == expected


def test_comparison_combines(evaluate):
    a = np.array([1, 1, 5, 5], np.uint32)
    c = np.array([0, 1, 0, 1], np.bool_)
    assert evaluate("setp.lt.and.u32 %d, %a, 3, %b;", a, c, out=np.bool_).tolist() == [0, 1, 0, 0]
    assert evaluate("setp.lt.or.u32 %d, %a, 3, !%b;", a, c, out=np.bool_).tolist() == [1, 1, 1, 0]
    second = ".reg .pred %q; setp.lt.xor.u32 %q|%d, %a, 3, %b;"
    assert evaluate(second, a, c, out=np.bool_).tolist() == [0, 1, 1, 0]
    assert evaluate("setp.hi.u32 %d, %a, 3;", a, out=np.bool_).tolist() == [0, 0, 1, 1]


def test_selection(evaluate):
    p = np.array([0, 1], np.bool_)
    assert evaluate("selp.b32 %d, 7, 9, %a;", p, out=np.uint32).tolist() == [9, 7]
    assert evaluate("selp.f32 %d, 0f3F800000, 2.5, %a;", p, out=np.float32).tolist() == [2.5, 1.0]
    c = np.array([-1, 0, 3], np.int32)
    assert evaluate("slct.u32.s32 %d, 7, 9, %a;", c, out=np.uint32).tolist() == [9, 7, 7]
    assert evaluate("set.lt.u32.s32 %d, %a, 0;", c, out=np.uint32).tolist() == [0xFFFFFFFF, 0, 0]
    assert evaluate("set.lt.f32.s32 %d, %a, 0;", c, out=np.float32).tolist() == [1.0, 0, 0]


def test_testp(evaluate):
    x = np.array([0.0, 1e-40, 1.0, np.inf, np.nan], np.float32)
    expected = {
        "finite": [1, 1, 1, 0, 0],
        "infinite": [0, 0, 0, 1, 0],
        "number": [1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 1],
        "normal": [0, 0, 1, 0, 0],
        "subnormal": [0, 1, 0, 0, 0],
    }
    for name, want in expected.items():
        assert evaluate(f"testp.{name}.f32 %d, %a;", x, out=np.bool_).tolist() == want


@pytest.mark.parametrize(
    ("body", "source", "expected"),
    [
        ("cvt.s64.s32 %d, %a;", np.array([-5, 7], "i4"), np.array([-5, 7], "i8")),
        ("cvt.u64.u32 %d, %a;", np.array([0xFFFFFFFF], "u4"), np.array([0xFFFFFFFF], "u8")),
        ("cvt.u32.u64 %d, %a;", np.array([0x1FFFFFFFF], "u8"), np.array([0xFFFFFFFF], "u4")),
        ("cvt.s16.s8 %d, %a;", np.array([0x12FF], "u2"), np.array([-1], "i2")),
        ("cvt.u32.u8 %d, %a;", np.array([0x123456FF], "u4"), np.array([0xFF], "u4")),
        ("cvt.s8.s32 %d, %a;", np.array([0x181], "u4"), np.array([-127], "i4")),
        ("cvt.u16.u32 %d, %a;", np.array([0x12345], "u4"), np.array([0x2345], "u4")),
        ("cvt.sat.s8.s32 %d, %a;", np.array([300, -300, 5], "i4"), np.array([127, -128, 5], "i4")),
        ("cvt.sat.u8.s32 %d, %a;", np.array([300, -300, 5], "i4"), np.array([255, 0, 5], "i4")),
        ("cvt.sat.u32.s64 %d, %a;", np.array([-1, 1 << 33], "i8"), np.array([0, 0xFFFFFFFF], "u4")),
        ("cvt.sat.s32.u32 %d, %a;", np.array([0xFFFFFFFF], "u4"), np.array([0x7FFFFFFF], "i4")),
        ("cvt.rzi.s32.f32 %d, %a;", np.array([2.7, -2.7, 3e9, -3e9, np.nan], "f4"), np.array([2, -2, 2**31 - 1, -(2**31), 0], "i4")),
        ("cvt.rni.s32.f32 %d, %a;", np.array([2.5, 3.5, -2.5], "f4"), np.array([2, 4, -2], "i4")),
        ("cvt.rmi.s32.f32 %d, %a;", np.array([2.7, -2.1], "f4"), np.array([2, -3], "i4")),
        ("cvt.rpi.u32.f32 %d, %a;", np.array([2.1, -2.7, 5e9], "f4"), np.array([3, 0, 2**32 - 1], "u4")),
        ("cvt.rzi.s64.f64 %d, %a;", np.array([1e18, np.nan, 1e300], "f8"), np.array([10**18, -(2**63), 2**63 - 1], "i8")),
        ("cvt.rzi.u64.f32 %d, %a;", np.array([np.nan, -1.0, 2.0**63], "f4"), np.array([2**63, 0, 2**63], "u8")),
        ("cvt.rzi.u8.f32 %d, %a;", np.array([300.0, 7.9], "f4"), np.array([255, 7], "u4")),
        ("cvt.rzi.s32.f16 %d, %a;", np.array([-1.5, 65504], "f2"), np.array([-1, 65504], "i4")),
        ("cvt.rn.f32.s32 %d, %a;", np.array([2**24 + 1, -3], "i4"), np.array([2**24, -3], "f4")),
        ("cvt.rz.f32.u32 %d, %a;", np.array([2**32 - 1], "u4"), np.array([2**32 - 256], "f4")),
        ("cvt.rp.f32.s64 %d, %a;", np.array([2**60 + 1], "i8"), np.array([2**60 + 2**37], "f4")),
        ("cvt.rn.f32.u64 %d, %a;", np.array([(1 << 40) + (1 << 16) + 1], "u8"), np.array([(1 << 40) + (1 << 17)], "f4")),
        ("cvt.rn.f64.u64 %d, %a;", np.array([2**64 - 1], "u8"), np.array([2.0**64], "f8")),
        ("cvt.rz.f64.u64 %d, %a;", np.array([2**64 - 1], "u8"), np.array([2.0**64 - 2048], "f8")),
        ("cvt.rn.f16.u32 %d, %a;", np.array([2049, 70000], "u4"), np.array([2048, np.inf], "f2")),
        ("cvt.f32.f16 %d, %a;", np.array([1.5, -0.0, np.inf, 6e-8], "f2"), np.array([1.5, -0.0, np.inf, 2.0**-24], "f4")),
        ("cvt.f64.f32 %d, %a;", np.array([0.1], "f4"), np.array([np.float32(0.1)], "f8")),
        ("cvt.rn.f32.f64 %d, %a;", np.array([0.1, 1e300], "f8"), np.array([0.1, np.inf], "f4")),
        ("cvt.rz.f32.f64 %d, %a;", np.array([1e300, -1e300], "f8"), np.array([3.4028234663852886e38, -3.4028234663852886e38], "f4")),
        ("cvt.sat.f32.f32 %d, %a;", np.array([1.5, -1, 0.25, np.nan], "f4"), np.array([1, 0, 0.25, 0], "f4")),
        ("cvt.rni.f32.f32 %d, %a;", np.array([2.5, -0.4], "f4"), np.array([2, -0.0], "f4")),
        ("cvt.ftz.f32.f32 %d, %a;", np.array([1e-40, 1.0], "f4"), np.array([0, 1], "f4")),
        ("cvt.rn.relu.f16.f32 %d, %a;", np.array([-2, 3], "f4"), np.array([0, 3], "f2")),
        ("cvt.rn.bf16.f32 %d, %a;", np.array([0x3F808000, 0x3F818000, 0x7FC00001], "u4"), np.array([0x3F80, 0x3F82, 0x7FFF], "u2")),
        ("cvt.f32.bf16 %d, %a;", np.array([0x3F81], "u2"), np.array([1.0078125], "f4")),
        ("cvt.rna.tf32.f32 %d, %a;", np.array([0x3F801000, 0x3F800FFF], "u4"), np.array([0x3F802000, 0x3F800000], "u4")),
        ("cvt.rn.f16x2.f32 %d, %a, 0f40000000;", np.array([1.0], "f4"), np.array([0x3C004000], "u4")),
        ("cvt.rn.bf16x2.f32 %d, %a, 0f40000000;", np.array([1.0], "f4"), np.array([0x3F804000], "u4")),
    ],
)  # fmt: skip
def test_conversions(evaluate, body, source, expected):
    got = evaluate(body, source, out=expected.dtype)
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@settings(max_examples=15, deadline=None)
@given(
    values=st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40
    )
)
def test_narrowing_rounds_correctly(evaluate, rounding, name, mode, values):
    bits = evaluate(f"cvt.{mode}.{name}.f32 %d, %a;", np.array(values, np.float32), out=np.uint16)
    wide = (
        bits.view(np.float16).astype(float)
        if name == "f16"
        else (bits.astype("u4") << 16).view("f4")
    )
    assert wide.tolist() == [rounding(Fraction(v), name, mode) for v in values]


@settings(max_examples=15, deadline=None)
@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30),
    mode=st.sampled_from(["rn", "rz", "rm", "rp"]),
)
def test_integers_to_floats_round_once(evaluate, rounding, values, mode):
    for name, dtype in (("f32", np.float32), ("f64", np.float64)):
        got = evaluate(f"cvt.{mode}.{name}.s64 %d, %a;", np.array(values, np.int64), out=dtype)
        assert got.tolist() == [rounding(Fraction(v), name, mode) for v in values]
