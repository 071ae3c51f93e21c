"""Packed integers and 8-bit floats, carry chains, directed float64, spaces and cache hints."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from prism.simulator import Simulator


def rng():
    return np.random.default_rng(5)


def words(count=300):
    return rng().integers(0, 1 << 32, (2, count), dtype=np.uint32)


@pytest.mark.parametrize("kind", ["s16x2", "u16x2"])
@pytest.mark.parametrize("name", ["add", "min", "max"])
def test_pairs_of_integers(evaluate, name, kind):
    a, b = words()
    dtype = {"s16x2": "i2", "u16x2": "u2"}[kind]
    function = {"add": np.add, "min": np.minimum, "max": np.maximum}[name]
    found = evaluate(f"{name}.{kind} %d, %a, %b;", a, b, out="u4")
    assert (found.view(dtype) == function(a.view(dtype), b.view(dtype))).all()


@pytest.mark.parametrize("half", ["lo", "hi"])
@pytest.mark.parametrize("kinds", ["s32.s32", "u32.s32", "s32.u32", "u32.u32"])
def test_dp2a(evaluate, half, kinds):
    a, b = words()
    left, right = (k.replace("32", "") for k in kinds.split("."))
    x = a.view({"s": "i2", "u": "u2"}[left]).reshape(-1, 2).astype("i8")
    y = b.view({"s": "i1", "u": "u1"}[right]).reshape(-1, 4).astype("i8")
    y = y[:, :2] if half == "lo" else y[:, 2:]
    found = evaluate(f"dp2a.{half}.{kinds} %d, %a, %b, %a;", a, b, out="u4")
    assert (found == ((x * y).sum(1) + a) % (1 << 32)).all()


def test_vabsdiff4(evaluate):
    a, b = words()
    for types, dtype in (("u32.u32.u32", "u1"), ("s32.s32.s32", "i1")):
        x, y = (v.view(dtype).reshape(-1, 4).astype("i8") for v in (a, b))
        apart = np.abs(x - y)
        found = evaluate(f"vabsdiff4.{types} %d, %a, %b, %b;", a, b, out="u4")
        assert (found.view("u1").reshape(-1, 4) == apart & 255).all()
        found = evaluate(f"vabsdiff4.{types}.sat %d, %a, %b, %b;", a, b, out="u4")
        most = 255 if dtype == "u1" else 127
        assert (found.view("u1").reshape(-1, 4) == np.minimum(apart, most)).all()
        found = evaluate(f"vabsdiff4.{types}.add %d, %a, %b, %a;", a, b, out="u4")
        assert (found == (apart.sum(1) + a) % (1 << 32)).all()


def test_fns(evaluate):
    mask, base, offset = words()[0], rng().integers(0, 32, 300), rng().integers(-6, 7, 300)

    def one(m, at, n):
        """PTX ISA 9.7.1, fns, semantics."""
        if n == 0:
            return at if m >> at & 1 else -1
        pos, step, left = at, 1 if n > 0 else -1, abs(n)
        while 0 <= pos < 32:
            left -= m >> pos & 1
            if left == 0:
                return pos
            pos += step
        return -1

    found = evaluate("fns.b32 %d, %a, %b, %c;", mask, base.astype("u4"), offset.astype("i4"), out="i4")  # fmt: skip
    assert found.tolist() == [one(*map(int, v)) for v in zip(mask, base, offset, strict=True)]


# -- 8-bit floats --------------------------------------------------------------------------------

FORMATS = {"e4m3x2": (3, 7, 448.0), "e5m2x2": (2, 15, 57344.0)}


def value_of(bits, mantissa, bias):
    sign = -1 if bits & 128 else 1
    exponent, fraction = (bits & 127) >> mantissa, bits & ((1 << mantissa) - 1)
    if mantissa == 2 and exponent == 31:
        return sign * math.inf if fraction == 0 else math.nan
    if mantissa == 3 and bits & 127 == 127:
        return math.nan
    lead = 1 if exponent else 0
    return sign * (lead + fraction / (1 << mantissa)) * 2.0 ** (max(exponent, 1) - bias)


@pytest.mark.parametrize("name", FORMATS)
def test_fp8_decodes(evaluate, name):
    mantissa, bias, _ = FORMATS[name]
    bits = np.arange(256)
    pairs = (bits | (bits[::-1] << 8)).astype("u2")
    found = evaluate(f"cvt.rn.f16x2.{name} %d, %a;", pairs, out="u4").view("f2").reshape(-1, 2)
    expected = np.array([value_of(int(b), mantissa, bias) for b in bits])
    np.testing.assert_array_equal(found[:, 0], expected)
    np.testing.assert_array_equal(found[:, 1], expected[::-1])
    found = evaluate(f"cvt.rn.relu.f16x2.{name} %d, %a;", pairs, out="u4").view("f2")[::2]
    np.testing.assert_array_equal(found, np.where(expected < 0, 0, expected))


@pytest.mark.parametrize("name", FORMATS)
def test_fp8_encodes_to_nearest_even(evaluate, name):
    mantissa, bias, largest = FORMATS[name]
    finite = [(value_of(b, mantissa, bias), b) for b in range(128)]
    finite = [(v, b) for v, b in finite if math.isfinite(v)]
    values = [v for v, _ in finite]
    middles = [(v + w) / 2 for v, w in itertools.pairwise(values)]
    near = [np.nextafter(np.float32(m), np.float32(s)) for m in middles for s in (0, np.inf)]
    x = np.array([*values, *middles, *near, 1e9, np.inf, 1e-9], "f4")
    x = np.concatenate([x, -x, [np.float32(np.nan)]]).astype("f4")

    def nearest(v):
        if math.isnan(v):
            return 0x7F
        size = min(abs(v), largest)
        best = min(finite, key=lambda f: (abs(Fraction(f[0]) - Fraction(size)), f[1] & 1))
        return best[1] | (128 if math.copysign(1, v) < 0 else 0)

    found = evaluate(f"cvt.rn.satfinite.{name}.f32 %d, %a, %b;", x, x[::-1], out="u2")
    expected = np.array([nearest(float(v)) for v in x])
    assert ((found >> 8) == expected).all()
    assert ((found & 255) == expected[::-1]).all()
    halves = np.array([1.0, -3.0, 500.0, 0.0078125], "f2").view("u4")
    found = evaluate(f"cvt.rn.satfinite.relu.{name}.f16x2 %d, %a;", halves, out="u2")
    plain = [nearest(max(v, 0.0)) for v in (1.0, -3.0, 500.0, 0.0078125)]
    assert found.view("u1").tolist() == plain


# -- comparisons of pairs ------------------------------------------------------------------------


def test_set_of_pairs(evaluate):
    a, b = rng().integers(-2, 3, (2, 100)).astype("f2")
    a[3] = np.nan
    holds = a < b
    for result, yes in (("u32", 0xFFFF), ("f16x2", 0x3C00)):
        found = evaluate(f"set.lt.{result}.f16x2 %d, %a, %b;", a.view("u4"), b.view("u4"), out="u4")
        assert (found.view("u2") == np.where(holds, yes, 0)).all()
    found = evaluate("set.ltu.f16.f16 %d, %a, %b;", a, b, out="f2")
    assert (found == (holds | np.isnan(a))).all()


# -- directed float64 ----------------------------------------------------------------------------

OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_directed_f64(evaluate, rounding, name, mode):
    a, b = rng().standard_normal((2, 60)) * 10.0 ** rng().integers(-30, 30, (2, 60))
    a[:4], b[:4] = [1.0, 1e308, -1e308, 1.0], [3.0, 1e308, 1e-5, 2.0]
    found = evaluate(f"{name}.{mode}.f64 %d, %a, %b;", a, b, out="f8")
    exact = [OPERATIONS[name](Fraction(x), Fraction(y)) for x, y in zip(a, b, strict=True)]
    assert found.tolist() == [rounding(value, "f64", mode) for value in exact]


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_directed_f64_of_other_arity(evaluate, rounding, mode):
    a, b, c = rng().standard_normal((3, 60))
    found = evaluate(f"fma.{mode}.f64 %d, %a, %b, %c;", a, b, c, out="f8")
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a, b, c, strict=True)]
    assert found.tolist() == [rounding(value, "f64", mode) for value in exact]
    found = evaluate(f"rcp.{mode}.f64 %d, %a;", a, out="f8")
    assert found.tolist() == [rounding(1 / Fraction(x), "f64", mode) for x in a]
    root = evaluate(f"sqrt.{mode}.f64 %d, %a;", np.abs(a), out="f8")
    for x, r in zip(np.abs(a), root, strict=True):
        low, high = (r, math.nextafter(r, 9)) if mode != "rp" else (math.nextafter(r, 0), r)
        assert Fraction(low) ** 2 <= Fraction(x) <= Fraction(high) ** 2
    special = np.array([0.0, -0.0, np.inf, np.nan])
    found = evaluate(f"add.{mode}.f64 %d, %a, %b;", special, -special, out="f8")
    assert np.signbit(found[0]) == (mode == "rm")
    assert np.isnan(found[2])
    assert np.isnan(found[3])


def test_gross_reciprocal(evaluate):
    x = np.array([3.0, -0.1, 1e-320, np.inf, 0.0])
    found = evaluate("rcp.approx.ftz.f64 %d, %a;", x, out="f8")
    assert (found.view("u8") & np.uint64(0xFFFFFFFF) == 0).all()
    np.testing.assert_allclose(found[:2], 1 / x[:2], rtol=2e-6)
    assert found[2:].tolist() == [math.inf, 0.0, math.inf]


# -- carry ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 64])
def test_carry(evaluate, bits):
    dtype = f"u{bits // 8}"
    a, b = rng().integers(0, 1 << 63, (2, 200), dtype=np.uint64).astype(dtype)
    a[:3], b[:3] = [0, 2**bits - 1, 5], [0, 1, 2**bits - 1]
    high, low = f".reg .b{bits} %h, %l;", 1 << bits
    exact = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    for body, value in (
        (f"add.cc.u{bits} %l, %a, %b; addc.u{bits} %d, 0, 0;", lambda x, y: (x + y) // low),
        (f"sub.cc.s{bits} %l, %a, %b; subc.u{bits} %d, 7, 0;", lambda x, y: 7 - (x < y)),
        (f"mad.lo.cc.u{bits} %l, %a, %b, %a; madc.hi.u{bits} %d, %a, %b, 0;", lambda x, y: (x * y + x) // low),
        (f"add.cc.u{bits} %l, %a, %b; addc.cc.u{bits} %h, %a, %a; addc.u{bits} %d, 0, 0;", lambda x, y: (2 * x + (x + y) // low) // low),
        (f"sub.cc.u{bits} %l, %a, %b; subc.cc.u{bits} %h, 0, 0; subc.u{bits} %d, 1, 0;", lambda x, y: 1 - (x < y)),
    ):  # fmt: skip
        found = evaluate(high + body, a, b, out=dtype)
        assert [int(v) for v in found] == [value(x, y) % low for x, y in exact]


# -- spaces and hints ----------------------------------------------------------------------------


def test_spaces_and_hints():
    text = """.version 8.0\n.target sm_80\n.address_size 64
    .global .attribute(.managed) .align 4 .u32 managed = 5;
    .entry k(.param .u64 o) { .reg .b64 %o, %g, %c; .reg .b32 %v, %w; .reg .pred %p, %q; .shared .b32 s; .local .b32 l;
    createpolicy.fractional.L2::evict_first.b64 %c, 1.0; ld.param.u64 %o, [o];
    mov.u64 %g, s; cvta.shared.u64 %g, %g; isspacep.shared %p, %g; isspacep.local %q, %g;
    selp.u32 %v, 1, 0, %p; selp.u32 %w, 2, 0, %q; or.b32 %v, %v, %w;
    isspacep.global %p, %o; selp.u32 %w, 4, 0, %p; or.b32 %v, %v, %w;
    ld.global.u32 %w, [managed]; shl.b32 %w, %w, 4; or.b32 %v, %v, %w;
    st.global.L1::evict_last.L2::cache_hint.u32 [%o], %v, %c; ld.global.L2::cache_hint.u32 %v, [%o], %c;
    atom.global.add.L2::cache_hint.u32 %w, [%o+4], %v, %c; ret; }"""
    simulator = Simulator()
    out = simulator.alloc(np.zeros(2, "u4"))
    simulator.load(text)["k"].launch(1, 1, [out])
    assert out.numpy().tolist() == [0x55, 0x55]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bmsk(evaluate, mode):
    start, count = rng().integers(0, 70, (2, 200)).astype("u4")

    def one(a, b):
        a, b = (min(a, 32), min(b, 32)) if mode == "clamp" else (a % 32, b % 32)
        return ((1 << b) - 1 << a) % (1 << 32)

    found = evaluate(f"bmsk.{mode}.b32 %d, %a, %b;", start, count, out="u4")
    assert found.tolist() == [one(int(a), int(b)) for a, b in zip(start, count, strict=True)]
