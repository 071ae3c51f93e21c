"""The options of measured tuning, and the commands that take them."""

import json
from pathlib import Path

import pytest

from prism.cli import tuning_options
from prism.cli.main import main
from prism.tune.executors import EXECUTORS
from prism.tune.measure import BACKENDS
from prism.tune.strategies import STRATEGIES

EXAMPLES = Path(__file__).parents[3] / "examples"
RMS_NORM = EXAMPLES / "rms_norm.mlir"


def test_the_options_name_what_exists():
    assert tuning_options.STRATEGIES == tuple(STRATEGIES)
    assert tuning_options.BACKENDS == tuple(BACKENDS)
    assert tuning_options.EXECUTORS == tuple(EXECUTORS)


def test_optimize_by_measured_points(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    arguments = [
        *("optimize", str(RMS_NORM), "--shape", "n=4,d=32", "--db", str(tmp_path / "t.db")),
        *("--strategy", "model", "--points", "6", "--executor", "serial", "--json"),
    ]
    assert main([*arguments, "-o", str(tmp_path / "bundle")]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["measured"]["points"] == 6
    assert first["measured"]["statuses"] == {"ok": 6}
    assert main(["run", str(tmp_path / "bundle")]) == 0
    capsys.readouterr()
    # Another seed is another request, whose points are known already.
    assert main([*arguments, "--seed", "1"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["measured"]["recalled"] == 6
    assert second["chosen"]["parameters"] == first["chosen"]["parameters"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["from_database"]


def test_too_large_to_simulate(capsys: pytest.CaptureFixture[str]):
    arguments = ["--shape", "n=4,d=8192", "--strategy", "model", "--executor", "serial"]
    assert main(["optimize", str(RMS_NORM), *arguments]) == 2
    assert "the simulator is given at most" in capsys.readouterr().err


@pytest.mark.parametrize("options", [("--points", "0"), ("--seconds", "-1"), ("--workers", "x")])
def test_bad_options(options: tuple[str, str]):
    with pytest.raises(SystemExit) as error:
        main(["optimize", str(RMS_NORM), "--shape", "n=4,d=32", *options])
    assert error.value.code == 2


def test_bench(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    output = tmp_path / "tune.json"
    arguments = ["bench", "tune", "--workload", "swiglu", "--sweep", "0", "-o", str(output)]
    assert main([*arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert json.loads(output.read_text())["rows"] == rows
    assert [row["shape"] for row in rows] == ["n=8,d=4096", "n=16,d=4096"]
    for row in rows:
        assert row["points"] > 1000
        assert row["model_us"] > 30  # 67 MB at 2 TB/s
    assert main(["bench", "tune", "--workload", "nothing"]) == 2
