"""`prism verify`: proves hand-written graphs equal to a workload, or says what is missing."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.func import FuncOp

from prism.cli.environment import make_context
from prism.cli.source import Source, one_line, read_source
from prism.cli.table import table
from prism.errors import PrismError, SourceLocation
from prism.verify.api import Pair, attached_certificate, is_candidate, match, verify_pairs
from prism.verify.verdict import Verdict

FILE_FORMAT = "prism-certificates"
"""Of files that hold the certificates of several graphs."""

MAX_FILE_BYTES = 64 * 2**20


def run(arguments: argparse.Namespace) -> int:
    """
    Verify every graph of `arguments.graph` against the workload, or replay certificates; 0 if all
    are proven equal.
    """
    if arguments.certificate is not None and arguments.write_certificate is not None:
        raise PrismError("expected --certificate or --write-certificate, found both")
    certificate = None if arguments.certificate is None else Path(arguments.certificate)
    pairs, certificates = _read(arguments.workload, arguments.graph, certificate)
    if certificates is not None:
        verdicts = [_replay(pair, certificates) for pair in pairs]
    else:
        verdicts = verify_pairs(pairs, certify=arguments.write_certificate is not None)
    if arguments.write_certificate is not None:
        _write(Path(arguments.write_certificate), pairs, verdicts)
    if arguments.json:
        print(json.dumps(as_json(pairs, verdicts), indent=2))
    else:
        rows = [
            (
                pair.candidate.sym_name.data,
                pair.workload.sym_name.data,
                verdict.kind.replace("_", " "),
            )
            for pair, verdict in zip(pairs, verdicts, strict=True)
        ]
        print(table(("graph", "workload", "verdict"), rows))
        for pair, verdict in zip(pairs, verdicts, strict=True):
            if verdict.reason:
                print(f"{pair.candidate.sym_name.data}: {one_line(verdict.reason)}")
    return 0 if all(verdict.kind == "equal" for verdict in verdicts) else 1


def _read(
    workload: str | None, graph: str | None, certificate: Path | None
) -> tuple[list[Pair], dict[str, str] | None]:
    """The graphs with their workloads, and certificates by the graph's name if there are any."""
    context = make_context()
    if workload is not None and graph is not None:
        pairs = pair_up(read_source(Path(workload), context), read_source(Path(graph), context))
        return pairs, None if certificate is None else _certificates(certificate)
    if certificate is None:
        raise PrismError("expected WORKLOAD and GRAPH, or --certificate F")
    if workload is not None:
        raise PrismError("expected GRAPH as well as WORKLOAD")
    if certificate.suffix == ".json":
        raise PrismError("expected WORKLOAD and GRAPH as well: the certificate does not hold them")
    source = read_source(certificate, context)
    pairs = pair_up(source, source)
    attached = {pair.candidate.sym_name.data: attached_certificate(pair) for pair in pairs}
    return pairs, attached


def _certificates(path: Path) -> dict[str, str]:
    """The certificates of a file that `_write` wrote, by the graph's name. Raises PrismError."""
    place = SourceLocation(str(path), 1, 1)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PrismError(f"cannot read: {error.strerror}", place) from error
    if len(content) > MAX_FILE_BYTES:
        raise PrismError(f"expected at most {MAX_FILE_BYTES} bytes", place)
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise PrismError(f"expected JSON: {error}", place) from error
    entries = cast(dict[str, object], found) if isinstance(found, dict) else {}
    graphs = entries.get("graphs")
    if entries.get("format") != FILE_FORMAT or not isinstance(graphs, dict):
        raise PrismError(f"expected the format {FILE_FORMAT}", place)
    return {
        name: json.dumps(certificate)
        for name, certificate in cast(dict[str, object], graphs).items()
    }


def _write(path: Path, pairs: list[Pair], verdicts: list[Verdict]) -> None:
    graphs = {
        pair.candidate.sym_name.data: json.loads(verdict.certificate)
        for pair, verdict in zip(pairs, verdicts, strict=True)
        if verdict.certificate
    }
    text = json.dumps({"format": FILE_FORMAT, "graphs": graphs}, separators=(",", ":"))
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        place = SourceLocation(str(path), 1, 1)
        raise PrismError(f"cannot write: {error.strerror}", place) from error


def _replay(pair: Pair, certificates: dict[str, str]) -> Verdict:
    """`equal` if the certificate proves it, else `not_proven` with what is wrong with it."""
    from prism.verify.certificate import CertificateError, replay

    start = time.perf_counter()
    text = certificates.get(pair.candidate.sym_name.data, "")
    try:
        if not text:
            raise CertificateError("there is no certificate")
        replay(pair.workload, pair.candidate, text)
    except CertificateError as error:
        return Verdict("not_proven", f"certificate: {error}")
    return Verdict("equal", certificate=text, seconds=time.perf_counter() - start)


def pair_up(workloads: Source, graphs: Source) -> list[Pair]:
    """
    The graphs with their workloads.

    Raises `PrismError` located in a file that has none, or at a graph whose signature differs.
    """
    if not any(isinstance(op, FuncOp) and not is_candidate(op) for op in workloads.module.ops):
        place = workloads.location_of(workloads.module)
        raise PrismError("expected a workload function (func.func), found none", place)
    try:
        pairs = match(workloads.module, graphs.module)
    except PrismError as error:
        error.location = error.location or graphs.location_of(graphs.module)
        raise
    if not pairs:
        place = graphs.location_of(graphs.module)
        raise PrismError("expected a function with a kernel.graph_def, found none", place)
    for pair in pairs:
        expected, found = pair.workload.function_type, pair.candidate.function_type
        if expected != found:
            name = pair.candidate.sym_name.data
            message = f"@{name}: expected the workload's type {expected}, found {found}"
            raise PrismError(message, graphs.location_of(pair.candidate))
    return pairs


def as_json(pairs: list[Pair], verdicts: list[Verdict]) -> dict[str, Any]:
    """The JSON of `prism verify`."""
    return {
        "ok": all(verdict.kind == "equal" for verdict in verdicts),
        "graphs": [
            {
                "name": pair.candidate.sym_name.data,
                "workload": pair.workload.sym_name.data,
                "verdict": verdict.kind,
                "reason": verdict.reason,
                "seconds": round(verdict.seconds, 6),
            }
            for pair, verdict in zip(pairs, verdicts, strict=True)
        ],
    }
