"""
The tuning database: one SQLite file in WAL mode, shared by any number of processes.

A write is one transaction, so a process that dies at any moment leaves whole records only. A file
that is no tuning database, or a damaged one, is refused and left as it is.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar, cast

from prism.errors import PrismError
from prism.tune.records import (
    Build,
    Key,
    Measurement,
    RecordError,
    Result,
    check_result,
    decode_object,
    encode_object,
)

APPLICATION_ID = 0x50725344
"""In the header of the file, as `file` and SQLite show it: "PrSD"."""

SCHEMA_VERSION = 1

BUSY_SECONDS = 30.0
"""How long a writer waits for others before it gives up."""

ADVICE = "move it away, or name another file with --db PATH (or --db none)"

T = TypeVar("T")

_SCHEMA = (
    """
    CREATE TABLE results (
      workload TEXT NOT NULL, shape TEXT NOT NULL, dtype TEXT NOT NULL, target TEXT NOT NULL,
      request TEXT NOT NULL, tool TEXT NOT NULL,
      name TEXT NOT NULL, graph TEXT NOT NULL, digest TEXT NOT NULL, point TEXT NOT NULL,
      seconds REAL NOT NULL, origin TEXT NOT NULL, created INTEGER NOT NULL,
      PRIMARY KEY (workload, shape, dtype, target, request, tool)
    )
    """,
    """
    CREATE TABLE builds (
      id INTEGER PRIMARY KEY,
      workload TEXT NOT NULL, shape TEXT NOT NULL, dtype TEXT NOT NULL, target TEXT NOT NULL,
      request TEXT NOT NULL, tool TEXT NOT NULL,
      source TEXT NOT NULL, report TEXT NOT NULL, manifest TEXT NOT NULL,
      UNIQUE (workload, shape, dtype, target, request, tool, source)
    )
    """,
    """
    CREATE TABLE files (
      build INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (build, name)
    )
    """,
    """
    CREATE TABLE measurements (
      graph TEXT NOT NULL, shape TEXT NOT NULL, dtype TEXT NOT NULL, target TEXT NOT NULL,
      backend TEXT NOT NULL, point TEXT NOT NULL, tool TEXT NOT NULL,
      status TEXT NOT NULL, seconds REAL NOT NULL, detail TEXT NOT NULL, created INTEGER NOT NULL,
      PRIMARY KEY (graph, shape, dtype, target, backend, point, tool)
    )
    """,
)

_KEY = "workload = ? AND shape = ? AND dtype = ? AND target = ? AND request = ? AND tool = ?"
_RESULT = "name, graph, digest, point, seconds, origin, created"


class DatabaseError(PrismError):
    """The database file is foreign, damaged, of another version, busy, or cannot be written."""


def default_path() -> Path:
    """`prism/tuning.db` in the user's cache directory (XDG base directories)."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "prism" / "tuning.db"


class Database:
    """
    An open database; `close` it, or use it as a context manager.

    Every method may raise `DatabaseError`.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        if not create and not path.exists():
            raise DatabaseError(f"{path}: no such database")
        if path.exists() and not path.is_file():
            raise DatabaseError(f"{path}: not a regular file; {ADVICE}")
        self._refuse_foreign()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Transactions are begun by hand: `with self._transaction()`.
            self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise DatabaseError(f"{path}: cannot open the database: {error}; {ADVICE}") from error
        try:
            with self._guard():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # results

    def result(self, key: Key) -> Result | None:
        """The stored result of a key."""
        with self._guard():
            query = f"SELECT {_RESULT} FROM results WHERE {_KEY}"
            row = self._connection.execute(query, key.values).fetchone()
            return None if row is None else self._result(key, row)

    def results(self) -> Iterator[Result]:
        """All results, in the order of their keys."""
        with self._guard():
            columns = "workload, shape, dtype, target, request, tool"
            query = f"SELECT {columns}, {_RESULT} FROM results ORDER BY {columns}"
            rows = self._connection.execute(query).fetchall()
        for row in rows:
            yield self._result(Key(*row[:6]), row[6:])

    def put(self, result: Result, build: Build | None = None) -> None:
        """Store a result, and what was built of it; replaces one of the same key."""
        check_result(result)
        with self._guard(), self._transaction():
            self._put(result)
            if build is not None:
                self._put_build(result.key, build)

    def put_missing(self, results: list[Result]) -> int:
        """Store those results whose keys are not taken; how many that were."""
        for result in results:
            check_result(result)
        added = 0
        with self._guard(), self._transaction():
            for result in results:
                query = f"SELECT 1 FROM results WHERE {_KEY}"
                if self._connection.execute(query, result.key.values).fetchone() is None:
                    self._put(result)
                    added += 1
        return added

    def build(self, key: Key, source: str) -> Build | None:
        """What was built for a key from exactly this source (its SHA-256)."""
        with self._guard(), self._transaction():  # one state of both tables
            query = f"SELECT id, report, manifest FROM builds WHERE {_KEY} AND source = ?"
            row = self._connection.execute(query, (*key.values, source)).fetchone()
            if row is None:
                return None
            files = self._connection.execute(
                "SELECT name, data FROM files WHERE build = ?", (row[0],)
            ).fetchall()
            return Build(source, row[1], row[2], {name: bytes(data) for name, data in files})

    def drop(self, key: Key) -> None:
        """Remove a result and what was built of it."""
        with self._guard(), self._transaction():
            self._drop(key)

    def prune(self, keep_tool: str | None = None, before: int | None = None) -> int:
        """
        Remove results and measurements of other versions of Prism than `keep_tool`, or that were
        stored before a Unix time; how many results.
        """
        with self._guard(), self._transaction():
            query = "SELECT workload, shape, dtype, target, request, tool, created FROM results"
            stale = [
                Key(*row[:6])
                for row in self._connection.execute(query).fetchall()
                if (keep_tool is not None and row[5] != keep_tool)
                or (before is not None and row[6] < before)
            ]
            for key in stale:
                self._drop(key)
            self._connection.execute(
                "DELETE FROM measurements WHERE (? IS NOT NULL AND tool != ?) OR created < ?",
                (keep_tool, keep_tool, -1 if before is None else before),
            )
        return len(stale)

    # measurements

    def measurement(self, key: Measurement) -> Measurement | None:
        """The stored measurement of the same graph, shape, target, backend, point and version."""
        with self._guard():
            row = self._connection.execute(
                "SELECT status, seconds, detail, created FROM measurements WHERE graph = ? AND "
                "shape = ? AND dtype = ? AND target = ? AND backend = ? AND point = ? AND tool = ?",
                key.key_values,
            ).fetchone()
        return None if row is None else key.with_outcome(*row)

    def put_measurement(self, measurement: Measurement) -> None:
        """Store a measurement, in place of an older one of its key."""
        with self._guard(), self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *measurement.key_values,
                    measurement.status,
                    measurement.seconds,
                    measurement.detail,
                    measurement.created,
                ),
            )

    def count_measurements(self) -> int:
        """How many measurements are stored."""
        with self._guard():
            row = self._connection.execute("SELECT count(*) FROM measurements").fetchone()
        return int(row[0])

    def check(self) -> None:
        """Read the whole file; raises `DatabaseError` if SQLite finds damage."""
        with self._guard():
            rows = self._connection.execute("PRAGMA integrity_check").fetchall()
        if rows != [("ok",)]:
            raise DatabaseError(f"{self.path}: damaged: {rows[0][0]}; {ADVICE}")

    # inside

    def _put(self, result: Result) -> None:
        # What was built belongs to the result that it replaces.
        self._drop(result.key)
        self._connection.execute(
            "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *result.key.values,
                result.name,
                result.graph,
                result.digest,
                encode_object(result.point),
                result.seconds,
                result.origin,
                result.created,
            ),
        )

    def _put_build(self, key: Key, build: Build) -> None:
        cursor = self._connection.execute(
            "INSERT INTO builds VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*key.values, build.source, build.report, build.manifest),
        )
        rows = [(cursor.lastrowid, name, data) for name, data in build.files.items()]
        self._connection.executemany("INSERT INTO files VALUES (?, ?, ?)", rows)

    def _drop(self, key: Key) -> None:
        inner = f"SELECT id FROM builds WHERE {_KEY}"
        self._connection.execute(f"DELETE FROM files WHERE build IN ({inner})", key.values)
        for name in ("builds", "results"):
            self._connection.execute(f"DELETE FROM {name} WHERE {_KEY}", key.values)

    def _result(self, key: Key, row: tuple[object, ...]) -> Result:
        name, graph, digest, point, seconds, origin, created = row
        try:
            result = Result(
                key,
                cast(str, name),
                cast(str, graph),
                cast(str, digest),
                decode_object(cast(str, point)),
                cast(float, seconds),
                cast(str, origin),
                cast(int, created),
            )
            check_result(result)
        except RecordError as error:
            raise DatabaseError(f"{self.path}: damaged record: {error}; {ADVICE}") from error
        return result

    def _refuse_foreign(self) -> None:
        """Refuse a file that SQLite would report as no database, before SQLite touches it."""
        try:
            if not self.path.exists() or self.path.stat().st_size == 0:
                return
            with self.path.open("rb") as file:
                header = file.read(100)
        except OSError as error:
            raise DatabaseError(f"{self.path}: cannot read: {error.strerror}") from error
        if len(header) < 100 or header[:16] != b"SQLite format 3\0":
            raise DatabaseError(f"{self.path}: not a tuning database of Prism; {ADVICE}")

    def _prepare(self) -> None:
        connection = self._connection
        if self._pragma("application_id") != APPLICATION_ID:
            # Several processes may create the file at once: one does, the others find it done.
            with self._transaction():
                if self._pragma("application_id") != APPLICATION_ID:
                    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                    if tables or self._pragma("user_version"):
                        message = f"{self.path}: a database of another program; {ADVICE}"
                        raise DatabaseError(message)
                    for statement in _SCHEMA:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        found = self._pragma("user_version")
        if found != SCHEMA_VERSION:
            raise DatabaseError(
                f"{self.path}: its format is version {found}, expected {SCHEMA_VERSION}; {ADVICE}"
            )
        # The change to WAL needs the file alone and does not wait by itself.
        _retry(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        connection.execute("PRAGMA synchronous = NORMAL")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """One write transaction, taken at once so that it cannot fail half way as busy."""
        _retry(lambda: self._connection.execute("BEGIN IMMEDIATE"))
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _guard(self) -> Generator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            reason = "busy: another process holds it" if _is_busy(error) else str(error)
            raise DatabaseError(f"{self.path}: {reason}; {ADVICE}") from error
        except sqlite3.DatabaseError as error:
            raise DatabaseError(f"{self.path}: damaged: {error}; {ADVICE}") from error


def _retry(action: Callable[[], T]) -> T:
    """SQLite does not wait where it fears a deadlock, e.g. when a file becomes WAL."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
