"""`prism optimize --shape n=1..64,d=4096`: one search, a choice for each section, one bundle."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xdsl.context import Context

from prism.cli.compile import Pipeline, check_request, locate, only_workload
from prism.cli.environment import progress, time_limit
from prism.cli.pack import pack
from prism.cli.source import Source
from prism.cli.table import fields, human_bytes, table
from prism.errors import JobFailedError, PrismError
from prism.runtime.manifest import Manifest
from prism.runtime.ranged import SectionEntry, write_ranged
from prism.tune.bindings import format_bindings, parse_sizes
from prism.tune.ranges import Section, ShapeRange, parse_range, plan
from prism.tune.target import load_target

Packed = dict[int, tuple[Manifest, Mapping[str, bytes]]]


def range_of(source: Source, text: str | None) -> ShapeRange | None:
    """The range that `--shape` names, if it names one; a bad one is located in the source."""
    try:
        return None if text is None else parse_range(text)
    except PrismError as error:
        locate(error, source, only_workload(source))
        raise


def optimize_range(
    source: Source,
    context: Context,
    arguments: argparse.Namespace,
    shape: ShapeRange,
    output: Path | None,
) -> None:
    """Choose, compile and pack the kernels of every size; the tuning database is not used."""
    for option in ("graph", "set", "strategy"):
        if getattr(arguments, option, None):
            raise PrismError(
                f"--{option} is for one shape, not for a range",
                source.location_of(only_workload(source)),
            )
    for size in (shape.first, shape.last):
        check_request(source, shape.shape(size), arguments.target)
    with progress() as show, time_limit(arguments.time_limit):
        pipeline = Pipeline(context, source, show)
        counts = pipeline.search().counts
        if counts.proven == 0:
            raise JobFailedError(
                f"@{pipeline.result.workload.sym_name.data}: none of {counts.found} candidate "
                "graphs proven equal",
                source.location_of(pipeline.result.workload),
            )
        with pipeline.stage("tune"):
            sections = _plan(pipeline, shape, arguments.target)
        packed = _compile(pipeline, shape, sections, arguments.target)
    if output is not None:
        entries = [
            SectionEntry(each.first, each.last, each.graph, dict(each.parameters))
            for each in sections
        ]
        write_ranged(output, shape.symbol, entries, packed)
    data = _as_json(pipeline, shape, sections, packed, arguments.target)
    print(json.dumps(data, indent=2) if arguments.json else _report(data, source, output))


def _plan(pipeline: Pipeline, shape: ShapeRange, target: str) -> list[Section]:
    result = pipeline.result
    proven = [
        candidate
        for candidate in pipeline.candidates()
        if result.families[candidate.sym_name.data].verdict == "equal"
    ]
    try:
        return plan(
            proven,
            shape,
            lambda size: parse_sizes(shape.shape(size), result.workload),
            load_target(target),
        )
    except PrismError as error:
        locate(error, result.source, result.workload)
        raise


def _compile(
    searched: Pipeline,
    shape: ShapeRange,
    sections: list[Section],
    target: str,
) -> Packed:
    """Compile each size from a copy of the searched module, which lowering changes."""
    packed: Packed = {}
    stages = searched.result.stages
    for section in sections:
        for size, choice in section.choices.items():
            copy = searched.copy()
            parameters = format_bindings(choice.parameters)
            copy.compile(shape.shape(size), target, section.graph, parameters)
            packed[size] = pack(copy.result)
            for name, seconds in copy.result.stages.items():
                # `tune` of a copy only binds what was chosen.
                stages[name] = stages.get(name, 0.0) + seconds
    return packed


def _as_json(
    pipeline: Pipeline,
    shape: ShapeRange,
    sections: list[Section],
    packed: Packed,
    target: str,
) -> dict[str, Any]:
    result, counts = pipeline.result, pipeline.result.counts
    texts = {
        files[kernel.ptx] for manifest, files in packed.values() for kernel in manifest.kernels
    }
    sizes = parse_sizes(shape.shape(shape.first), result.workload)
    return {
        "workload": result.workload.sym_name.data,
        "shape": {name: size for name, size in sizes.items() if name != shape.symbol},
        "range": {"symbol": shape.symbol, "first": shape.first, "last": shape.last},
        "target": target,
        "stages": {name: round(seconds, 6) for name, seconds in result.stages.items()},
        "graphs": {
            "found": counts.found,
            "proven": counts.proven,
            "not_proven": counts.not_proven,
            "unknown": counts.unknown,
        },
        "dispatch": [
            {
                "first": each.first,
                "last": each.last,
                "graph": each.graph,
                "parameters": dict(each.parameters),
                "worst_over_best": round(each.worst, 4),
            }
            for each in sections
        ],
        "kernels": sum(len(manifest.kernels) for manifest, _ in packed.values()),
        "distinct_kernels": len(texts),
        "bundle_bytes": sum(len(data) for _, files in packed.values() for data in files.values()),
    }


def _report(data: Mapping[str, Any], source: Source, output: Path | None) -> str:
    counts, ends = data["graphs"], data["range"]
    text = f"{ends['symbol']}={ends['first']}..{ends['last']}"
    others = format_bindings(data["shape"])
    head = {
        "workload": f"{data['workload']} ({source.path})",
        "shape": f"{text},{others}" if others else text,
        "target": data["target"],
        "graphs": f"{counts['found']} found, {counts['proven']} proven, "
        f"{counts['not_proven']} not proven, {counts['unknown']} unknown",
        "kernels": f"{data['kernels']} ({data['distinct_kernels']} distinct), "
        f"{human_bytes(data['bundle_bytes'])}",
    }
    if output is not None:
        head["bundle"] = str(output)
    rows = [
        (
            f"{each['first']}..{each['last']}",
            each["graph"],
            format_bindings(each["parameters"]),
            f"{each['worst_over_best']:.3f}",
        )
        for each in data["dispatch"]
    ]
    stages = data["stages"]
    times = [
        (name, f"{1000 * seconds:.1f} ms".rjust(12))
        for name, seconds in (*stages.items(), ("total", sum(stages.values())))
    ]
    return "\n\n".join(
        (
            fields(head),
            table((ends["symbol"], "graph", "parameters", "worst / best"), rows),
            table(("stage", "time".rjust(12)), times),
        )
    )
