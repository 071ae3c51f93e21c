"""`prism optimize` for a range of shapes, and `prism run` and `load` of its bundle."""

import json
from pathlib import Path

import numpy as np
import pytest

from prism.runtime import LoadedRange, load
from prism.runtime.check import decode_inputs, draw_inputs
from prism.runtime.ranged import load_ranged

from .conftest import RMS_NORM, Prism


def test_a_range_from_end_to_end(prism: Prism, tmp_path: Path):
    path = tmp_path / "range"
    result = prism("optimize", RMS_NORM, "--shape", "n=7..10,d=512", "-o", path, "--json")
    assert (result.status, result.err) == (0, "")
    data = json.loads(result.out)
    assert data["range"] == {"symbol": "n", "first": 7, "last": 10}
    assert data["shape"] == {"d": 512}
    assert data["kernels"] == 4
    dispatch = data["dispatch"]
    assert len(dispatch) == 2
    served = [n for each in dispatch for n in range(each["first"], each["last"] + 1)]
    assert served == [7, 8, 9, 10]
    assert all(each["worst_over_best"] <= 1.05 for each in dispatch)

    ends = prism("run", path, "--json")
    assert ends.status == 0
    ran = json.loads(ends.out)
    assert ran["ok"]
    expected = sorted({each[end] for each in dispatch for end in ("first", "last")})
    assert [each["shape"]["n"] for each in ran["shapes"]] == expected
    assert prism("run", path).out.endswith(f"n={', '.join(map(str, expected))}: ok\n")
    one = prism("run", path, "--shape", "n=9")
    assert (one.status, one.out.splitlines()[-1]) == (0, "ok")
    assert "d=512, n=9" in one.out
    outside = prism("run", path, "--shape", "n=11")
    assert outside.status == 2
    assert "n=11: the bundle is for n=7..10,d=512" in outside.err

    loaded, bundle = load(path), load_ranged(path)
    assert isinstance(loaded, LoadedRange)
    for n in (7, 8, 10):
        manifest = bundle.bundles[n].manifest
        arrays = draw_inputs(manifest, n)
        x, w = decode_inputs(manifest, arrays)
        output = loaded(*(arrays[entry.name] for entry in manifest.inputs))
        wanted = x @ w / np.sqrt(np.mean(x * x, axis=-1, keepdims=True))
        np.testing.assert_allclose(output, wanted, atol=4e-3, rtol=4e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shape", "n=1..65,d=128"), "n=1..65 has 65 sizes; a bundle takes at most 64"),
        (("--shape", "n=1..2,d=1..2"), "expected one range, found 2"),
        (("--shape", "n=1..2"), "size 'd' has no value in --shape"),
        (("--shape", "n=1..2,d=8", "--set", "warps=4"), "--set is for one shape"),
        (("--shape", "n=1..2,d=8", "--graph", "g"), "--graph is for one shape"),
        (("--shape", "n=1..2,d=8", "--strategy", "model"), "--strategy is for one shape"),
    ],
)
def test_bad_ranges(prism: Prism, options: tuple[str, ...], message: str):
    result = prism("optimize", RMS_NORM, *options)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
