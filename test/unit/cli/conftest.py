"""Runs `prism` in process: status, output and diagnostics of one command."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from prism.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
RMS_NORM = EXAMPLES / "rms_norm.mlir"


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


Prism = Callable[..., Outcome]


@pytest.fixture
def prism(capsys: pytest.CaptureFixture[str]) -> Prism:
    def run(*arguments: object) -> Outcome:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as error:
            status = int(error.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of rms_norm at n=5, d=96."""
    path = tmp_path_factory.mktemp("bundles") / "rms_norm"
    assert main(["optimize", str(RMS_NORM), "--shape", "n=5,d=96", "-o", str(path)]) == 0
    return path
