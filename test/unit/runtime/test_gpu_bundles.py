"""`make gpu-bundles`: what is compiled, what is skipped with its reason, and what is a bug."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism.runtime.bundle import write_bundle

from .conftest import COPY_FILES, copy_manifest

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture
def gpu_bundles(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tool, with `prism optimize` replaced: attention is refused."""
    monkeypatch.syspath_prepend(str(TOOLS))
    module: Any = import_module("gpu_bundles")

    def optimize(command: list[str], **options: object) -> Any:
        if "/attention.mlir" in command[2]:
            text = f"{module.ROOT}/examples/attention.mlir:9:1: error: nothing fits\n"
            return SimpleNamespace(returncode=1, stderr=text)
        if "/swiglu.mlir" in command[2]:
            return SimpleNamespace(returncode=70, stderr="internal error")
        write_bundle(Path(command[command.index("-o") + 1]), copy_manifest(), COPY_FILES)
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(module.subprocess, "run", optimize)
    return module


def test_bundles_and_an_index(gpu_bundles: Any, tmp_path: Path, capsys: Any):
    folder = tmp_path / "gpu"
    write_bundle(folder / "old", copy_manifest(), COPY_FILES)
    wanted = ["--workload", "rms_norm", "--workload", "attention"]
    assert gpu_bundles.main(["-o", str(folder), "--target", "sm_80", *wanted]) == 0
    assert "skipped: examples/attention.mlir:9:1: error: nothing fits" in capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == [
        "index.json",
        "rms_norm-n8-d1024-sm_80",
        "rms_norm-n8-d4096-sm_80",
    ]
    index = sys.modules["gpucheck.index"].read_index(folder)
    rows = [(each.workload, each.bundle, each.reason) for each in index.configurations]
    reason = "examples/attention.mlir:9:1: error: nothing fits"
    assert rows == [
        ("rms_norm", "rms_norm-n8-d4096-sm_80", None),
        ("rms_norm", "rms_norm-n8-d1024-sm_80", None),
        ("attention", None, reason),
        ("attention", None, reason),
    ]


def test_nothing_compiled_is_a_failure(gpu_bundles: Any, tmp_path: Path):
    assert gpu_bundles.main(["-o", str(tmp_path), "--workload", "attention"]) == 1


def test_an_internal_error_is_no_reason_to_skip(gpu_bundles: Any, tmp_path: Path):
    with pytest.raises(SystemExit, match="internal error"):
        gpu_bundles.main(["-o", str(tmp_path), "--workload", "swiglu"])


def test_the_size_limit(gpu_bundles: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu_bundles, "MAX_BYTES", 100)
    assert gpu_bundles.main(["-o", str(tmp_path), "--workload", "rms_norm"]) == 1


def test_the_papers_ten_configurations(gpu_bundles: Any):
    assert len(set(map(str, gpu_bundles.CONFIGURATIONS))) == 10
