"""`prism-opt` tells what is wrong with its input in one located line and exits with 2."""

from pathlib import Path

import pytest

from prism.cli.prism_opt import main

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "matmul.mlir")
FUNCTION = """func.func @f(%x: tensor<4xf16>) {
  %y = kernel.exp %x : (tensor<4xf16>) -> tensor<4xf16>
  func.return
}
"""
DEEP = "(" * 5000 + "n" + ")" * 5000

BAD = {
    "unparsable text": ("func.func @f( {", "1:15: error: Expected argument or type"),
    "unknown operator": (
        FUNCTION.replace("exp", "expp"),
        "2:8: error: Operation kernel.expp is not registered",
    ),
    "shape mismatch": (
        FUNCTION.replace("-> tensor<4x", "-> tensor<5x"),
        "2:3: error: result: expected shape [4], found [5]",
    ),
    "dtype": (
        FUNCTION.replace("f16", "i8"),
        "2:3: error: operand input: expected element type f16, bf16 or f32, found i8",
    ),
    "deep expression": (
        f"func.func private @f(tensor<?xf16, #sym.shape<[{DEEP}]>>)",
        "1:113: error: symbolic expression nested deeper than 64",
    ),
    "endless string": ('"a', "1:1: error: string literal without an end, or with a bad escape"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = BAD[name]
    file = tmp_path / "bad.mlir"
    file.write_text(text)
    assert main([str(file)]) == 2
    out, err = capsys.readouterr()
    assert err == f"{file}:{message}\n"
    assert out == ""


def test_bytes_that_are_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.mlir"
    file.write_bytes(b"func.func\n\xff")
    assert main([str(file)]) == 2
    assert capsys.readouterr().err == f"{file}:2:1: error: not UTF-8 text: byte 0xff\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.mlir"], "prism-opt: error: cannot read nowhere.mlir: No such file or directory"),
        (
            [EXAMPLE, "-p", "nothing"],
            "prism-opt: error: Unrecognized passes: ['nothing']",
        ),
        (
            [EXAMPLE, "-p", 'prism-superoptimize{shape="n=0,k=2,m=3"}'],
            f"{EXAMPLE}:1:1: error: --shape: size 'n' must be positive, found 0",
        ),
    ],
)
def test_bad_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"{message}\n"


def test_good_input_prints_and_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([EXAMPLE]) == 0
    assert "kernel.matmul %x, %w" in capsys.readouterr().out
