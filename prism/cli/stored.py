"""What `prism optimize` takes from the tuning database and puts into it."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from prism.cli.compile import Pipeline, Progress, only_workload
from prism.cli.environment import TimeLimitError
from prism.cli.measured import request_text
from prism.cli.source import Source, SourceError, one_line, parse_text
from prism.dialects.kernel import CANDIDATE_OF
from prism.errors import JobFailedError, PrismError
from prism.runtime.manifest import Manifest
from prism.runtime.schema import SchemaError
from prism.runtime.schema import decode as decode_schema
from prism.tune.bindings import format_bindings, parse_sizes
from prism.tune.database import ADVICE, Database, DatabaseError, default_path
from prism.tune.identity import dtype_text, shape_text, tool_version, workload_digest
from prism.tune.records import LOCAL, Build, Key, Result, encode_object

VARIABLE = "PRISM_DB"
"""The environment's word for `--db`."""

NONE = "none"

_SUFFIX = re.compile(r".*__(g\d{1,6})")


@dataclass(frozen=True)
class Answer:
    """A result with what was built of it: the JSON of the command, and the bundle's content."""

    report: dict[str, Any]
    manifest: Manifest
    files: Mapping[str, bytes]


def open_database(option: str | None) -> Database | None:
    """
    The database of `--db`, of `PRISM_DB`, or the user's own; None for `none`.

    Without a word from the user a cache directory that cannot be written is no error: a note says
    that nothing is remembered.
    """
    chosen = option or os.environ.get(VARIABLE)
    if chosen == NONE:
        return None
    if chosen:
        return Database(Path(chosen))
    path = default_path()
    existing = path
    while not existing.exists():
        existing = existing.parent
    if not os.access(existing, os.W_OK):
        print(f"prism: note: {existing} is not writable; results are not kept", file=sys.stderr)
        return None
    return Database(path)


def database_path(option: str | None) -> Path:
    """The path of `--db`, of `PRISM_DB`, or of the user's own database; `none` is none here."""
    chosen = option or os.environ.get(VARIABLE)
    if chosen == NONE:
        raise PrismError("the database is 'none': name one with --db PATH")
    return Path(chosen) if chosen else default_path()


def key_of(source: Source, arguments: argparse.Namespace) -> Key:
    """The key of a request; its shape and overrides have been checked."""
    workload = only_workload(source)
    fixed = ",".join(sorted((arguments.set or "").replace(" ", "").split(",")))
    return Key(
        workload_digest(workload),
        shape_text(parse_sizes(arguments.shape or "", workload)),
        dtype_text(workload),
        arguments.target,
        f"graph={arguments.graph or ''};set={fixed}{request_text(arguments)}",
        tool_version(),
    )


def recall(database: Database, key: Key, source: Source) -> Answer | None:
    """What was built for this key from this very source, if anything."""
    start = time.perf_counter()
    result = database.result(key)
    if result is None or result.origin != LOCAL:
        return None
    build = database.build(key, _sha256(source.text))
    if build is None:
        return None
    try:
        report = cast(dict[str, Any], json.loads(build.report))
        manifest = decode_schema(Manifest, json.loads(build.manifest))
    except (ValueError, RecursionError, SchemaError) as error:
        raise DatabaseError(f"{database.path}: damaged record: {error}; {ADVICE}") from error
    for name, digest in manifest.files.items():
        if hashlib.sha256(build.files.get(name, b"")).hexdigest() != digest:
            raise DatabaseError(f"{database.path}: damaged record: {name}; {ADVICE}")
    report["stages"] = {"database": round(time.perf_counter() - start, 6)}
    report["from_database"] = True
    return Answer(report, manifest, build.files)


def rebuild(
    database: Database, key: Key, source: Source, context: Context, show: Progress
) -> Pipeline | None:
    """
    Compile a stored graph without a search, after its proof is made anew; None if there is none.

    A result that is not proven or does not fit, e.g. an imported one, is dropped with a note.
    """
    result = database.result(key)
    if result is None:
        return None
    # A module of its own: what fails half way leaves the caller's as it is.
    module = parse_text(str(source.path), source.text, context)
    pipeline = Pipeline(context, replace(source, module=module), show)
    try:
        name = pipeline.take(_parse_graph(result, pipeline.result.workload, context))
        if pipeline.result.counts.proven != 1:
            raise JobFailedError("its graph is not proven equal to this workload")
        pipeline.compile(key.shape, key.target, name, format_bindings(result.point))
    except TimeLimitError:
        raise
    except PrismError as error:
        print(
            f"prism: note: {database.path}: a stored result was dropped: {error}",
            file=sys.stderr,
        )
        database.drop(key)
        return None
    return pipeline


def store(database: Database, key: Key, pipeline: Pipeline, answer: Answer) -> None:
    """Remember a compilation; a database that fails now must not fail the command."""
    compilation = pipeline.result
    graph, choice = compilation.graph, compilation.choice
    if graph is None or choice is None:
        raise ValueError("nothing was chosen")
    # The digests stand in the manifest of a bundle; here too, to find damage.
    content = asdict(answer.manifest)
    content["files"] = {
        name: hashlib.sha256(data).hexdigest() for name, data in answer.files.items()
    }
    result = Result(
        key,
        graph.name,
        graph.text,
        graph.digest,
        graph.parameters,
        choice.cost.seconds,
        LOCAL,
        int(time.time()),
    )
    source = _sha256(compilation.source.text)
    build = Build(source, json.dumps(answer.report), encode_object(content), answer.files)
    try:
        database.put(result, build)
    except DatabaseError as error:
        print(f"prism: note: the result was not stored: {error.message}", file=sys.stderr)


def _parse_graph(result: Result, workload: FuncOp, context: Context) -> FuncOp:
    """The candidate of a stored text, as a candidate of this workload."""
    module = parse_text("stored graph", result.graph, context)
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    if len(functions) != 1 or len(list(module.ops)) != 1:
        raise SourceError("stored graph: expected one function")
    (candidate,) = functions
    found = _SUFFIX.fullmatch(candidate.sym_name.data)
    suffix = found.group(1) if found else "g0"
    name = f"{workload.sym_name.data}__{suffix}"
    candidate.properties["sym_name"] = type(candidate.sym_name)(name)
    candidate.attributes[CANDIDATE_OF] = SymbolRefAttr(workload.sym_name.data)
    try:
        candidate.verify()
    except VerifyException as error:
        raise SourceError(f"stored graph: {one_line(str(error))}") from error
    candidate.detach()
    return candidate


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
