"""`prism optimize` with a database, and `prism db`: what is remembered, shared and refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism.cli import compile as compile_module
from prism.cli.main import main
from prism.runtime.bundle import load_bundle

EXAMPLES = Path(__file__).parents[3] / "examples"
RMS_NORM = EXAMPLES / "rms_norm.mlir"
SHAPE = ("--shape", "n=5,d=96")


class Command:
    def __init__(self, capsys: pytest.CaptureFixture[str], database: Path) -> None:
        self._capsys = capsys
        self.database = database

    def __call__(self, *arguments: object, db: Path | None = None, status: int = 0) -> str:
        path = str(db or self.database)
        assert main([*map(str, arguments), "--db", path]) == status
        captured = self._capsys.readouterr()
        self.err = captured.err
        return captured.out

    def json(self, *arguments: object, db: Path | None = None) -> dict[str, Any]:
        return json.loads(self(*arguments, "--json", db=db))


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    return Command(capsys, tmp_path / "tuning.db")


@pytest.fixture
def no_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> object:
        raise AssertionError("something was compiled")

    monkeypatch.setattr(compile_module.Pipeline, "search", refuse)
    monkeypatch.setattr(compile_module.Pipeline, "compile", refuse)
    monkeypatch.setattr(compile_module.Pipeline, "_run", refuse)


def test_the_second_time_nothing_is_compiled(
    command: Command, tmp_path: Path, request: pytest.FixtureRequest
):
    first = command.json("optimize", RMS_NORM, *SHAPE, "-o", tmp_path / "a")
    request.getfixturevalue("no_compilation")
    second = command.json("optimize", RMS_NORM, "--shape", "d=96,n=5", "-o", tmp_path / "b")
    assert (first["from_database"], second["from_database"]) == (False, True)
    assert list(second["stages"]) == ["database"]
    for data in (first, second):
        del data["from_database"], data["stages"]
    assert first == second
    assert load_bundle(tmp_path / "a").files == load_bundle(tmp_path / "b").files
    text = command("optimize", RMS_NORM, *SHAPE)
    assert "source      tuning database" in text


@pytest.mark.parametrize(
    "other", [("--shape", "n=6,d=96"), (*SHAPE, "--target", "sm_90"), (*SHAPE, "--set", "warps=1")]
)
def test_another_request_is_another_result(command: Command, other: tuple[str, ...]):
    command("optimize", RMS_NORM, *SHAPE)
    assert not command.json("optimize", RMS_NORM, *other)["from_database"]
    assert len(command.json("db", "list")["results"]) == 2


def test_the_same_program_by_other_names_is_not_searched_again(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first = command.json("optimize", RMS_NORM, *SHAPE)
    renamed = tmp_path / "renamed.mlir"
    text = RMS_NORM.read_text().replace("@rms_norm", "@mine").replace("%x", "%input")
    renamed.write_text(text)
    monkeypatch.setattr(compile_module.Pipeline, "search", None)
    second = command.json("optimize", renamed, *SHAPE, "-o", tmp_path / "b")
    assert "verify" in second["stages"]
    assert second["workload"] == "mine"
    assert second["chosen"]["parameters"] == first["chosen"]["parameters"]
    bundle = load_bundle(tmp_path / "b")
    assert bundle.manifest.inputs[0].name == "input"
    assert main(["run", str(tmp_path / "b")]) == 0


def exported(command: Command, tmp_path: Path) -> Path:
    command("optimize", RMS_NORM, *SHAPE)
    path = tmp_path / "shared.jsonl"
    command("db", "export", "-o", path)
    return path


def test_an_imported_result_is_proven_and_compiled_again(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shared, other = exported(command, tmp_path), tmp_path / "other.db"
    assert command("db", "import", shared, db=other) == "1 of 1 results added, 0 known already\n"
    assert command("db", "import", shared, db=other) == "0 of 1 results added, 1 known already\n"
    assert command.json("db", "list", db=other)["results"][0]["origin"] == "imported"
    monkeypatch.setattr(compile_module.Pipeline, "search", None)
    data = command.json("optimize", RMS_NORM, *SHAPE, db=other)
    assert {"verify", "assemble"} <= data["stages"].keys()
    assert command.json("db", "list", db=other)["results"][0]["origin"] == "local"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("threadblock.square", "threadblock.neg", "not proven equal"),
        ("func.func", "func.fun", "stored graph"),
        ("threadblock.yield", "threadblock.accum", "stored graph"),
        ('"warps":8', '"warps":3', "warps"),
    ],
)
def test_a_wrong_import_is_dropped(
    command: Command, tmp_path: Path, old: str, new: str, message: str
):
    shared, other = exported(command, tmp_path), tmp_path / "other.db"
    text = shared.read_text()
    if old not in text:
        old = '"warps":4'
    assert old in text
    shared.write_text(text.replace(old, new))
    command("db", "import", shared, db=other)
    data = command.json("optimize", RMS_NORM, *SHAPE, db=other)
    assert "generate" in data["stages"]
    assert "a stored result was dropped" in command.err
    assert message in command.err


def test_a_damaged_build_is_seen(command: Command):
    import sqlite3

    command("optimize", RMS_NORM, *SHAPE)
    connection = sqlite3.connect(command.database)
    connection.execute("UPDATE files SET data = x'00' WHERE name LIKE '%.ptx'")
    connection.commit()
    connection.close()
    command("optimize", RMS_NORM, *SHAPE, status=2)
    assert "damaged record: rms_norm" in command.err


def test_show_and_prune(command: Command):
    command("optimize", RMS_NORM, *SHAPE)
    (row,) = command.json("db", "list")["results"]
    assert (row["shape"], row["dtype"], row["target"]) == ("d=96,n=5", "f16", "sm_80")
    assert row["id"] in command("db", "list")
    shown = command("db", "show", row["id"][:6])
    assert "kernel.graph_def" in shown
    command("db", "show", "zzz", status=2)
    assert command("db", "prune") == "0 results removed\n"
    assert command("db", "prune", "--older-than", "0", "--keep-versions") in (
        "0 results removed\n",  # within one second
        "1 results removed\n",
    )


def test_a_foreign_file_is_refused(command: Command, tmp_path: Path):
    notes = tmp_path / "notes.txt"
    notes.write_text("notes\n")
    command("optimize", RMS_NORM, *SHAPE, db=notes, status=2)
    assert "not a tuning database of Prism" in command.err
    assert notes.read_text() == "notes\n"


def test_space(capsys: pytest.CaptureFixture[str]):
    shape = ("--shape", "n=5,d=96", "--sample", "2", "--json")
    assert main(["space", str(RMS_NORM), *shape]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["points"] == sum(row["points"] for row in data["graphs"])
    assert len(data["graphs"]) == 12
    assert all(len(row["sample"]) == 2 for row in data["graphs"])
    assert data["limits"]["shared_bytes_of_a_block"] == 166912
    assert main(["space", str(RMS_NORM), "--shape", "n=5,d=96"]) == 0
    assert f"{data['points']} of 12 graphs" in capsys.readouterr().out
    assert main(["space", str(RMS_NORM), "--shape", "n=5"]) == 2
