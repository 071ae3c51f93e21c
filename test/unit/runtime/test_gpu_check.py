"""`tools/gpu_check`: end to end in the simulator; its GPU half on a torch made of numpy."""

import ctypes
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from prism.runtime.bundle import Bundle, write_bundle

from .conftest import COPY_FILES, COPY_PTX, copy_manifest
from .fake_torch import FakeLoaded, FakeTorch

TOOLS = Path(__file__).parents[3] / "tools"
SCRIPT = TOOLS / "gpu_check"


@pytest.fixture(scope="module")
def gpucheck() -> Any:
    """The package of the tool, which no installation has."""
    sys.path.insert(0, str(TOOLS))
    try:
        import_module("gpucheck.main")
    finally:
        sys.path.remove(str(TOOLS))
    return sys.modules["gpucheck"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a right bundle, a wrong one, and a configuration without one."""
    folder = tmp_path / "bundles"
    write_bundle(folder / "a-right", copy_manifest(), COPY_FILES)
    wrong = {**COPY_FILES, "copy.ptx": COPY_PTX.replace("%r1, 2;", "%r1, 0;").encode()}
    write_bundle(folder / "b-wrong", copy_manifest(), wrong)
    left_out = {"workload": "attention", "shape": {"h": 8}, "target": "sm_80", "bundle": None}
    index = {"configurations": [{**left_out, "reason": "no kernels for it"}]}
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def run(*arguments: object, prelude: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run([str(a) for a in command], capture_output=True, text=True, check=False)


def test_dry_run(folder: Path, tmp_path: Path):
    output = tmp_path / "out" / "check.json"
    ran = run("--dry-run", folder, "-o", output)
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr == ""
    result = json.loads(output.read_text())
    assert result["machine"]["launch"] == "simulator"
    right, wrong, skipped = result["rows"]
    assert (right["ok"], wrong["ok"], skipped["ok"]) == (True, False, None)
    assert right["floor_bytes"] == 128
    assert [kernel["block"] for kernel in right["kernels"]] == [[32, 1, 1]]
    assert right["max_rel_err"] <= right["tolerance"]
    # nothing was timed, so no time is given
    assert {right[key] for key in ("prism_us", "eager_us", "compile_us", "prism_over_floor")} == {
        None
    }
    assert wrong["error"] == "output 'out0' wrong at [0, 1], 31 NaN"
    assert skipped["skipped"] == "no kernels for it"
    for word in ("WRONG", "skipped", "copy n=4: error: output 'out0' wrong at [0, 1], 31 NaN"):
        assert word in ran.stdout


def test_one_bundle(folder: Path, tmp_path: Path):
    ran = run("--dry-run", folder / "a-right", "-o", tmp_path / "x.json")
    assert ran.returncode == 0, ran.stderr
    assert len(json.loads((tmp_path / "x.json").read_text())["rows"]) == 1


def test_it_needs_neither_xdsl_nor_egglog(folder: Path, tmp_path: Path):
    code = (
        "import sys\n"
        "for name in ('xdsl', 'egglog', 'sympy', 'rich', 'torch'): sys.modules[name] = None\n"
        f"sys.path[:0] = [{str(TOOLS.parent)!r}, {str(TOOLS)!r}]\n"
        "import io; from gpucheck.worker import work\n"
        "pipe = io.StringIO()\n"
        f"work('kernels', [{str(folder / 'a-right')!r}], 0, True, pipe)\n"
        "print(pipe.getvalue())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    machine, row = map(json.loads, ran.stdout.split("\n")[:2])
    assert machine["machine"]["torch"] is None
    assert row["ok"] is True
    assert row["reference"] == "numpy"


def test_bad_input(folder: Path, tmp_path: Path):
    for argument, message in (
        (tmp_path / "none", "no bundles found"),
        (folder / "damaged", "damaged"),
        (tmp_path / "index", "not an index of bundles"),
    ):
        if argument.name == "damaged":
            shutil.copytree(folder / "a-right", argument)
            (argument / "copy.ptx").write_bytes(b"")
        if argument.name == "index":
            shutil.copytree(folder, argument)
            (argument / "index.json").write_text('{"configurations": [3]}')
        ran = run("--dry-run", argument, "-o", tmp_path / "x.json")
        assert ran.returncode == 2
        assert ran.stderr.startswith("gpu_check: error: ")
        assert message in ran.stderr
        assert not (tmp_path / "x.json").exists()


def test_no_driver_is_said_at_once(gpucheck: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    def missing(name: str) -> object:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    monkeypatch.setattr(gpucheck.main, "Supervisor", None)  # no worker is started
    assert gpucheck.main.main([]) == 2
    assert "no NVIDIA driver on this machine" in capsys.readouterr().err


WORKER = """
import json, os, signal, sys, time
arguments = sys.argv[1:]
phase, pipe, paths = arguments[1], int(arguments[3]), arguments[4:]
def send(row): os.write(pipe, (json.dumps(row) + "\\n").encode())
if "refuse" in paths: send({"refused": "no torch"}); sys.exit()
if "stillborn" in paths: sys.exit("bad import")
send({"machine": {"gpu": "fake"}})
for path in paths:
    if path == "hang": time.sleep(100)
    if path == "die": print("Traceback\\nillegal address", file=sys.stderr); os.abort()
    if path == "fault":
        send({"path": path, "ok": False, "error": "fault", "last": True}); sys.exit(1)
    send({"path": path, "ok": True} if phase == "kernels" else {"path": path, "compile": {"n": 1}})
"""


@pytest.fixture
def supervise(gpucheck: Any, tmp_path: Path) -> Callable[..., Any]:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)

    def make(limit: float = 30.0) -> Any:
        command = [sys.executable, str(script)]
        deadline = time.monotonic() + 60
        return gpucheck.supervise.Supervisor(command, deadline, bundle_limit=limit)

    return make


def test_a_worker_that_dies_costs_one_bundle(supervise: Callable[..., Any]):
    supervisor = supervise()
    supervisor.run("kernels", ["a", "fault", "b", "die", "c"])
    assert supervisor.machine == {"gpu": "fake"}
    assert [supervisor.rows[name]["ok"] for name in ("a", "fault", "b", "die", "c")] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert supervisor.rows["fault"]["error"] == "fault"
    assert supervisor.rows["die"]["error"] == "the worker ended with SIGABRT: illegal address"
    supervisor.run("compiled", ["a", "die"])
    assert supervisor.rows["a"] == {"ok": True, "compile": {"n": 1}}
    assert "SIGABRT" in supervisor.rows["die"]["compile"]["error"]


def test_a_worker_that_hangs_costs_one_bundle(supervise: Callable[..., Any]):
    supervisor = supervise(limit=1.0)
    supervisor.run("kernels", ["a", "hang", "b"])
    assert supervisor.rows["hang"] == {"ok": False, "error": "no answer within 1 s"}
    assert supervisor.rows["b"] == {"ok": True}


def test_the_deadline_skips_what_is_left(supervise: Callable[..., Any]):
    supervisor = supervise()

    def expire(text: str) -> None:
        if text.endswith("hang"):
            supervisor.deadline = time.monotonic()

    supervisor.progress = expire
    supervisor.run("kernels", ["a", "hang", "b"])
    assert supervisor.rows["a"] == {"ok": True}
    assert supervisor.rows["hang"] == {"late": "time limit reached"}
    assert supervisor.rows["b"] == {"late": "time limit reached before kernels"}


def test_a_machine_that_cannot(gpucheck: Any, supervise: Callable[..., Any]):
    with pytest.raises(gpucheck.supervise.Refused, match="no torch"):
        supervise().run("kernels", ["refuse"])
    supervisor = supervise()
    supervisor.run("kernels", ["stillborn", "a"])
    message = "the worker ended with exit status 1: bad import"
    assert supervisor.rows == {n: {"ok": False, "error": message} for n in ("stillborn", "a")}


@pytest.fixture
def torch(gpucheck: Any, monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    fake = FakeTorch()
    monkeypatch.setattr(gpucheck.worker, "find_torch", lambda: fake)
    monkeypatch.setattr(gpucheck.worker, "LoadedBundle", FakeLoaded)
    monkeypatch.setattr(FakeLoaded, "torch", fake, raising=False)
    return fake


def test_on_a_gpu(gpucheck: Any, torch: FakeTorch, copy_bundle: Bundle):
    gpu = gpucheck.worker.OnGpu(0)
    machine = gpu.machine()
    assert machine["gpu"] == "Fake GPU"
    # (1 << 20) // 8 bytes are read and written in 0.5 ms
    assert machine["copy_bytes_per_s"] == pytest.approx(2 * (1 << 17) / 0.0005)
    torch.replays = 0
    row = gpu.kernels(copy_bundle)
    assert row["ok"] is True
    assert (row["reference"], row["image"]) == ("torch", "ptx")
    # 64 bytes of inputs, 100 of L2: 6 copies in a graph of 0.5 ms
    assert row["prism"] == {"median_us": 500 / 6, "least_us": 500 / 6, "replays": 40, "copies": 6}
    assert row["eager"]["copies"] == 6
    # both graphs warm up and are timed; ours runs once more on poisoned outputs
    assert torch.replays == 2 * (3 + 40) + 1
    assert gpu.compiled(copy_bundle)["compile"]["copies"] == 6
    torch.compiles = False
    assert gpu.compiled(copy_bundle) == {"compile": {"error": "Unsupported: the operator"}}


def test_wrong_kernels_are_not_timed(
    gpucheck: Any,
    torch: FakeTorch,
    copy_bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    gpu = gpucheck.worker.OnGpu(0)
    wrong = {**COPY_FILES, "copy.ptx": COPY_PTX.replace("%r1, 2;", "%r1, 0;").encode()}
    row = gpu.kernels(write_bundle(tmp_path / "wrong", copy_manifest(), wrong))
    assert row["ok"] is False
    assert "31 NaN" in row["error"]
    assert "prism" not in row
    monkeypatch.setattr(FakeLoaded, "writes_input", True)
    assert gpu.kernels(copy_bundle)["error"] == "inputs changed: x"
    monkeypatch.setattr(FakeLoaded, "writes_input", False)
    monkeypatch.setattr(FakeLoaded, "broken", True)
    row = gpu.kernels(copy_bundle)
    assert (row["ok"], row["error"]) == (False, "wrong in a replayed graph")


def test_no_torch_or_gpu(gpucheck: Any, torch: FakeTorch, monkeypatch: pytest.MonkeyPatch):
    import io

    torch.available = False
    pipe = io.StringIO()
    gpucheck.worker.work("kernels", [], 0, False, pipe)
    assert json.loads(pipe.getvalue()) == {"refused": "torch sees no GPU on this machine"}
    monkeypatch.setattr(gpucheck.worker, "find_torch", lambda: None)
    pipe = io.StringIO()
    gpucheck.worker.work("kernels", [], 0, False, pipe)
    assert json.loads(pipe.getvalue()) == {"refused": "torch is not installed on this machine"}


@pytest.mark.parametrize(
    ("nbytes", "l2", "budget", "copies"),
    [
        (2 << 20, 50 << 20, 1 << 34, 76),
        (64 << 20, 50 << 20, 1 << 34, 4),
        (1, 50 << 20, 1 << 34, 128),
        (1 << 30, 50 << 20, 1 << 28, 1),
        (1 << 30, 1 << 40, 3 << 30, 3),
    ],
)
def test_copies_exceed_the_cache(gpucheck: Any, nbytes: int, l2: int, budget: int, copies: int):
    assert gpucheck.timing.copies_for(nbytes, l2, budget) == copies


def test_a_row_with_times(gpucheck: Any, copy_bundle: Bundle):
    report: ModuleType = sys.modules["gpucheck.report"]
    found = {
        "ok": True,
        "prism": {"median_us": 4.0},
        "eager": {"median_us": 10.0},
        "compile": {"error": "no"},
    }
    row = report.make_row(copy_bundle.manifest, found, 64e6)
    assert (row["floor_us"], row["prism_over_floor"], row["eager_over_prism"]) == (2.0, 2.0, 2.5)
    assert (row["compile_us"], row["compile_over_prism"], row["compile_error"]) == (
        None,
        None,
        "no",
    )
    text = report.table({"gpu": "G", "copy_bytes_per_s": 64e6}, [row])
    assert "4.00" in text
    assert "copy n=4: compile error: no" in text
