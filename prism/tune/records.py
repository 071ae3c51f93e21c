"""What the tuning database holds, and its form as JSON Lines to share between machines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn, cast

from prism.errors import PrismError

FORMAT = "prism-tuning"
FORMAT_VERSION = 1

LOCAL = "local"
"""Found and proven on this machine."""

IMPORTED = "imported"
"""From elsewhere: its graph is proven again, and compiled, before it is used."""

MAX_LINE = 4 * 1024 * 1024
MAX_LINES = 100_000

_SHA256 = re.compile(r"[0-9a-f]{64}")


class RecordError(PrismError):
    """A record has fields of wrong types or values."""


@dataclass(frozen=True)
class Key:
    """
    What a result is the answer to.

    `workload` is its canonical digest, `shape` and `dtype` are texts (`identity`), `request` what
    the user fixed (graph and parameters), `tool` the version of Prism.
    """

    workload: str
    shape: str
    dtype: str
    target: str
    request: str
    tool: str

    @property
    def values(self) -> tuple[str, ...]:
        """The fields in order."""
        return (self.workload, self.shape, self.dtype, self.target, self.request, self.tool)


@dataclass(frozen=True)
class Result:
    """
    The graph and parameters that tuning chose.

    `graph` is the candidate's text, `digest` that of its verdict, `seconds` the estimated time of
    a launch, `created` a Unix time.
    """

    key: Key
    name: str
    graph: str
    digest: str
    point: Mapping[str, int]
    seconds: float
    origin: str
    created: int


@dataclass(frozen=True)
class Build:
    """
    What was compiled of a result from one source text, whose SHA-256 is `source`.

    `report` and `manifest` are JSON; `files` the bundle's files but the manifest.
    """

    source: str
    report: str
    manifest: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Measurement:
    """One parameter point measured: `status` is "ok" or why it is out; `detail` says more."""

    graph: str
    shape: str
    dtype: str
    target: str
    backend: str
    point: str
    tool: str
    status: str = ""
    seconds: float = 0.0
    detail: str = ""
    created: int = 0

    @property
    def key_values(self) -> tuple[str, ...]:
        """The fields that identify it."""
        return (
            *(self.graph, self.shape, self.dtype, self.target),
            *(self.backend, self.point, self.tool),
        )

    def with_outcome(self, status: str, seconds: float, detail: str, created: int) -> Measurement:
        """The same key with an outcome."""
        return replace(self, status=status, seconds=seconds, detail=detail, created=created)


def check_result(result: Result) -> None:
    """Raises `RecordError` for a result that no database may hold."""
    for name, value in (("workload", result.key.workload), ("digest", result.digest)):
        if not _SHA256.fullmatch(value):
            raise RecordError(f"{name}: expected a SHA-256 in hex")
    if not all(0 <= value < 2**31 for value in result.point.values()):
        raise RecordError("point: expected integers from 0 to 2^31 - 1")
    if result.origin not in (LOCAL, IMPORTED):
        raise RecordError(f"origin: expected {LOCAL} or {IMPORTED}, found '{result.origin}'")
    if not 0 <= result.seconds < 1e9:
        raise RecordError("seconds: expected a number that is not negative")
    if not 0 <= result.created < 2**40:
        raise RecordError("created: expected seconds since 1970")


def encode_object(value: Mapping[str, object]) -> str:
    """Canonical JSON."""
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def decode_object(text: str) -> dict[str, int]:
    """A JSON object with integers; raises `RecordError`."""
    try:
        value = cast(object, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise RecordError("not JSON") from error
    return _integers(value)


def _integers(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise RecordError("point: expected an object")
    found: dict[str, int] = {}
    for name, item in cast(dict[str, object], value).items():
        if type(item) is not int:
            raise RecordError(f"point.{name}: expected an integer")
        found[name] = item
    return found


def to_lines(results: Iterable[Result]) -> Iterator[str]:
    """A header line and one line per result, each with its line end; nothing that was compiled."""
    yield encode_object({"format": FORMAT, "version": FORMAT_VERSION}) + "\n"
    for result in results:
        fields: dict[str, object] = dict(zip(_KEY_FIELDS, result.key.values, strict=True))
        fields |= {
            "name": result.name,
            "graph": result.graph,
            "digest": result.digest,
            "point": dict(result.point),
            "seconds": result.seconds,
            "created": result.created,
        }
        yield encode_object(fields) + "\n"


def from_lines(lines: Iterable[str], name: str) -> list[Result]:
    """
    Results of `to_lines`, all as imported. `name` is the file's, for messages.

    Raises `RecordError` with the line for anything else: no line of a bad file is taken.
    """
    results: list[Result] = []
    header = False
    for number, line in enumerate(lines, 1):

        def fail(message: str, number: int = number) -> NoReturn:
            raise RecordError(f"{name}:{number}: {message}")

        if number > MAX_LINES or len(line) > MAX_LINE:
            fail(f"more than {MAX_LINES} lines, or a line of more than {MAX_LINE} characters")
        if not line.strip():
            continue
        try:
            value = cast(object, json.loads(line))
        except (ValueError, RecursionError):
            fail("not JSON")
        if not isinstance(value, dict):
            fail("expected a JSON object")
        fields = cast(dict[str, object], value)
        if not header:
            if fields != {"format": FORMAT, "version": FORMAT_VERSION}:
                fail(f"expected the header of {FORMAT} version {FORMAT_VERSION}")
            header = True
            continue
        try:
            results.append(_result(fields))
        except RecordError as error:
            fail(error.message)
    if not header:
        raise RecordError(f"{name}:1: expected the header of {FORMAT} version {FORMAT_VERSION}")
    return results


_KEY_FIELDS = ("workload", "shape", "dtype", "target", "request", "tool")
_TEXT_FIELDS = (*_KEY_FIELDS, "name", "graph", "digest")


def _result(fields: Mapping[str, object]) -> Result:
    expected = {*_TEXT_FIELDS, "point", "seconds", "created"}
    if wrong := fields.keys() ^ expected:
        raise RecordError(f"missing or unknown fields: {', '.join(sorted(wrong))}")
    texts: dict[str, str] = {}
    for field in _TEXT_FIELDS:
        value = fields[field]
        if not isinstance(value, str):
            raise RecordError(f"{field}: expected a string")
        texts[field] = value
    seconds, created = fields["seconds"], fields["created"]
    if not isinstance(seconds, (int, float)) or not isinstance(created, int):
        raise RecordError("seconds, created: expected numbers")
    result = Result(
        Key(*(texts[field] for field in _KEY_FIELDS)),
        texts["name"],
        texts["graph"],
        texts["digest"],
        _integers(fields["point"]),
        float(seconds),
        IMPORTED,
        created,
    )
    check_result(result)
    return result
