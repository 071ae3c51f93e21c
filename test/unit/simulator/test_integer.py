"""Integer instructions against Python's unbounded integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TYPES = ["s16", "u16", "s32", "u32", "s64", "u64"]


def dtype_of(name):
    return np.dtype({"s": "i", "u": "u", "b": "u"}[name[0]] + str(int(name[1:]) // 8))


def wrap(value, name):
    """An integer reduced to the range of a type."""
    bits = int(name[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if name[0] == "s" and value >> (bits - 1) else value


def edge_integers(name):
    bits = int(name[1:])
    edges = st.sampled_from([0, 1, 2, -1, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1])
    return st.one_of(edges, st.integers(0, (1 << bits) - 1), st.integers(-8, 8)).map(
        lambda value: wrap(value, name)
    )


def rows(name, arity):
    return st.lists(st.tuples(*[edge_integers(name)] * arity), min_size=1, max_size=24)


def truncate_divide(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul.lo": lambda a, b, bits: a * b,
    "mul.hi": lambda a, b, bits: (a * b) >> bits,
    "min": lambda a, b, bits: min(a, b),
    "max": lambda a, b, bits: max(a, b),
    "div": lambda a, b, bits: truncate_divide(a, b) if b else -1,
    "rem": lambda a, b, bits: a - b * truncate_divide(a, b) if b else a,
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("operation", BINARY)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_binary(evaluate, operation, name, data):
    pairs = data.draw(rows(name, 2))
    a, b = (np.array(v, dtype_of(name)) for v in zip(*pairs, strict=True))
    got = evaluate(f"{operation}.{name} %d, %a, %b;", a, b, out=dtype_of(name))
    bits = int(name[1:])
    assert got.tolist() == [wrap(BINARY[operation](x, y, bits), name) for x, y in pairs]


@pytest.mark.parametrize("name", ["s16", "u16", "s32", "u32"])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_wide_products(evaluate, name, data):
    triples = data.draw(rows(name, 3))
    wide = f"{name[0]}{2 * int(name[1:])}"
    a, b, c = (np.array(v, dtype_of(name)) for v in zip(*triples, strict=True))
    got = evaluate(f"mul.wide.{name} %d, %a, %b;", a, b, out=dtype_of(wide))
    assert got.tolist() == [x * y for x, y, _ in triples]
    sums = c.astype(dtype_of(wide))
    got = evaluate(f"mad.wide.{name} %d, %a, %b, %c;", a, b, sums, out=dtype_of(wide))
    assert got.tolist() == [wrap(x * y + z, wide) for x, y, z in triples]


@pytest.mark.parametrize("name", ["s32", "u32", "s64", "u64"])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_multiply_add(evaluate, name, data):
    triples = data.draw(rows(name, 3))
    a, b, c = (np.array(v, dtype_of(name)) for v in zip(*triples, strict=True))
    bits = int(name[1:])
    low = evaluate(f"mad.lo.{name} %d, %a, %b, %c;", a, b, c, out=dtype_of(name))
    assert low.tolist() == [wrap(x * y + z, name) for x, y, z in triples]
    high = evaluate(f"mad.hi.{name} %d, %a, %b, %c;", a, b, c, out=dtype_of(name))
    assert high.tolist() == [wrap(((x * y) >> bits) + z, name) for x, y, z in triples]


@pytest.mark.parametrize("name", ["b16", "b32", "b64", "s16", "s32", "s64", "u32"])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_shifts(evaluate, name, data):
    kind = "s" if name[0] == "s" else "u"
    bits = int(name[1:])
    values = data.draw(st.lists(edge_integers(f"{kind}{bits}"), min_size=1, max_size=20))
    amounts = data.draw(
        st.lists(st.integers(0, bits + 3), min_size=len(values), max_size=len(values))
    )
    amounts[0] = 0xFFFFFFFF
    a, by = np.array(values, dtype_of(f"{kind}{bits}")), np.array(amounts, np.uint32)
    got = evaluate(f"shr.{name} %d, %a, %b;", a, by, out=a.dtype)
    assert got.tolist() == [v >> min(s, bits) for v, s in zip(values, amounts, strict=True)]
    if name[0] == "b":
        got = evaluate(f"shl.{name} %d, %a, %b;", a, by, out=a.dtype)
        expected = [
            wrap(v << min(s, bits), f"u{bits}") for v, s in zip(values, amounts, strict=True)
        ]
        assert got.tolist() == expected
        # A literal amount takes a way of its own.
        assert evaluate(f"shl.{name} %d, %a, 3;", a, out=a.dtype).tolist() == [
            wrap(v << 3, f"u{bits}") for v in values
        ]
        assert not evaluate(f"shl.{name} %d, %a, {bits};", a, out=a.dtype).any()


@settings(max_examples=10, deadline=None)
@given(data=st.data(), bits=st.sampled_from([32, 64]))
def test_counting(evaluate, data, bits):
    values = data.draw(st.lists(edge_integers(f"u{bits}"), min_size=1, max_size=24))
    a = np.array(values, dtype_of(f"u{bits}"))
    assert evaluate(f"popc.b{bits} %d, %a;", a, out="u4").tolist() == [
        v.bit_count() for v in values
    ]
    assert evaluate(f"clz.b{bits} %d, %a;", a, out="u4").tolist() == [
        bits - v.bit_length() for v in values
    ]
    assert evaluate(f"brev.b{bits} %d, %a;", a, out=a.dtype).tolist() == [
        int(f"{v:0{bits}b}"[::-1], 2) for v in values
    ]
    found = [v.bit_length() - 1 if v else 0xFFFFFFFF for v in values]
    assert evaluate(f"bfind.u{bits} %d, %a;", a, out="u4").tolist() == found
    signed = [wrap(v, f"s{bits}") for v in values]
    found = [(v if v >= 0 else ~v).bit_length() - 1 & 0xFFFFFFFF for v in signed]
    assert evaluate(f"bfind.s{bits} %d, %a;", a, out="u4").tolist() == found
    found = [bits - 1 - (v.bit_length() - 1) if v else 0xFFFFFFFF for v in values]
    assert evaluate(f"bfind.shiftamt.u{bits} %d, %a;", a, out="u4").tolist() == found


def field(value, start, length, bits, signed):
    """bfe by the pseudocode of the PTX ISA."""
    top = bits - 1
    sign = (value >> min(start + length - 1, top)) & 1 if signed and length else 0
    result = 0
    for i in range(bits):
        bit = (value >> (start + i)) & 1 if i < length and start + i <= top else sign
        result |= bit << i
    return result


def insert(a, b, start, length, bits):
    result = b
    for i in range(length):
        if start + i < bits:
            result = (result & ~(1 << (start + i))) | ((a >> i) & 1) << (start + i)
    return result


@settings(max_examples=20, deadline=None)
@given(data=st.data(), bits=st.sampled_from([32, 64]))
def test_fields(evaluate, data, bits):
    places = st.one_of(st.integers(0, bits + 2), st.integers(0, 255))
    rows_ = data.draw(
        st.lists(
            st.tuples(edge_integers(f"u{bits}"), edge_integers(f"u{bits}"), places, places),
            min_size=1,
            max_size=16,
        )
    )
    a, b, start, length = (list(v) for v in zip(*rows_, strict=True))
    A, B = (np.array(v, dtype_of(f"u{bits}")) for v in (a, b))
    S, L = (np.array(v, np.uint32) for v in (start, length))
    for kind in "us":
        got = evaluate(f"bfe.{kind}{bits} %d, %a, %b, %c;", A, S, L, out=A.dtype)
        assert got.tolist() == [field(x, s, n, bits, kind == "s") for x, _, s, n in rows_]
    got = evaluate(f"bfi.b{bits} %d, %a, %b, %c, %e;", A, B, S, L, out=A.dtype)
    assert got.tolist() == [insert(x, y, s, n, bits) for x, y, s, n in rows_]


U32 = np.array([0, 1, 0xFFFFFFFF, 0x80000000, 0x12345678], np.uint32)


@pytest.mark.parametrize(
    ("body", "inputs", "expected"),
    [
        ("and.b32 %d, %a, 0xff;", [U32], [0, 1, 0xFF, 0, 0x78]),
        ("or.b32 %d, %a, 6;", [U32], [6, 7, 0xFFFFFFFF, 0x80000006, 0x1234567E]),
        ("xor.b32 %d, %a, -1;", [U32], [0xFFFFFFFF, 0xFFFFFFFE, 0, 0x7FFFFFFF, 0xEDCBA987]),
        ("not.b32 %d, %a;", [U32], [0xFFFFFFFF, 0xFFFFFFFE, 0, 0x7FFFFFFF, 0xEDCBA987]),
        ("cnot.b32 %d, %a;", [U32], [1, 0, 0, 0, 0]),
        ("neg.s32 %d, %a;", [U32], [0, 0xFFFFFFFF, 1, 0x80000000, 0xEDCBA988]),
        ("abs.s32 %d, %a;", [U32], [0, 1, 1, 0x80000000, 0x12345678]),
        (
            "add.sat.s32 %d, %a, 0x7fffffff;",
            [U32],
            [0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFE, 0xFFFFFFFF, 0x7FFFFFFF],
        ),
        ("sub.sat.s32 %d, %a, 1;", [U32], [0xFFFFFFFF, 0, 0xFFFFFFFE, 0x80000000, 0x12345677]),
        (
            "sad.u32 %d, %a, 2, 10;",
            [U32],
            [12, 11, 0xFFFFFFFD + 10 & 0xFFFFFFFF, 0x80000008, 0x12345680],
        ),
        ("mul24.lo.u32 %d, %a, 3;", [U32], [0, 3, 0x2FFFFFD, 0, 0x9D0368]),
        ("mul24.hi.s32 %d, %a, 0x10000;", [U32], [0, 1, 0xFFFFFFFF, 0, 0x345678]),
        (
            "prmt.b32 %d, %a, 0xAABBCCDD, 0x7650;",
            [U32],
            [0xAABBCC00, 0xAABBCC01, 0xAABBCCFF, 0xAABBCC00, 0xAABBCC78],
        ),
        ("prmt.b32 %d, %a, 0, 0x9B33;", [U32], [0, 0, 0xFFFFFFFF, 0x00FF8080, 0x1212]),
        (
            "prmt.b32.b4e %d, %a, 0x04030201, 0;",
            [U32],
            [0x02030400, 0x02030401, 0x020304FF, 0x02030400, 0x02030478],
        ),
        ("prmt.b32.rc16 %d, %a, 0, 1;", [U32], [0, 0, 0xFFFFFFFF, 0x80008000, 0x12341234]),
        (
            "lop3.b32 %d, %a, 0xFF00FF00, 0x0F0F0F0F, 0x96;",
            [U32],
            [int(x) ^ 0xFF00FF00 ^ 0x0F0F0F0F for x in U32],
        ),
        (
            "lop3.b32 %d, %a, 0xFF00FF00, 0x0F0F0F0F, 0xE8;",
            [U32],
            [(int(x) & 0xFF00FF00) | (int(x) & 0x0F0F0F0F) | 0x0F000F00 for x in U32],
        ),
        ("shf.l.wrap.b32 %d, %a, %a, 8;", [U32], [0, 0x100, 0xFFFFFFFF, 0x80, 0x34567812]),
        ("shf.r.clamp.b32 %d, %a, 0xF, 33;", [U32], [0xF] * 5),
        (
            "shf.r.wrap.b32 %d, %a, 0xF, 33;",
            [U32],
            [0x80000000, 0x80000000, 0xFFFFFFFF, 0xC0000000, 0x891A2B3C],
        ),
        (
            "dp4a.u32.u32 %d, %a, 0x01020304, 7;",
            [U32],
            [7, 11, 2557, 135, 7 + 0x12 + 2 * 0x34 + 3 * 0x56 + 4 * 0x78],
        ),
        (
            "dp4a.s32.s32 %d, %a, 0x01FF0304, 0;",
            [U32],
            [0, 4, (-7) & 0xFFFFFFFF, (-128) & 0xFFFFFFFF, 0x12 - 0x34 + 3 * 0x56 + 4 * 0x78],
        ),
        ("szext.clamp.s32 %d, %a, 8;", [U32], [0, 1, 0xFFFFFFFF, 0, 0x78]),
    ],
)
def test_exact_values(evaluate, body, inputs, expected):
    assert evaluate(body, *inputs, out=np.uint32).tolist() == expected


def test_predicate_logic(evaluate):
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    for name, function in {"and": a & b, "or": a | b, "xor": a ^ b}.items():
        assert (evaluate(f"{name}.pred %d, %a, %b;", a, b, out=np.bool_) == function).all()
    assert (evaluate("not.pred %d, %a;", a, out=np.bool_) == ~a).all()
