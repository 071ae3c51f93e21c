"""`prism space`: the parameter spaces of a workload's proven graphs at a shape."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `prism space`."""
    parser.add_argument("file", metavar="FILE", help="MLIR file with one workload function")
    parser.add_argument("--shape", metavar="n=8,d=4096", help="the sizes of the workload's symbols")
    parser.add_argument(
        "--target", default="sm_80", metavar="sm_80", help="the GPU to fit (default sm_80)"
    )
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="also N random points")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the sample (default 0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Print dimensions, counts and limits of every proven graph."""
    from random import Random

    from prism.cli.compile import Pipeline, check_request
    from prism.cli.environment import make_context, progress
    from prism.cli.source import read_source
    from prism.errors import JobFailedError, PrismError
    from prism.tune.bindings import parse_sizes
    from prism.tune.graph import SpaceError, read_graph
    from prism.tune.space import Space
    from prism.tune.target import load_target

    if arguments.sample < 0:
        raise PrismError(f"--sample: expected a number from 0, found {arguments.sample}")
    context = make_context()
    source = read_source(Path(arguments.file), context)
    check_request(source, arguments.shape or "", arguments.target)
    target = load_target(arguments.target)
    with progress() as show:
        pipeline = Pipeline(context, source, show)
        result = pipeline.search()
    sizes = parse_sizes(arguments.shape or "", result.workload)
    rows: list[dict[str, Any]] = []
    for candidate in pipeline.candidates():
        name = candidate.sym_name.data
        if result.families[name].verdict != "equal":
            continue
        try:
            space = Space(read_graph(candidate, sizes), target)
        except SpaceError as error:
            rows.append({"graph": name, "points": 0, "reason": error.message})
            continue
        drawn = space.sample(Random(arguments.seed), arguments.sample)
        rows.append(
            {
                "graph": name,
                "points": space.count,
                "tilings": len(space.tilings),
                "dimensions": {key: list(value) for key, value in space.dimensions().items()},
                "sample": [point.parameters() for point in drawn],
            }
        )
    if not rows:
        raise JobFailedError(f"@{result.workload.sym_name.data}: no proven graph")
    limits = {
        "shared_bytes_of_a_block": target.max_shared_bytes_per_block,
        "threads_of_a_block": target.max_threads_per_block,
        "grid": list(target.max_grid),
    }
    data = {
        "workload": result.workload.sym_name.data,
        "shape": sizes,
        "target": target.name,
        "limits": limits,
        "points": sum(row["points"] for row in rows),
        "graphs": rows,
    }
    print(json.dumps(data, indent=2) if arguments.json else _report(data))
    return 0


def _report(data: dict[str, Any]) -> str:
    from prism.cli.table import fields, table
    from prism.tune.bindings import format_bindings

    limits = data["limits"]
    head = {
        "workload": data["workload"],
        "shape": format_bindings(data["shape"]) or "fixed",
        "target": data["target"],
        "limits": f"{limits['shared_bytes_of_a_block']} bytes of shared memory and "
        f"{limits['threads_of_a_block']} threads a block",
        "points": f"{data['points']} of {len(data['graphs'])} graphs",
    }
    lines = [
        (
            row["graph"],
            row["points"],
            row.get("reason")
            or "; ".join(
                f"{name} {' '.join(map(str, values))}" for name, values in row["dimensions"].items()
            ),
        )
        for row in data["graphs"]
    ]
    parts = [fields(head), table(("graph", "points", "dimensions"), lines)]
    for row in data["graphs"]:
        samples = row.get("sample", [])
        if samples:
            parts.append(
                "\n".join([row["graph"], *(f"  {format_bindings(point)}" for point in samples)])
            )
    return "\n\n".join(parts)
