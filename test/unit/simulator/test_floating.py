"""Float instructions against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def finite(name):
    """Bits of finite values, many of them near the edges of the format."""
    bits, mantissa = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52)}[name]
    exponent = (1 << (bits - 1 - mantissa)) - 1
    bias = exponent >> 1
    biased = st.one_of(
        st.integers(0, exponent - 1), st.integers(max(bias - 30, 1), min(bias + 30, exponent - 1))
    )
    ones = (1 << mantissa) - 1
    parts = st.one_of(
        st.integers(0, ones), st.sampled_from([0, 1, ones, ones - 1, 1 << (mantissa - 1)])
    )
    return st.builds(
        lambda sign, e, m: sign << (bits - 1) | e << mantissa | m, st.integers(0, 1), biased, parts
    )


def decode(bits, name):
    if name == "bf16":
        return float(np.array(bits << 16, np.uint32).view(np.float32))
    unsigned = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}[name]
    return float(np.array(bits, unsigned).view(DTYPES[name]))


def storage(name):
    return {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}[name]


OPERATIONS = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "fma": (3, lambda a, b, c: a * b + c),
    "div": (2, lambda a, b: a / b if b else None),
}

CASES = [
    *[(op, "f32", mode) for op in OPERATIONS for mode in ("rn", "rz", "rm", "rp")],
    *[(op, name, "rn") for op in ("add", "sub", "mul", "fma") for name in ("f16", "bf16", "f64")],
    ("div", "f64", "rn"),
]


@pytest.mark.parametrize(("operation", "name", "mode"), CASES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_correct_rounding(evaluate, rounding, operation, name, mode, data):
    arity, function = OPERATIONS[operation]
    rows = data.draw(st.lists(st.tuples(*[finite(name)] * arity), min_size=4, max_size=32))
    arrays = [np.array(column, storage(name)) for column in zip(*rows, strict=True)]
    operands = ", ".join(f"%{letter}" for letter in "abc"[:arity])
    got = evaluate(f"{operation}.{mode}.{name} %d, {operands};", *arrays, out=storage(name))
    for row, bits in zip(rows, got.tolist(), strict=True):
        exact = function(*[Fraction(decode(x, name)) for x in row])
        if exact is not None:
            assert decode(bits, name) == rounding(exact, name, mode), [decode(x, name) for x in row]


def test_fma_rounds_once(evaluate):
    """A double rounding over float64 would give 1 + 2**-23 here."""
    a = np.float32(1 + 2.0**-12)
    exact = Fraction(float(a)) ** 2  # 1 + 2**-11 + 2**-24
    c = np.float32(-(2.0**-11) + 0)
    tiny = np.float32(-(2.0**-80))
    got = evaluate("fma.rn.f32 %d, %a, %a, %b;", np.array([a]), np.array([c]), out="f4")
    assert float(got[0]) == float(np.float32(float(exact) - 2.0**-11))
    # (1 + 2**-12) * (1 + 2**-12) ends exactly between two floats; the addend decides.
    got = evaluate(
        "fma.rn.f32 %d, %a, %a, %b;", np.array([a, a]), np.array([tiny, -tiny]), out="f4"
    )
    assert got.tolist() == [1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-23]


F32 = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("neg.f32 %d, %a;", [-0.0, 0.0, -1.5, 2.25, -np.inf, np.inf, np.nan, -1e-40, -3e38]),
        ("abs.f32 %d, %a;", [0.0, 0.0, 1.5, 2.25, np.inf, np.inf, np.nan, 1e-40, 3e38]),
        ("min.f32 %d, %a, 0f00000000;", [0.0, -0.0, 0.0, -2.25, 0.0, -np.inf, 0.0, 0.0, 0.0]),
        ("max.f32 %d, %a, 0f80000000;", [0.0, -0.0, 1.5, -0.0, np.inf, -0.0, -0.0, 1e-40, 3e38]),
        ("min.NaN.f32 %d, %a, 1.0;", [0.0, -0.0, 1.0, -2.25, 1.0, -np.inf, np.nan, 1e-40, 1.0]),
        ("max.NaN.f32 %d, %a, 1.0;", [1.0, 1.0, 1.5, 1.0, np.inf, 1.0, np.nan, 1.0, 3e38]),
        ("add.sat.f32 %d, %a, 0f3F000000;", [0.5, 0.5, 1.0, 0.0, 1.0, 0.0, 0.0, 0.5, 1.0]),
        ("add.ftz.f32 %d, %a, 0f00000000;", [0.0, 0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 0.0, 3e38]),
        ("mul.f32 %d, %a, %a;", [0.0, 0.0, 2.25, 5.0625, np.inf, np.inf, np.nan, 0.0, np.inf]),
        ("rcp.approx.ftz.f32 %d, %a;", [np.inf, -np.inf, 2 / 3, -4 / 9, 0.0, -0.0, np.nan, np.inf, 0.0]),
        ("rcp.rn.f32 %d, %a;", [np.inf, -np.inf, 2 / 3, -4 / 9, 0.0, -0.0, np.nan, np.inf, 1 / 3e38]),
        ("sqrt.approx.f32 %d, %a;", [0.0, -0.0, 1.5**0.5, np.nan, np.inf, np.nan, np.nan, 1e-20, 3e38**0.5]),
        ("rsqrt.approx.f32 %d, %a;", [np.inf, -np.inf, 1.5**-0.5, np.nan, 0.0, np.nan, np.nan, 1e20, 3e38**-0.5]),
        ("ex2.approx.f32 %d, %a;", [1.0, 1.0, 2**1.5, 2**-2.25, np.inf, 0.0, np.nan, 1.0, np.inf]),
        ("lg2.approx.f32 %d, %a;", [-np.inf, -np.inf, np.log2(1.5), np.nan, np.inf, np.nan, np.nan, np.log2(1e-40), np.log2(3e38)]),
        ("tanh.approx.f32 %d, %a;", [0.0, -0.0, np.tanh(1.5), np.tanh(-2.25), 1.0, -1.0, np.nan, 1e-40, 1.0]),
        ("sin.approx.f32 %d, %a;", [0.0, -0.0, np.sin(1.5), np.sin(-2.25), np.nan, np.nan, np.nan, 1e-40, None]),
        ("cos.approx.f32 %d, %a;", [1.0, 1.0, np.cos(1.5), np.cos(-2.25), np.nan, np.nan, np.nan, 1.0, None]),
        ("div.full.f32 %d, %a, 0f40400000;", [0.0, -0.0, 0.5, -0.75, np.inf, -np.inf, np.nan, 1e-40 / 3, 1e38]),
        ("div.approx.f32 %d, %a, 0f40400000;", [0.0, -0.0, 0.5, -0.75, np.inf, -np.inf, np.nan, 1e-40 / 3, 1e38]),
        ("copysign.f32 %d, 0fBF800000, %a;", [-0.0, -0.0, -1.5, -2.25, -np.inf, -np.inf, np.nan, -1e-40, -3e38]),
    ],
)  # fmt: skip
def test_special_values(evaluate, body, expected):
    got = evaluate(body, F32, out=np.float32)
    for value, want in zip(got, expected, strict=True):
        if want is None:
            continue
        want = np.float32(want)
        near = (
            abs(value - want) <= 1e-5 * abs(want) + 1.5e-45 if np.isfinite(want) else value == want
        )
        assert (np.isnan(want) and np.isnan(value)) or (
            near and np.signbit(value) == np.signbit(want)
        )


def test_packed_halves(evaluate):
    x = np.array([1.5, -2.0, 65504.0, 0.1], np.float16).view(np.uint32)
    y = np.array([0.25, 3.0, 65504.0, 0.2], np.float16).view(np.uint32)
    sum_ = evaluate("add.f16x2 %d, %a, %b;", x, y, out=np.uint32).view(np.float16)
    assert sum_.tolist() == [1.75, 1.0, np.inf, float(np.float16(0.1) + np.float16(0.2))]
    fused = evaluate("fma.rn.relu.f16x2 %d, %a, %b, %a;", x, y, out=np.uint32).view(np.float16)
    assert fused.tolist() == [1.875, 0.0, np.inf, float(np.float16(0.12))]
    assert (
        evaluate("neg.f16x2 %d, %a;", x, out=np.uint32).view(np.float16).tolist()
        == (-x.view(np.float16)).tolist()
    )
    ones = evaluate("mul.bf16x2 %d, %a, %a;", np.array([0x3F80BF80], np.uint32), out=np.uint32)
    assert ones.tolist() == [0x3F803F80]


def test_approximations_of_halves(evaluate):
    x = np.array([0.5, -1.25, 3.0], np.float16)
    assert (
        evaluate("ex2.approx.f16 %d, %a;", x, out=np.float16).tolist()
        == np.exp2(x.astype("f8")).astype("f2").tolist()
    )
    assert (
        evaluate("tanh.approx.f16 %d, %a;", x, out=np.float16).tolist()
        == np.tanh(x.astype("f8")).astype("f2").tolist()
    )


def test_sqrt_and_rcp_directed(evaluate, rounding):
    two = np.array([2.0], np.float32)
    up = float(evaluate("sqrt.rp.f32 %d, %a;", two, out=np.float32)[0])
    down = float(evaluate("sqrt.rm.f32 %d, %a;", two, out=np.float32)[0])
    assert Fraction(down) ** 2 < 2 < Fraction(up) ** 2
    assert np.nextafter(np.float32(down), np.float32(2)) == np.float32(up)
    three = np.array([3.0], np.float32)
    for mode in ("rn", "rz", "rm", "rp"):
        got = float(evaluate(f"rcp.{mode}.f32 %d, %a;", three, out=np.float32)[0])
        assert got == rounding(Fraction(1, 3), "f32", mode)
