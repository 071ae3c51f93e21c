"""
Runs the lit tests inside pytest: one lit process for all of them, one pytest result per file.
(`--dist loadfile` keeps this file in one worker, so that there is one lit process.)

So a failing lit test fails `make test`, and pytest's summary line counts all tests.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = sorted(
    str(path.relative_to(ROOT / "test"))
    for path in (ROOT / "test").rglob("*.mlir")
    if "unit" not in path.relative_to(ROOT / "test").parts and "Inputs" not in path.parts
)


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Of each lit test: its result code and its output."""
    report = tmp_path_factory.mktemp("lit") / "report.json"
    lit = Path(sys.executable).parent / "lit"
    run = subprocess.run(
        [lit, "-j2", "-q", "--output", report, ROOT / "test"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert report.exists(), run.stdout + run.stderr
    tests = json.loads(report.read_text())["tests"]
    return {t["name"].removeprefix("Prism :: "): (t["code"], t["output"]) for t in tests}


@pytest.mark.parametrize("name", TESTS)
def test_lit(name: str, outcomes: dict[str, tuple[str, str]]) -> None:
    code, output = outcomes[name]
    assert code == "PASS", output
