"""`prism bench codegen`: the bars, and one configuration measured."""

import json

import pytest

from prism.cli.bench_codegen import CONFIGURATIONS, EXAMPLES, missed
from prism.cli.main import main

GOOD = {
    "dram_bytes": 104,
    "floor_bytes": 100,
    "wide_access_share": 1.0,
    "conflict_share": 0.0,
    "registers": 64,
    "spill_bytes": 0,
    "bytes_in_flight": 32768,
    "blocks": 108,
}


@pytest.mark.parametrize(
    ("change", "kernels", "expected"),
    [
        ({}, 1, []),
        ({"dram_bytes": 106}, 1, ["dram_bytes"]),
        ({"dram_bytes": 106}, 2, []),
        ({"wide_access_share": 0.9}, 1, ["wide_access_share"]),
        ({"conflict_share": 0.03}, 1, ["conflict_share"]),
        ({"registers": 169}, 1, ["registers"]),
        ({"spill_bytes": 4}, 1, ["registers"]),
        # a kernel that has less to read than what must be in flight
        ({"bytes_in_flight": 100}, 1, []),
        ({"bytes_in_flight": 99}, 1, ["bytes_in_flight"]),
        ({"blocks": 107}, 1, ["blocks"]),
    ],
)
def test_bars(change, kernels, expected):
    assert missed(GOOD | change, kernels, 108) == expected


def test_configurations_are_the_papers():
    assert len(set(CONFIGURATIONS)) == 10
    assert all((EXAMPLES / f"{name}.mlir").exists() for name, _ in CONFIGURATIONS)


def test_one_workload(tmp_path, capsys):
    """The kernel at n = 8, d = 1024 reads every byte once, by copies of 16 bytes."""
    output = tmp_path / "codegen.json"
    arguments = ["--workload", "rms_norm", "--target", "sm_80", "-o", str(output)]
    assert main(["bench", "codegen", *arguments]) == 0
    rows = json.loads(output.read_text())["rows"]
    assert [row["shape"] for row in rows] == ["n=8,d=4096", "n=8,d=1024"]
    for row in rows:
        assert set(row["missed"]) <= {"blocks"}
        assert row["dram_bytes"] == row["floor_bytes"]
        assert row["triton"] is None
    assert rows[0]["flops"] == 2 * 8 * 4096 * 4096
    assert "rms_norm" in capsys.readouterr().out


def test_unknown_workload(capsys):
    assert main(["bench", "codegen", "--workload", "gelu"]) == 2
    assert "unknown workload 'gelu'" in capsys.readouterr().err
