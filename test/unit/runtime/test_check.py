"""Comparison with the reference: exact errors and verdicts; element types round as they should."""

import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.runtime.check import compare, decode_inputs, draw_inputs, tolerance
from prism.runtime.dtypes import ELEMENT_TYPES
from prism.runtime.manifest import BufferEntry

from .conftest import copy_manifest

F16 = BufferEntry("o", (2, 2), "f16", None, 4096)


def compared(found: list[float], reference: list[float], allowed: float = 0.01):
    entry = replace(F16, shape=(len(found),))
    return compare(entry, np.array(found, np.float16), np.array(reference, np.float64), allowed)


def test_equal_is_exact():
    result = compared([1.0, -2.0], [1.0, -2.0], allowed=0.0)
    assert (result.ok, result.max_abs_err, result.max_rel_err) == (True, 0.0, 0.0)


def test_errors_are_relative_to_value_and_rms():
    # rms of (3, 4, 0, 0) is 2.5; the worst element is the zero: 0.5 / 2.5.
    result = compared([3.0, 4.5, 0.5, 0.0], [3.0, 4.0, 0.0, 0.0])
    assert result.max_abs_err == 0.5
    assert result.max_rel_err == pytest.approx(0.5 / 2.5)
    assert result.worst == (2,)
    assert not result.ok
    assert compared([3.0, 4.5, 0.5, 0.0], [3.0, 4.0, 0.0, 0.0], allowed=0.2).ok


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_output_fails(bad: float):
    result = compared([1.0, bad], [1.0, 1.0], allowed=1e9)
    assert not result.ok
    assert result.max_abs_err == math.inf
    assert result.nan_count == (1 if math.isnan(bad) else 0)


def test_overflow_of_the_type_is_expected():
    assert compared([1.0, math.inf], [1.0, 1e6]).ok
    assert not compared([1.0, -math.inf], [1.0, 1e6]).ok
    assert not compared([1.0, 65504.0], [1.0, 1e6]).ok


def test_nan_reference_fails():
    assert not compared([math.nan], [math.nan], allowed=1e9).ok


def test_zero_reference_needs_zero():
    assert compared([0.0, 0.0], [0.0, 0.0]).ok
    assert compared([0.0, 1e-3], [0.0, 0.0], allowed=1e9).max_rel_err == math.inf


def test_tolerance_formula():
    f16 = (BufferEntry("x", (2,), "f16", 1.0, None),)
    f32 = (BufferEntry("x", (2,), "f32", 1.0, None),)
    assert tolerance(F16, f16) == 4 * (2.0**-11 + 2.0**-11 + 64 * 2.0**-24)
    assert tolerance(replace(F16, dtype="f32"), f32) == 4 * (2 * 2.0**-24 + 64 * 2.0**-24)
    assert tolerance(replace(F16, dtype="bf16"), f16) > tolerance(F16, f16)


def test_a_dropped_term_of_the_sum_is_seen():
    generator = np.random.default_rng(0)
    k = 4096
    a, b = generator.standard_normal((8, k)), generator.standard_normal((k, 64)) / math.sqrt(k)
    entry = BufferEntry("o", (8, 64), "f16", None, k)
    allowed = tolerance(entry, (BufferEntry("x", (8, k), "f16", 1.0, None),))
    assert compare(entry, (a @ b).astype(np.float16), a @ b, allowed).ok
    dropped = a[:, 1:] @ b[1:]
    assert not compare(entry, dropped.astype(np.float16), a @ b, allowed).ok


def test_inputs_are_seeded():
    manifest = copy_manifest()
    one, same, other = (draw_inputs(manifest, seed)["x"] for seed in (1, 1, 2))
    assert one.dtype == np.float16
    assert one.tobytes() == same.tobytes() != other.tobytes()
    assert decode_inputs(manifest, {"x": one})[0].dtype == np.float64


def test_inputs_have_the_standard_deviation():
    manifest = replace(copy_manifest(), inputs=(BufferEntry("x", (256, 256), "f32", 0.125, None),))
    assert np.std(draw_inputs(manifest, 0)["x"]) == pytest.approx(0.125, rel=0.02)


def test_bf16_exact_values():
    kind = ELEMENT_TYPES["bf16"]
    values = [1.0, -2.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38 * 1.01, math.inf, math.nan]
    expected = [1.0, -2.0, 1.0, 1 + 2.0**-6, math.inf, math.inf, math.nan]
    decoded = kind.decode(kind.encode(np.array(values)))
    np.testing.assert_array_equal(decoded, expected)


@given(st.integers(0, 2**16 - 1))
def test_bf16_round_trip(bits: int):
    kind = ELEMENT_TYPES["bf16"]
    value = kind.decode(np.array([bits], np.uint16))
    expected = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    np.testing.assert_array_equal(value, [expected])
    if not math.isnan(expected):
        assert kind.encode(value)[0] == bits


@given(
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from(sorted(ELEMENT_TYPES)),
)
def test_unit_roundoff_bounds_rounding(value: float, name: str):
    kind = ELEMENT_TYPES[name]
    if abs(value) > kind.largest or (value != 0 and abs(value) < 2.0**-14):
        return
    rounded = float(kind.decode(kind.encode(np.array([value])))[0])
    assert abs(rounded - value) <= kind.unit_roundoff * abs(value)
