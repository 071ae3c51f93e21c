"""`prism optimize`: from a workload to proven graphs, and for a shape to a bundle."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xdsl.context import Context

from prism.cli.compile import (
    Compilation,
    Pipeline,
    Progress,
    check_request,
    check_target,
    only_workload,
)
from prism.cli.environment import make_context, progress, time_limit
from prism.cli.measured import tune_measured
from prism.cli.optimize_range import optimize_range, range_of
from prism.cli.pack import pack
from prism.cli.source import Source, read_source
from prism.cli.stored import Answer, key_of, open_database, rebuild, recall, store
from prism.cli.table import dims, fields, table
from prism.errors import JobFailedError, PrismError
from prism.runtime.bundle import Bundle, check_destination, write_bundle
from prism.tune.bindings import format_bindings, parse_bindings, parse_sizes, symbols_of
from prism.tune.database import Database


def run(arguments: argparse.Namespace) -> int:
    """Optimize `arguments.file`; without `--shape` only search and verify it."""
    context = make_context()
    source = read_source(Path(arguments.file), context)
    check_target(source, arguments.target)
    output: Path | None = None if arguments.output is None else Path(arguments.output)
    shape_range = range_of(source, arguments.shape)
    if shape_range is not None:
        if output is not None:
            check_destination(output)
        optimize_range(source, context, arguments, shape_range, output)
        return 0
    wants_kernel = arguments.shape is not None or not symbols_of(only_workload(source))
    if wants_kernel:
        check_request(source, arguments.shape or "", arguments.target, arguments.set)
    elif output is not None or arguments.set or arguments.graph:
        symbols = ", ".join(symbols_of(only_workload(source)))
        raise PrismError(
            f"-o, --graph and --set need --shape with a size for {symbols}",
            source.location_of(only_workload(source)),
        )
    if output is not None:
        check_destination(output)
    if wants_kernel:
        _optimize_shape(source, context, arguments, output)
        return 0
    with progress() as show, time_limit(arguments.time_limit):
        result = Pipeline(context, source, show).search()
    data = as_json(result)
    print(json.dumps(data, indent=2) if arguments.json else report(data, source, result))
    if result.counts.proven == 0:
        raise JobFailedError(_nothing_proven(result), source.location_of(result.workload))
    return 0


def _optimize_shape(
    source: Source, context: Context, arguments: argparse.Namespace, output: Path | None
) -> None:
    """Take the kernels for the shape from the database, or make them and put them there."""
    with progress() as show, time_limit(arguments.time_limit):
        database = open_database(arguments.db)
        try:
            answer = _answer(source, context, arguments, database, show)
        finally:
            if database is not None:
                database.close()
    bundle = None if output is None else write_bundle(output, answer.manifest, answer.files)
    if arguments.json:
        print(json.dumps(answer.report, indent=2))
    else:
        print(report(answer.report, source, bundle=bundle))


def _answer(
    source: Source,
    context: Context,
    arguments: argparse.Namespace,
    database: Database | None,
    show: Progress,
) -> Answer:
    if database is None:
        return _make(Pipeline(context, source, show), arguments)
    key = key_of(source, arguments)
    if answer := recall(database, key, source):
        return answer
    pipeline = rebuild(database, key, source, context, show)
    if pipeline is not None:
        answer = _packed(pipeline)
    else:
        pipeline = Pipeline(context, source, show)
        answer = _make(pipeline, arguments, database)
    store(database, key, pipeline, answer)
    return answer


def _make(
    pipeline: Pipeline, arguments: argparse.Namespace, database: Database | None = None
) -> Answer:
    pipeline.search()
    compile_proven(pipeline, arguments, database)
    return _packed(pipeline)


def _packed(pipeline: Pipeline) -> Answer:
    manifest, files = pack(pipeline.result)
    return Answer(as_json(pipeline.result), manifest, files)


def compile_proven(
    pipeline: Pipeline, arguments: argparse.Namespace, database: Database | None = None
) -> Compilation:
    """Compile for the shape and target of the command line; the search has run already."""
    result = pipeline.result
    if result.counts.proven == 0:
        location = result.source.location_of(result.workload)
        raise JobFailedError(_nothing_proven(result), location)
    shape, target = arguments.shape or "", arguments.target
    if getattr(arguments, "strategy", None) is None:
        return pipeline.compile(shape, target, arguments.graph or "", arguments.set or "")
    with pipeline.stage("measure"):
        fixed = parse_bindings(arguments.set, "--set") if arguments.set else {}
        sizes = parse_sizes(shape, result.workload)
        session, name = tune_measured(pipeline, sizes, target, arguments, database, fixed)
    result.measured = {
        "strategy": arguments.strategy,
        "measure": arguments.measure,
        "points": len(session.measured),
        "statuses": dict(session.statuses),
        "recalled": session.recalled,
        "us": round(session.outcome.seconds * 1e6, 4),
    }
    return pipeline.compile(shape, target, name, format_bindings(session.best.point.parameters()))


def compile_to_bundle(source: Source, arguments: argparse.Namespace, path: Path) -> Bundle:
    """Search, compile and write a bundle to `path`, for commands that take a file as well."""
    check_request(source, arguments.shape or "", arguments.target, arguments.set)
    with progress() as show:
        pipeline = Pipeline(make_context(), source, show)
        pipeline.search()
        manifest, files = pack(compile_proven(pipeline, arguments))
    return write_bundle(path, manifest, files)


def as_json(result: Compilation) -> dict[str, Any]:
    """The JSON of `prism optimize`; what needs a shape is null or empty without one."""
    counts, graph = result.counts, result.graph
    return {
        "workload": result.workload.sym_name.data,
        "shape": dict(result.sizes) or None,
        "target": result.target or None,
        "stages": {name: round(seconds, 6) for name, seconds in result.stages.items()},
        "graphs": {
            "found": counts.found,
            "proven": counts.proven,
            "not_proven": counts.not_proven,
            "unknown": counts.unknown,
        },
        "chosen": None
        if graph is None
        else {
            "name": graph.name,
            "operators": list(graph.operators),
            "maps": graph.maps,
            "parameters": graph.parameters,
            "text": graph.text,
        },
        "kernels": [
            {
                "name": kernel.emitted.name,
                "grid": list(kernel.emitted.grid),
                "block": list(kernel.emitted.block),
                "smem_bytes": kernel.emitted.static_smem + kernel.emitted.dynamic_smem,
                "registers": kernel.assembled.registers,
                "spill_bytes": kernel.assembled.spill_bytes,
                "ptx": kernel.emitted.ptx,
            }
            for kernel in result.kernels
        ],
        "measured": result.measured,
        "from_database": False,
    }


def report(
    data: Mapping[str, Any],
    source: Source,
    searched: Compilation | None = None,
    bundle: Bundle | None = None,
) -> str:
    """What was found, proven and chosen, and the time of each stage, to read."""
    counts, chosen = data["graphs"], data["chosen"]
    head = {
        "workload": f"{data['workload']} ({source.path})",
        "shape": format_bindings(data["shape"] or {}) or "all",
        "target": data["target"] or "any",
        "graphs": f"{counts['found']} found, {counts['proven']} proven, "
        f"{counts['not_proven']} not proven, {counts['unknown']} unknown",
    }
    if chosen is not None:
        head["chosen"] = chosen["name"]
        head["operators"] = ", ".join(chosen["operators"])
        head["maps"] = "; ".join(f"{name}: {text}" for name, text in chosen["maps"].items())
        head["parameters"] = format_bindings(chosen["parameters"])
    if data["measured"] is not None:
        measured = data["measured"]
        statuses = ", ".join(f"{number} {name}" for name, number in measured["statuses"].items())
        head["measured"] = (
            f"{measured['points']} points by {measured['strategy']} ({measured['measure']}): "
            f"{statuses}; best {measured['us']} us"
        )
    if data["from_database"]:
        head["source"] = "tuning database"
    if bundle is not None:
        head["bundle"] = str(bundle.path)
    parts = [fields(head)]
    if searched is not None:
        rows = [
            (name, " ".join(family.grid) or "-", " ".join(family.loops) or "-", family.verdict)
            for name, family in searched.families.items()
        ]
        parts.append(table(("graph", "grid", "loop", "verdict"), rows))
    else:
        parts.append(_kernel_table(data["kernels"]))
    stages = data["stages"]
    rows = [
        (name, f"{1000 * seconds:.1f} ms".rjust(12))
        for name, seconds in (*stages.items(), ("total", sum(stages.values())))
    ]
    parts.append(table(("stage", "time".rjust(12)), rows))
    return "\n\n".join(parts)


def _kernel_table(kernels: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            kernel["name"],
            dims(kernel["grid"]),
            dims(kernel["block"]),
            kernel["smem_bytes"],
            kernel["registers"],
            kernel["spill_bytes"],
        )
        for kernel in kernels
    ]
    return table(("kernel", "grid", "block", "smem bytes", "registers", "spill bytes"), rows)


def _nothing_proven(result: Compilation) -> str:
    counts = result.counts
    name = result.workload.sym_name.data
    if counts.found == 0:
        return f"@{name}: no candidate graph found"
    return (
        f"@{name}: none of {counts.found} candidate graphs proven equal "
        f"({counts.not_proven} not proven, {counts.unknown} unknown)"
    )
