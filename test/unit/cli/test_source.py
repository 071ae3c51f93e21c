"""Every bad file is one located diagnostic; every op of a good one has its place."""

import random
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from prism.cli.environment import make_context
from prism.cli.source import SourceError, one_line, parse_text, read_source
from prism.errors import PrismError

from .conftest import EXAMPLES, RMS_NORM

CONTEXT = make_context()
TEXT = RMS_NORM.read_text()


def refusal(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "bad.mlir"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SourceError) as caught:
        read_source(path, CONTEXT)
    assert "\n" not in caught.value.message
    assert caught.value.location is not None
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_locations_of_ops():
    source = read_source(RMS_NORM, CONTEXT)
    places = {op.name: source.location_of(op) for op in source.module.walk()}
    lines = TEXT.splitlines()
    for name in ("func.func", "kernel.rms_norm", "kernel.matmul", "func.return"):
        line = next(k for k, text in enumerate(lines, 1) if name in text)
        text = lines[line - 1]
        assert (places[name].line, places[name].column) == (
            line,
            len(text) - len(text.lstrip()) + 1,
        )
        assert places[name].file == str(RMS_NORM)


def test_locations_of_symbols():
    source = read_source(RMS_NORM, CONTEXT)
    for name in ("n", "d"):
        place = source.location_of_symbol(name)
        assert place is not None
        line = TEXT.splitlines()[place.line - 1]
        assert "#sym.shape<" in line
        assert line[place.column - 1] == name
    assert source.location_of_symbol("q") is None


def test_a_symbol_in_a_comment_is_not_found(tmp_path: Path):
    path = tmp_path / "a.mlir"
    path.write_text("// #sym.shape<[d]>\n" + TEXT)
    place = read_source(path, CONTEXT).location_of_symbol("d")
    assert place is not None
    assert place.line > 1


def test_printing_has_no_locations():
    source = read_source(RMS_NORM, CONTEXT)
    assert "loc(" not in str(source.module)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kernel.matmul", "kernel.conv", "bad.mlir:8:8: Operation kernel.conv is not registered"),
        ("%w :", "%q :", "bad.mlir:8:29: values used but not defined: [%q]"),
        ("[d, d]", "[d, e]", "bad.mlir:8:3: kernel.matmul: result: expected shape [n, e], found"),
        ("[d, d]", "[d]", "expected 2 sizes, found 1"),
        ("f16", "f64", "bad.mlir:7:3: kernel.rms_norm: operand input: expected element type"),
        ("eps <1.0e-5>", "eps 3", "bad.mlir:7:34: '<' expected"),
        ("[d, d]", f"[d, {'(' * 5000}d{')' * 5000}]", "symbolic expression nested deeper than 64"),
        ("[d, d]", f"[d, {'-' * 5000}d]", "symbolic expression nested deeper than 64"),
        ("func.func", 'func.func "', "string literal without an end"),
        ("func.func", "!func.func", "bad.mlir:6:12: Expected "),
    ],
)
def test_bad_text(tmp_path: Path, old: str, new: str, message: str):
    assert old in TEXT
    assert message in refusal(tmp_path, TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.mlir:1:1: empty file"),
        ("// nothing\n\n", "bad.mlir:1:1: empty file"),
        (b"// \xc3\xa9\nx \xff", "bad.mlir:2:3: not UTF-8 text: byte 0xff"),
        ("\x00", "bad.mlir:1:1: "),
        ("!", "bad.mlir:1:1: "),
        ("module {" * 5000, "nested too deep"),
        ("!x = " + "tuple<" * 5000, "nested too deep"),
        ('"' + "a" * 100_000, "bad.mlir:1:1: string literal without an end"),
    ],
)
def test_hostile_text(tmp_path: Path, text: str | bytes, message: str):
    assert message in refusal(tmp_path, text)


def test_unreadable_files(tmp_path: Path):
    for path, message in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(SourceError, match=message) as caught:
            read_source(path, CONTEXT)
        assert str(caught.value).startswith(f"{path}:1:1: ")


def test_mutations_end_in_a_module_or_a_located_error():
    generator = random.Random(7)
    pieces = ["<", ">", "[", "]", "{", "}", '"', "%x", "#sym.shape", "!", "^", "0", "tensor<", "\\"]
    texts = [path.read_text() for path in sorted(EXAMPLES.glob("*.mlir"))]
    for _ in range(1500):
        text = generator.choice(texts)
        for _ in range(generator.randint(1, 3)):
            at = generator.randrange(len(text) + 1)
            skip = generator.choice((0, 0, 1, 5, 10**6))
            text = text[:at] + generator.choice(pieces) + text[at + skip :]
        outcome: ModuleOp | PrismError
        try:
            outcome = parse_text("f.mlir", text, CONTEXT)
        except PrismError as error:
            outcome = error
        assert isinstance(outcome, ModuleOp) or outcome.location is not None


def test_one_line():
    assert one_line("a\n  b   c\n\n d\n") == "a; b c; d"
