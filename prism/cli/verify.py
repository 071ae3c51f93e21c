"""`prism verify`: proves hand-written graphs equal to a workload, or says what is missing."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from xdsl.dialects.func import FuncOp

from prism.cli.environment import make_context
from prism.cli.source import Source, one_line, read_source
from prism.cli.table import table
from prism.errors import PrismError
from prism.verify.api import Pair, is_candidate, match, verify_pairs
from prism.verify.verdict import Verdict


def run(arguments: argparse.Namespace) -> int:
    """Verify every graph of `arguments.graph` against the workload; 0 if all are proven equal."""
    context = make_context()
    workloads = read_source(Path(arguments.workload), context)
    graphs = read_source(Path(arguments.graph), context)
    pairs = pair_up(workloads, graphs)
    verdicts = verify_pairs(pairs)
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
