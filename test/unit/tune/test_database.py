"""The database: round trips, concurrent writers, kill -9, foreign and damaged files."""

import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.tune.database import Database, DatabaseError
from prism.tune.records import (
    IMPORTED,
    LOCAL,
    Build,
    Key,
    Measurement,
    RecordError,
    Result,
    from_lines,
    to_lines,
)

from .writer import key, result

WRITER = Path(__file__).with_name("writer.py")
BUILD = Build("2" * 64, "{}", "{}", {"a.ptx": b"text"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sub" / "tuning.db"


def test_round_trip(path: Path):
    with Database(path) as database:
        assert database.result(key("w", 1)) is None
        database.put(result("w", 1), BUILD)
    with Database(path, create=False) as database:
        assert database.result(key("w", 1)) == result("w", 1)
        assert database.build(key("w", 1), "2" * 64) == BUILD
        assert database.build(key("w", 1), "3" * 64) is None
        assert list(database.results()) == [result("w", 1)]


@pytest.mark.parametrize("field", ["workload", "shape", "dtype", "target", "request", "tool"])
def test_every_field_of_the_key_counts(path: Path, field: str):
    other = replace(key("w", 1), **{field: "f" * 64})
    with Database(path) as database:
        database.put(result("w", 1), BUILD)
        assert database.result(other) is None
        assert database.build(other, "2" * 64) is None


def test_a_new_result_replaces_what_was_built_of_the_old(path: Path):
    with Database(path) as database:
        database.put(result("w", 1), BUILD)
        newer = replace(result("w", 1), seconds=2e-6)
        database.put(newer)
        assert database.result(newer.key) == newer
        assert database.build(newer.key, "2" * 64) is None
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT count(*) FROM files").fetchone() == (0,)
        connection.close()


def test_measurements(path: Path):
    wanted = Measurement("g", "n=1", "f16", "sm_80", "sim", "warps=4", "test")
    with Database(path) as database:
        assert database.measurement(wanted) is None
        database.put_measurement(wanted.with_outcome("ok", 2.0, "d", 5))
        database.put_measurement(wanted.with_outcome("ok", 3.0, "e", 6))
        assert database.measurement(wanted) == wanted.with_outcome("ok", 3.0, "e", 6)
        assert database.measurement(replace(wanted, backend="cuda")) is None
        assert database.count_measurements() == 1


def test_prune(path: Path):
    with Database(path) as database:
        old = replace(result("w", 7), key=replace(key("w", 7), tool="old"))
        database.put(result("w", 1), BUILD)
        database.put(result("w", 9))
        database.put(old)
        assert database.prune(keep_tool="test") == 1
        assert database.prune(before=5) == 1
        assert list(database.results()) == [result("w", 9)]


def start(path: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(path), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_killed_writers_lose_nothing_that_they_committed(path: Path):
    """Several rounds of concurrent writers, each killed with SIGKILL at any moment."""
    committed: dict[str, int] = {}
    for round_ in range(3):
        names = [f"r{round_}w{each}" for each in range(3)]
        writers = {name: start(path, name) for name in names}
        for process in writers.values():
            assert process.stdout is not None
            assert process.stdout.readline() == "0\n"  # all of them write at the same time
        time.sleep(0.05 + 0.03 * round_)
        for name, process in writers.items():
            process.kill()
            out, _ = process.communicate(timeout=30)
            committed[name] = max([0, *map(int, out.split("\n")[:-1])])
    with Database(path, create=False) as database:
        database.check()
        for name, last in committed.items():
            for number in range(last + 1):
                assert database.result(key(name, number)) == result(name, number)
                build = database.build(key(name, number), "2" * 64)
                assert build is not None
                assert {len(data) for data in build.files.values()} == {5000, 3000}
        # One that was at work when it died is there wholly or not at all.
        for found in database.results():
            build = database.build(found.key, "2" * 64)
            assert build is not None
            assert len(build.files) == 2
    assert sum(committed.values()) > 9


def test_concurrent_threads_create_and_write_one_file(path: Path):
    def write(number: int) -> None:
        with Database(path) as database:
            database.put(result("w", number), BUILD)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    with Database(path) as database:
        assert len(list(database.results())) == 24


def foreign_sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE notes (text TEXT)")
    connection.commit()
    connection.close()


def text_file(path: Path) -> None:
    path.write_text("my notes\n" * 100)


def newer_version(path: Path) -> None:
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def damaged(path: Path) -> None:
    with Database(path) as database:
        for number in range(50):
            database.put(result("w", number), BUILD)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (text_file, "not a tuning database of Prism; move it away, or name another file"),
        (foreign_sqlite, "a database of another program; move it away"),
        (newer_version, "its format is version 99, expected 1"),
        (damaged, "damaged: .*; move it away"),
    ],
)
def test_bad_files_are_refused_and_kept(tmp_path: Path, make: object, message: str):
    path = tmp_path / "other.db"
    assert callable(make)
    make(path)
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match=message), Database(path) as database:
        list(database.results())
    assert path.read_bytes() == before


def test_a_folder_and_a_missing_file(tmp_path: Path):
    with pytest.raises(DatabaseError, match="not a regular file"):
        Database(tmp_path)
    with pytest.raises(DatabaseError, match="no such database"):
        Database(tmp_path / "no.db", create=False)
    assert not (tmp_path / "no.db").exists()


def test_an_empty_file_becomes_a_database(tmp_path: Path):
    path = tmp_path / "empty.db"
    path.touch()
    with Database(path) as database:
        database.put(result("w", 1))


texts = st.text(max_size=20)
results = st.builds(
    Result,
    st.builds(Key, st.just("a" * 64), texts, texts, texts, texts, texts),
    texts,
    texts,
    st.just("b" * 64),
    st.dictionaries(texts, st.integers(0, 2**31 - 1), max_size=4),
    st.floats(0, 1e6),
    st.just(IMPORTED),
    st.integers(0, 2**40 - 1),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(results, max_size=4))
def test_json_lines_round_trip(found: list[Result]):
    assert from_lines(list(to_lines(found)), "f") == found


def test_imports_do_not_replace_what_is_there(path: Path):
    shared = from_lines(list(to_lines([result("w", 1), result("w", 2)])), "f")
    assert {each.origin for each in shared} == {IMPORTED}
    with Database(path) as database:
        database.put(result("w", 1))
        assert database.put_missing(shared) == 1
        stored = database.result(key("w", 1))
        assert stored is not None
        assert stored.origin == LOCAL


HEADER = '{"format": "prism-tuning", "version": 1}\n'
LINE = list(to_lines([result("w", 1)]))[1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "f:1: expected the header"),
        (["[]"], "f:1: expected a JSON object"),
        (['{"format": "prism-tuning", "version": 2}'], "f:1: expected the header"),
        ([HEADER, "{"], "f:2: not JSON"),
        ([HEADER, "{}"], "f:2: missing or unknown fields: created, digest"),
        ([HEADER, LINE.replace('"n=1"', "1")], "f:2: shape: expected a string"),
        ([HEADER, LINE.replace('{"warps":4}', '{"warps":true}')], "f:2: point.warps: expected an"),
        ([HEADER, LINE.replace('{"warps":4}', '{"warps":-4}')], "f:2: point: expected integers"),
        ([HEADER, LINE.replace("1e-06", "NaN")], "f:2: seconds: expected a number"),
        ([HEADER, LINE, LINE.replace("1" * 64, "x")], "f:3: digest: expected a SHA-256"),
        ([HEADER, "[" * 100000], "f:2: not JSON"),
    ],
)
def test_bad_lines(lines: list[str], message: str):
    with pytest.raises(RecordError, match=message):
        from_lines(lines, "f")
