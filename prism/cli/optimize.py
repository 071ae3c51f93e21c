"""`prism optimize`: from a workload to proven graphs, and for a shape to a bundle."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from prism.cli.compile import Compilation, Pipeline, check_request, check_target, only_workload
from prism.cli.environment import make_context, progress, time_limit
from prism.cli.pack import pack
from prism.cli.source import Source, read_source
from prism.cli.table import dims, fields, table
from prism.errors import JobFailedError, PrismError
from prism.runtime.bundle import Bundle, check_destination, write_bundle
from prism.tune.bindings import format_bindings, symbols_of


def run(arguments: argparse.Namespace) -> int:
    """Optimize `arguments.file`; without `--shape` only search and verify it."""
    context = make_context()
    source = read_source(Path(arguments.file), context)
    check_target(source, arguments.target)
    wants_kernel = arguments.shape is not None or not symbols_of(only_workload(source))
    output: Path | None = None if arguments.output is None else Path(arguments.output)
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
    with progress() as show, time_limit(arguments.time_limit):
        pipeline = Pipeline(context, source, show)
        result = pipeline.search()
        if wants_kernel:
            compile_proven(pipeline, arguments)
    bundle = None
    if output is not None:
        manifest, files = pack(result)
        bundle = write_bundle(output, manifest, files)
    print(json.dumps(as_json(result), indent=2) if arguments.json else report(result, bundle))
    if not wants_kernel and result.counts.proven == 0:
        raise JobFailedError(_nothing_proven(result), source.location_of(result.workload))
    return 0


def compile_proven(pipeline: Pipeline, arguments: argparse.Namespace) -> Compilation:
    """Compile for the shape and target of the command line; the search has run already."""
    result = pipeline.result
    if result.counts.proven == 0:
        location = result.source.location_of(result.workload)
        raise JobFailedError(_nothing_proven(result), location)
    return pipeline.compile(
        arguments.shape or "", arguments.target, arguments.graph or "", arguments.set or ""
    )


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
    }


def report(result: Compilation, bundle: Bundle | None) -> str:
    """What was found, proven and chosen, and the time of each stage, to read."""
    counts, graph = result.counts, result.graph
    head = {
        "workload": f"{result.workload.sym_name.data} ({result.source.path})",
        "shape": format_bindings(result.sizes) or "all",
        "target": result.target or "any",
        "graphs": f"{counts.found} found, {counts.proven} proven, "
        f"{counts.not_proven} not proven, {counts.unknown} unknown",
    }
    if graph is not None:
        head["chosen"] = graph.name
        head["operators"] = ", ".join(graph.operators)
        head["maps"] = "; ".join(f"{name}: {text}" for name, text in graph.maps.items())
        head["parameters"] = format_bindings(graph.parameters)
    if bundle is not None:
        head["bundle"] = str(bundle.path)
    parts = [fields(head)]
    if graph is None:
        rows = [
            (name, " ".join(family.grid) or "-", " ".join(family.loops) or "-", family.verdict)
            for name, family in result.families.items()
        ]
        parts.append(table(("graph", "grid", "loop", "verdict"), rows))
    else:
        parts.append(_kernel_table(result))
    total = sum(result.stages.values())
    stages = [*result.stages.items(), ("total", total)]
    rows = [(name, f"{1000 * seconds:.1f} ms".rjust(12)) for name, seconds in stages]
    parts.append(table(("stage", "time".rjust(12)), rows))
    return "\n\n".join(parts)


def _kernel_table(result: Compilation) -> str:
    rows = [
        (
            kernel.emitted.name,
            dims(kernel.emitted.grid),
            dims(kernel.emitted.block),
            kernel.emitted.static_smem + kernel.emitted.dynamic_smem,
            kernel.assembled.registers,
            kernel.assembled.spill_bytes,
        )
        for kernel in result.kernels
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
