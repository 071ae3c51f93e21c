"""`prism sim`: reports, outputs and diagnostics."""

import json
from pathlib import Path

import numpy as np
import pytest

from prism.cli.main import main

CORPUS = Path(__file__).parent / "corpus"
SAXPY = [str(CORPUS / "saxpy.ptx"), "--grid", "3", "--block", "128"]


def args(*values):
    return [part for value in values for part in ("--arg", value)]


def test_report_and_outputs(tmp_path, capsys):
    np.save(tmp_path / "y.npy", np.arange(300, dtype="f4"))
    given = args("300", "2.5", "f32:300:ones", f"@{tmp_path / 'y.npy'}")
    assert main(["sim", *SAXPY, *given, "--json", "-o", str(tmp_path / "out")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kernel"] == "saxpy"
    assert report["global_read_bytes"] == 2400
    assert [o["argument"] for o in report["outputs"]] == [3]
    saved = np.load(tmp_path / "out" / "arg3.npy")
    assert (saved == np.arange(300, dtype="f4") + np.float32(2.5)).all()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["arg3.npy"]


def test_table(capsys):
    assert main(["sim", *SAXPY, *args("300", "2.5", "f32:300:normal", "f32:300:uniform")]) == 0
    out = capsys.readouterr().out
    assert "coalescing           1.00 bytes" not in out  # the last warp is ragged
    assert "argument 3 (f32:300:uniform) changed" in out


def test_seed_and_types(tmp_path, capsys):
    def run(seed, spec):
        out = tmp_path / f"{seed}"
        given = args("64", "0x2", spec, "f32:64:zeros")
        assert main(["sim", *SAXPY, *given, "--seed", seed, "-o", str(out)]) == 0
        return np.load(out / "arg3.npy")

    assert (run("1", "f32:64:normal") == run("1", "f32:64:normal")).all()
    assert (run("1", "f32:64:normal") != run("2", "f32:64:normal")).any()
    assert (run("1", "f32:8x8:arange") == 2 * np.arange(64)).all()
    assert (run("1", "f32:64:1.5") == 3).all()
    # bfloat16 arrays are bits: 1.0 is 0x3f80.
    assert run("1", "bf16:128:ones").view("u4")[0] == np.float32(2 * 1.0019379).view("u4")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (args("1"), "'saxpy' takes 4 --arg, found 1: saxpy_param_0 (.u32)"),
        (args("1", "x", "0", "0"), "--arg x: expected a number"),
        (args("1", "1", "f33:4", "0"), "unknown type 'f33'"),
        (args("1", "1", "f32:4xx", "0"), "expected a shape"),
        (args("1", "1", "f32:4:a:b", "0"), "expected TYPE:SHAPE"),
        (args("1", "1", "f32:4:what", "0"), "unknown fill 'what'"),
        (args("1", "1", "u32:4:normal", "0"), "'normal' is for float types"),
        (args("1", "1", "f32:99999x99999", "0"), "more than"),
        (args("1", "1", "hex:0x", "0"), "expected hexadecimal"),
        (args("1", "1", "@/nowhere.npy", "0"), "cannot read"),
        (args("1", "1", f"@{__file__}", "0"), "not a .npy array"),
        (args("1", "1", "hex:0011", "0"), "'saxpy_param_2' has 8 bytes, the argument 2"),
        ([*args("1", "1", "0", "0"), "--kernel", "no"], "no kernel 'no'; the file has saxpy"),
    ],
)
def test_bad_arguments(given, message, capsys):
    assert main(["sim", *SAXPY, *given]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_bad_text_names_line_and_column(tmp_path, capsys):
    path = tmp_path / "bad.ptx"
    path.write_text(".version 8.0\n.target sm_80\n.entry k() {\n   frob.b32;\n ret; }")
    assert main(["sim", str(path), "--grid", "1", "--block", "1"]) == 2
    assert f"{path}:4:4: error: unknown or unsupported" in capsys.readouterr().err
    path.write_bytes(b"\xff")
    assert main(["sim", str(path), "--grid", "1", "--block", "1"]) == 2
    assert main(["sim", str(tmp_path / "none.ptx"), "--grid", "1", "--block", "1"]) == 2


def test_a_fault_of_the_kernel_is_a_failed_job(capsys):
    given = args("300", "2.5", "f32:299", "f32:300")
    assert main(["sim", *SAXPY, *given]) == 1
    err = capsys.readouterr().err
    assert "global access of 4 bytes" in err
    assert "(block (2, 0, 0), thread (43, 0, 0))" in err
    assert main(["sim", *SAXPY, *args("300", "2.5", "f32:300:empty", "f32:300")]) == 1
    assert "nothing wrote it before" in capsys.readouterr().err
    assert main(["sim", *SAXPY, *args("300", "2.5", "f32:300", "f32:300"), "--budget", "3"]) == 1


@pytest.mark.parametrize("bad", [["--grid", "0"], ["--grid", "1,1,1,1"], ["--block", "x"]])
def test_usage(bad):
    with pytest.raises(SystemExit) as caught:
        main(["sim", *SAXPY, *bad])
    assert caught.value.code == 2
