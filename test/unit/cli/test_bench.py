"""`prism bench search`: its rows, its limits, and the workloads that grow."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from prism.cli import bench_search
from prism.cli.bench_stacked import BLOCKS, exponent, stacked_mlp
from prism.cli.environment import make_context
from prism.cli.source import parse_text
from prism.search.from_ir import UnsupportedError, read_workload, workload_funcs
from prism.search.stopwatch import Stopwatch

from .conftest import EXAMPLES, Prism

MATMUL = EXAMPLES / "matmul.mlir"


def test_a_row_per_workload(prism: Prism):
    result = prism("bench", "search", MATMUL, "--json")
    assert (result.status, result.err) == (0, "")
    data = json.loads(result.out)
    (row,) = data["workloads"]
    assert row["workload"] == "matmul"
    assert list(row["seconds"]) == ["egraph", "generate", "maps", "verify"]
    assert all(seconds >= 0 for seconds in row["seconds"].values())
    assert row["total"] == pytest.approx(sum(row["seconds"].values()), abs=1e-4)
    assert row["seconds"]["egraph"] > 0
    assert row["proven"] == row["typed"] > 0
    assert (row["unknown"], row["not_proven"], row["paper"]) == (0, 0, None)
    assert data["machine"]["cpus"] >= 1


def test_the_papers_numbers_stand_beside_ours(prism: Prism, monkeypatch):
    monkeypatch.setattr(bench_search, "REPEATS", 0)
    result = prism("bench", "search", EXAMPLES / "swiglu.mlir")
    assert result.status == 0
    header, row = result.out.splitlines()
    assert header.split()[:3] == ["workload", "egraph", "s"]
    assert row.split()[0] == "swiglu"
    assert row.split()[-2:] == ["1", "12"]


def test_a_workload_that_is_not_supported_is_said(prism: Prism, monkeypatch):
    def refuse(func):
        raise UnsupportedError("the search does not know kernel.fold")

    monkeypatch.setattr(bench_search, "read_workload", refuse)
    result = prism("bench", "search", MATMUL)
    assert result.status == 0
    assert "matmul: the search does not know kernel.fold" in result.out


def test_a_time_limit_ends_a_row_and_fails(prism: Prism, monkeypatch):
    def spin(module, context):
        while True:
            time.sleep(0.001)

    monkeypatch.setattr(bench_search, "search_once", spin)
    result = prism("bench", "search", MATMUL, "--time-limit", "0.05", "--json")
    assert result.status == 1
    (row,) = json.loads(result.out)["workloads"]
    assert row["error"] == "time limit of 0.05 s reached"
    assert row["total"] is None


@pytest.mark.parametrize("limit", ["0", "-1", "x"])
def test_a_bad_limit_is_bad_usage(limit, prism: Prism):
    assert prism("bench", "search", MATMUL, "--time-limit", limit).status == 2


def test_a_file_without_a_workload_is_bad_input(prism: Prism, tmp_path: Path):
    file = tmp_path / "empty.mlir"
    file.write_text("func.func private @f()\n")
    result = prism("bench", "search", file)
    assert result.status == 2
    assert result.err.startswith(f"{file}:1:")
    assert "expected a workload function, found none" in result.err


def test_the_ablation_has_the_papers_rows(prism: Prism):
    result = prism("bench", "search", MATMUL, "--ablation", "--json")
    assert result.status == 0
    rows = json.loads(result.out)["ablation"]
    switches = ["".join(row[kind] for kind in ("imap", "fmap", "omap")) for row in rows]
    assert switches == ["SSS", "CSS", "SCS", "SSC", "CCC"]
    assert all(row["complete"] and row["typed"] == rows[0]["typed"] for row in rows)
    assert all(row["states"] > rows[0]["states"] for row in rows[1:])


def test_the_limit_of_a_row_of_the_ablation_holds(prism: Prism):
    result = prism(
        "bench", "search", EXAMPLES / "rms_norm_mlp.mlir", "--ablation", "--time-limit", "0.1"
    )
    assert result.status == 0
    assert result.out.count("> 0.1") == 5


@pytest.mark.parametrize("blocks", BLOCKS[:3])
def test_stacked_blocks_are_workloads(blocks):
    module = parse_text("stacked", stacked_mlp(blocks), make_context())
    module.verify()
    (func,) = workload_funcs(module)
    assert len(func.args) == 1 + 3 * blocks
    workload = read_workload(func)
    terms = workload.table.topological(workload.outputs)
    assert len(terms) == 5 * blocks + 1 + 3 * blocks


def test_a_stopwatch_adds_up_calls_and_what_fails():
    watch = Stopwatch()

    def divide(a: float, b: float) -> float:
        time.sleep(0.01)
        return a / b

    timed = watch.times(divide)
    assert timed(6, b=3) == 2
    first = watch.seconds
    assert first >= 0.01
    with pytest.raises(ZeroDivisionError):
        timed(1, 0)
    assert watch.seconds >= first + 0.01


def test_the_exponent_of_growth():
    assert exponent([(k, 0.5 * k**1.3) for k in BLOCKS]) == 1.3
    assert exponent([(4, 2.0)]) is None
    assert exponent([]) is None
