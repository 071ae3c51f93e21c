"""Atomics, also with many lanes at one address."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.simulator import Simulator

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"


def run(operation, table, places, values, extra="", old_type=None, threads=32, space="global"):
    """Thread t does the operation with value t at place t; returns the table and the old values."""
    size = table.dtype.itemsize
    place = {"global": "add.s64 %m, %m, %q;", "shared": "mov.u64 %z, sm; add.s64 %z, %z, %q;"}[
        space
    ]
    where = "%m" if space == "global" else "%z"
    result = "%old, " if operation.startswith("atom") else ""
    copy_in = copy_out = ""
    if space == "shared":
        copy_in = f"ld.global.b{8 * size} %old, [%m]; st.shared.b{8 * size} [sm], %old; bar.sync 0;"
        copy_out = f"bar.sync 0; ld.shared.b{8 * size} %v, [sm]; ld.param.u64 %m, [m]; st.global.b{8 * size} [%m], %v;"
    text = f"""{HEADER}.entry k(.param .u64 m, .param .u64 i, .param .u64 v, .param .u64 o) {{
      .reg .b64 %m, %i, %pv, %o, %q, %z; .reg .b32 %t, %u, %p; .reg .b{8 * size} %v, %old;
      .shared .align 8 .b8 sm[8];
      ld.param.u64 %m, [m]; ld.param.u64 %i, [i]; ld.param.u64 %pv, [v]; ld.param.u64 %o, [o];
      mov.u32 %t, %tid.x; mov.u32 %u, %ctaid.x; mad.lo.u32 %t, %u, {threads}, %t;
      mul.wide.u32 %q, %t, 4; add.s64 %i, %i, %q; ld.global.u32 %p, [%i];
      mul.wide.u32 %q, %t, {size}; add.s64 %pv, %pv, %q; add.s64 %o, %o, %q;
      {copy_in}
      ld.global.b{8 * size} %v, [%pv]; mul.wide.u32 %q, %p, {size}; {place}
      {operation} {result}[{where}], {extra}%v;
      {copy_out}
      st.global.b{8 * size} [%o], %old; ret; }}"""
    simulator = Simulator()
    memory = simulator.alloc(table)
    out = simulator.alloc(np.zeros(len(values), table.dtype))
    args = [memory, simulator.alloc(np.asarray(places, np.uint32)), simulator.alloc(values), out]
    simulator.load(text, "atomic.ptx")["k"].launch(len(values) // threads, threads, args)
    return memory.numpy(), out.numpy()


CASES = {
    "add.u32": (np.uint32, lambda old, v: (old + v) & 0xFFFFFFFF),
    "add.u64": (np.uint64, lambda old, v: (old + v) & 0xFFFFFFFFFFFFFFFF),
    "min.s32": (np.int32, min),
    "max.u32": (np.uint32, max),
    "and.b32": (np.uint32, lambda old, v: old & v),
    "or.b32": (np.uint32, lambda old, v: old | v),
    "xor.b32": (np.uint32, lambda old, v: old ^ v),
    "exch.b32": (np.uint32, lambda old, v: v),
    "inc.u32": (np.uint32, lambda old, v: 0 if old >= v else old + 1),
    "dec.u32": (np.uint32, lambda old, v: v if old == 0 or old > v else old - 1),
}


@pytest.mark.parametrize("operation", CASES)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_integers_in_order_of_lanes(operation, data):
    dtype, function = CASES[operation]
    info = np.iinfo(dtype)
    numbers = st.one_of(st.integers(info.min, info.max), st.integers(0, 5))
    places = data.draw(st.lists(st.integers(0, 4), min_size=64, max_size=64))
    values = data.draw(st.lists(numbers, min_size=64, max_size=64))
    start = data.draw(st.lists(numbers, min_size=5, max_size=5))
    table = list(start)
    old = []
    for place, value in zip(places, values, strict=True):
        old.append(table[place])
        table[place] = function(table[place], value)
    got, got_old = run(
        f"atom.global.{operation}", np.array(start, dtype), places, np.array(values, dtype)
    )
    assert got.tolist() == table
    assert got_old.tolist() == old
    if operation not in ("exch.b32",):
        got, _ = run(
            f"red.relaxed.gpu.global.{operation}",
            np.array(start, dtype),
            places,
            np.array(values, dtype),
        )
        assert got.tolist() == table


def test_compare_and_swap():
    """Only the first lane of each place finds what it expects."""
    places = np.arange(32) % 3
    values = np.arange(32, dtype=np.uint32) + 100
    got, old = run(
        "atom.acquire.gpu.global.cas.b32", np.zeros(3, np.uint32), places, values, extra="0, "
    )
    assert got.tolist() == [100, 101, 102]
    assert old.tolist() == [0, 0, 0] + [100 + t % 3 for t in range(3, 32)]


@pytest.mark.parametrize(
    ("name", "dtype"), [("f32", np.float32), ("f64", np.float64), ("noftz.f16", np.float16)]
)
def test_floats(name, dtype):
    values = (np.arange(64) % 7 - 3).astype(dtype)
    places = np.arange(64) % 5
    expected = np.zeros(5)
    np.add.at(expected, places, values.astype(float))
    got, _ = run(f"red.global.add.{name}", np.zeros(5, dtype), places, values)
    assert got.tolist() == expected.tolist()
    got, old = run(f"atom.global.add.{name}", np.zeros(5, dtype), places, values)
    assert got.tolist() == expected.tolist()
    assert old[:5].tolist() == [0.0] * 5


def test_packed_halves():
    values = np.array([1.5, -2.0] * 32, np.float16).view(np.uint32)
    got, _ = run("red.global.add.noftz.f16x2", np.zeros(1, np.uint32), np.zeros(32), values)
    assert got.view(np.float16).tolist() == [48.0, -64.0]


def test_shared_and_generic():
    values = np.arange(64, dtype=np.uint32)
    got, _ = run(
        "red.shared.add.u32",
        np.array([5], np.uint32),
        np.zeros(64),
        values,
        threads=64,
        space="shared",
    )
    assert got.tolist() == [5 + 64 * 63 // 2]
    got, _ = run("red.add.u32", np.array([5], np.uint32), np.zeros(64), values)
    assert got.tolist() == [5 + 64 * 63 // 2]
