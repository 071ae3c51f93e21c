"""`prism optimize`, `run` and `verify`: outputs, JSON, exit status, one-line diagnostics."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from prism.cli import run as run_module
from prism.runtime.bundle import load_bundle
from prism.runtime.check import Comparison

from .conftest import EXAMPLES, RMS_NORM, Prism


def test_families_without_a_shape(prism: Prism):
    result = prism("optimize", RMS_NORM)
    assert result.status == 0
    assert "12 found, 12 proven, 0 not proven, 0 unknown" in result.out
    assert re.search(r"^rms_norm__g5 +x +i +equal$", result.out, re.MULTILINE)
    data = json.loads(prism("optimize", RMS_NORM, "--json").out)
    assert data["graphs"] == {"found": 12, "proven": 12, "not_proven": 0, "unknown": 0}
    assert (data["shape"], data["chosen"], data["kernels"]) == (None, None, [])
    assert list(data["stages"]) == ["generate", "prune", "instantiate-maps", "verify"]


def test_optimize_json(prism: Prism):
    result = prism("optimize", RMS_NORM, "--shape", "n=5,d=96", "--target", "sm_90", "--json")
    assert (result.status, result.err) == (0, "")
    data = json.loads(result.out)
    assert (data["workload"], data["target"]) == ("rms_norm", "sm_90")
    assert data["shape"] == {"n": 5, "d": 96}
    assert list(data["stages"]) == [
        "generate",
        "prune",
        "instantiate-maps",
        "verify",
        "tune",
        "lower-to-thread",
        "lower-to-cuda",
        "emit-ptx",
        "assemble",
    ]
    chosen = data["chosen"]
    assert {"matmul", "square", "sum", "div"} <= set(chosen["operators"])
    assert set(chosen["maps"]) == {"x", "w", "out"}
    assert chosen["parameters"]["warps"] in (1, 2, 4, 8)
    (kernel,) = data["kernels"]
    assert kernel["name"] == f"{chosen['name']}_k0"
    assert kernel["ptx"].startswith(".version")
    assert ".target sm_90" in kernel["ptx"]
    assert kernel["block"] == [32 * chosen["parameters"]["warps"], 1, 1]
    assert kernel["spill_bytes"] == 0
    assert 0 < kernel["registers"] <= 255


def test_overrides_reach_the_kernel(prism: Prism):
    result = prism(
        *("optimize", RMS_NORM, "--shape", "n=5,d=96", "--json"),
        *("--graph", "rms_norm__g5", "--set", "tile.x=32,loop.i=3,warps=2"),
    )
    data = json.loads(result.out)
    assert data["chosen"]["name"] == "rms_norm__g5"
    assert data["chosen"]["parameters"]["grid.x"] == 3
    assert data["chosen"]["parameters"]["tile.i"] == 32
    assert data["kernels"][0]["grid"] == [3, 1, 1]
    assert data["kernels"][0]["block"] == [64, 1, 1]


def test_bundle_runs(prism: Prism, bundle: Path):
    result = prism("run", bundle)
    assert (result.status, result.err) == (0, "")
    assert result.out.endswith("\nok\n")
    data = json.loads(prism("run", bundle, "--seed", "3", "--json").out)
    assert data["ok"] is True
    assert data["backend"] == "sim"
    assert 0 < data["max_rel_err"] <= data["tolerance"] < 0.01
    assert data["max_abs_err"] > 0
    (kernel,) = data["kernels"]
    assert kernel["floor_bytes"] == 2 * (5 * 96 + 96 * 96 + 5 * 96)
    assert kernel["dram_read_bytes"] >= 2 * (5 * 96 + 96 * 96)
    assert kernel["global_write_bytes"] == 2 * 5 * 96
    assert kernel["instructions"] == sum(kernel["instructions_by_kind"].values())


def test_manifest_of_a_bundle(bundle: Path):
    manifest = load_bundle(bundle).manifest
    assert manifest.workload == "rms_norm"
    assert [entry.name for entry in manifest.inputs] == ["x", "w"]
    assert manifest.inputs[0].std == 1.0
    assert manifest.inputs[1].std == pytest.approx(96**-0.5)
    (output,) = manifest.outputs
    assert (output.name, output.shape, output.reduction_length) == ("o", (5, 96), 96)
    (step,) = manifest.steps
    assert step.arguments == ("x", "w", "o")
    assert "kernel.graph_def" in manifest.graph.text


def test_run_of_a_file(prism: Prism):
    result = prism("run", EXAMPLES / "matmul.mlir", "--shape", "n=3,k=40,m=24", "--json")
    assert json.loads(result.out)["ok"] is True


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("matmul", "n=7,k=100,m=130"),
        ("matmul", "n=64,k=512,m=256"),
        ("rms_norm", "n=1,d=128"),
        ("rms_norm_mlp", "n=16,d=128"),
        ("swiglu", "n=9,d=72"),
    ],
)
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_workloads_are_right(prism: Prism, name: str, shape: str, target: str):
    result = prism("run", EXAMPLES / f"{name}.mlir", "--shape", shape, "--target", target, "--json")
    assert (result.status, result.err) == (0, "")
    assert json.loads(result.out)["ok"] is True


def test_a_wrong_result_fails(prism: Prism, bundle: Path, monkeypatch: pytest.MonkeyPatch):
    original = run_module.reference_outputs

    def shifted(*arguments: Any) -> list[Any]:
        return [reference + 0.05 for reference in original(*arguments)]

    monkeypatch.setattr(run_module, "reference_outputs", shifted)
    result = prism("run", bundle)
    assert result.status == 1
    assert result.out.endswith("\nFAILED\n")
    data = json.loads(prism("run", bundle, "--json").out)
    assert data["ok"] is False
    assert data["max_rel_err"] > data["tolerance"]


def test_infinite_errors_are_null_in_json():
    from prism.runtime.launch import Run

    inf = float("inf")
    comparison = Comparison("o", inf, inf, 0.1, (0,), 1)
    data = run_module.as_json(False, Run("sim", {}, (), ()), [comparison])
    assert json.loads(json.dumps(data, allow_nan=False))["max_abs_err"] is None


def test_every_file_of_a_bundle_is_checked(prism: Prism, bundle: Path, tmp_path: Path):
    for name in sorted(path.name for path in bundle.iterdir()):
        copy = tmp_path / name
        shutil.copytree(bundle, copy)
        data = bytearray((copy / name).read_bytes())
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(data)
        result = prism("run", copy)
        assert (result.status, result.out) == (2, "")
        assert f"{copy / name}: damaged" in result.err
        assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "place", "message"),
    [
        (("--shape", "n=8"), "3:37", "size 'd' has no value"),
        (("--shape", "n=8,d=0"), "3:37", "--shape: size 'd' must be positive, found 0"),
        (("--shape", "n=-8,d=4"), "3:34", "--shape: size 'n' must be positive, found -8"),
        (("--shape", "n=8;d=4"), "6:1", "--shape, character 1: expected NAME=INTEGER"),
        (("--shape", "n=8,d=4,q=1"), "6:1", "--shape names 'q', which is no size"),
        (("--shape", "n=8,d=64", "--target", "sm_1"), "6:1", "unknown target 'sm_1' (known: sm_80"),
        (("--target", "sm_1"), "6:1", "unknown target 'sm_1' (known: sm_80"),
        (("--shape", "n=8,d=64", "--graph", "g"), "6:1", "no candidate graph @g"),
        (("--shape", "n=8,d=64", "--set", "warps=3"), "6:1", "warps=3: expected one of 1, 2, 4, 8"),
        (("--shape", "n=8,d=64", "--set", "a"), "6:1", "--set, character 1: expected NAME=INTEGER"),
        (("-o", "somewhere"), "6:1", "need --shape with a size for n, d"),
    ],
)
def test_bad_requests(prism: Prism, arguments: tuple[str, ...], place: str, message: str):
    result = prism("optimize", RMS_NORM, *arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"{RMS_NORM}:{place}: error: ")
    assert message in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kernel.matmul", "kernel.conv", "8:8: error: Operation kernel.conv is not registered"),
        ("f16", "f64", "7:3: error: kernel.rms_norm: operand input: expected element type f16"),
        (
            "f16",
            "f32",
            "8:3: error: kernel.matmul: no kernels for element type f32: expected f16 or bf16",
        ),
        ("[d, d]", "[d, e]", "8:3: error: kernel.matmul: result: expected shape [n, e]"),
        (
            "func.func @rms_norm",
            "func.func private @f() -> ()\nfunc.func @g",
            "7:1: error: expected one",
        ),
    ],
)
def test_bad_files(prism: Prism, tmp_path: Path, old: str, new: str, message: str):
    path = tmp_path / "bad.mlir"
    path.write_text(RMS_NORM.read_text().replace(old, new))
    result = prism("optimize", path, "--shape", "n=8,d=64")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"{path}:{message}")
    assert result.err.count("\n") == 1


def test_no_workload(prism: Prism, tmp_path: Path):
    path = tmp_path / "bad.mlir"
    path.write_text("builtin.module {}")
    result = prism("optimize", path)
    assert (result.status, result.err) == (
        2,
        f"{path}:1:1: error: expected a workload function (func.func), found none\n",
    )


def test_output_that_is_no_bundle_is_refused_before_work(prism: Prism, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").touch()
    result = prism("optimize", RMS_NORM, "--shape", "n=8,d=64", "-o", tmp_path / "mine")
    assert (result.status, result.out) == (2, "")
    assert "exists and is not a bundle" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_nothing_is_written_when_the_job_fails(prism: Prism, tmp_path: Path):
    output = tmp_path / "b"
    result = prism(
        "optimize", RMS_NORM, "--shape", "n=8,d=64", "-o", output, "--time-limit", "0.01"
    )
    assert result.status == 1
    assert "time limit of 0.01 s reached" in result.err
    assert result.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_time_limit(prism: Prism):
    result = prism("optimize", RMS_NORM, "--shape", "n=8,d=64", "--time-limit", "0.001")
    assert result.status == 1
    assert "time limit of 0.001 s reached" in result.err


def test_cuda_without_a_driver(prism: Prism, bundle: Path):
    result = prism("run", bundle, "--backend", "cuda")
    if result.status != 0:
        assert result.status == 2
        assert "backend 'cuda'" in result.err
        assert result.err.count("\n") == 1


def test_bad_ptx_is_an_internal_error_that_names_the_op(
    prism: Prism, monkeypatch: pytest.MonkeyPatch
):
    from prism.codegen import emit

    original = emit.emit_module

    def corrupted(module: ModuleOp) -> list[emit.EmittedKernel]:
        return [
            replace(kernel, ptx=kernel.ptx.replace("bar.sync", "bar.snyc"))
            for kernel in original(module)
        ]

    monkeypatch.setattr(emit, "emit_module", corrupted)
    monkeypatch.delenv("PRISM_TRACEBACK", raising=False)
    result = prism("optimize", RMS_NORM, "--shape", "n=8,d=64")
    assert result.status == 70
    assert re.search(r"PTX line \d+: .*\(printed by `cuda\.barrier", result.err)


def test_too_large_to_check(prism: Prism, bundle: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_module, "MAX_ELEMENTS", 100)
    result = prism("run", bundle)
    assert (result.status, result.out) == (2, "")
    assert "a check against float64 takes at most 100" in result.err


def test_run_options(prism: Prism, bundle: Path, tmp_path: Path):
    assert "a bundle has its shape" in prism("run", bundle, "--shape", "n=1").err
    assert prism("run", bundle, "--seed", "-1").status == 2
    assert "No such file" in prism("run", tmp_path / "none").err
    assert "manifest.json: No such file" in prism("run", tmp_path).err


GRAPH = """
!x = tensor<?x?xf16, #sym.shape<[n, k]>>
!w = tensor<?x?xf16, #sym.shape<[k, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>
func.func @mine(%x: !x, %w: !w) -> !o {
  %o = kernel.graph_def grid [x] loop [] (%a = %x : !x, %b = %w : !w) -> !o {
    %s = threadblock.input %a imap {} fmap {} : !x -> !threadblock.tile<[n, k], f16>
    %t = threadblock.input %b imap {x = 1} fmap {} : !w -> !threadblock.tile<[k, m / grid.x], f16>
    %p = threadblock.matmul %s, %t : (!threadblock.tile<[n, k], f16>, !threadblock.tile<[k, m / grid.x], f16>) -> !threadblock.tile<[n, m / grid.x], f32>
    %r = threadblock.output %p omap {x = 1} : !threadblock.tile<[n, m / grid.x], f32> -> !o
    threadblock.yield %r : !o
  }
  func.return %o : !o
}
"""
MATMUL = EXAMPLES / "matmul.mlir"


def test_verify_a_right_graph(prism: Prism, tmp_path: Path):
    path = tmp_path / "graph.mlir"
    path.write_text(GRAPH)
    result = prism("verify", MATMUL, path)
    assert result.status == 0
    assert "mine   matmul    equal" in result.out
    data = json.loads(prism("verify", MATMUL, path, "--json").out)
    assert data["ok"] is True
    assert data["graphs"][0]["verdict"] == "equal"


def test_verify_a_wrong_graph(prism: Prism, tmp_path: Path):
    path = tmp_path / "graph.mlir"
    line = "    %r = threadblock.output %p"
    tile = "!threadblock.tile<[n, m / grid.x], f32>"
    wrong = f"    %q = threadblock.scale %p by <2> : ({tile}) -> {tile}\n"
    path.write_text(GRAPH.replace(line, wrong + line.replace("%p", "%q")))
    result = prism("verify", MATMUL, path)
    assert result.status == 1
    assert "not proven" in result.out
    data = json.loads(prism("verify", MATMUL, path, "--json").out)
    assert (data["ok"], data["graphs"][0]["verdict"]) == (False, "not_proven")


@pytest.mark.parametrize(
    ("workload", "graph", "message"),
    [
        (MATMUL, MATMUL, "matmul.mlir:1:1: error: expected a function with a kernel.graph_def"),
        (None, MATMUL, "graph.mlir:1:1: error: expected a workload function"),
        (RMS_NORM, None, "graph.mlir:5:1: error: @mine: expected the workload's type"),
        ("none.mlir", None, "none.mlir:1:1: error: cannot read"),
    ],
)
def test_verify_bad_files(
    prism: Prism, tmp_path: Path, workload: object, graph: object, message: str
):
    path = tmp_path / "graph.mlir"
    path.write_text(GRAPH)
    result = prism("verify", workload or path, graph or path)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1


def test_internal_errors_are_not_the_users(prism: Prism, monkeypatch: pytest.MonkeyPatch):
    def broken(arguments: object) -> int:
        raise KeyError("some\nthing")

    monkeypatch.setattr("prism.cli.verify.run", broken)
    monkeypatch.delenv("PRISM_TRACEBACK", raising=False)
    result = prism("verify", MATMUL, MATMUL)
    assert result.status == 70
    assert result.err.startswith("prism: internal error: KeyError: ")
    assert result.err.count("\n") == 1
    monkeypatch.setenv("PRISM_TRACEBACK", "1")
    with pytest.raises(KeyError):
        prism("verify", MATMUL, MATMUL)


def test_interrupt(prism: Prism, monkeypatch: pytest.MonkeyPatch):
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("prism.cli.verify.run", interrupted)
    result = prism("verify", MATMUL, MATMUL)
    assert (result.status, result.err) == (130, "prism: interrupted\n")


def test_usage_errors(prism: Prism):
    for arguments in ((), ("optimize",), ("nothing",), ("optimize", RMS_NORM, "--time-limit", "0")):
        assert prism(*arguments).status == 2


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from prism.cli.main import make_parser\n"
        "make_parser()\n"
        "heavy = {'xdsl', 'numpy', 'egglog', 'sympy', 'cuda', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
