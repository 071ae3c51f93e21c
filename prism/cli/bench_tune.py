"""
`prism bench tune`: what tuning chooses for the paper's configurations, and how good it is.

The choice by the model is at the full shape. The gap is at a reduced shape, that the simulator can
sweep: the best of at most 40 points that a strategy measures, over the best of the sweep. Where the
space has more points than the sweep may measure it takes a uniform sample and the strategy's own.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"

CONFIGURATIONS = (
    ("rms_norm", "n=8,d=4096", "n=4,d=64"),
    ("rms_norm", "n=8,d=1024", "n=8,d=32"),
    ("rms_norm_mlp", "n=8,d=1024", "n=4,d=32"),
    ("rms_norm_mlp", "n=16,d=1024", "n=16,d=32"),
    ("swiglu", "n=8,d=4096", "n=4,d=64"),
    ("swiglu", "n=16,d=4096", "n=16,d=32"),
    ("attention", "b=2,g=8,h=8192", "b=1,g=8,h=64"),
    ("attention", "b=2,g=8,h=16384", "b=2,g=8,h=32"),
    ("qk_norm_attention", "b=2,g=8,h=8192", "b=1,g=8,h=64"),
    ("qk_norm_attention", "b=2,g=8,h=16384", "b=2,g=8,h=32"),
)
"""Workload, the paper's shape, and the reduced shape of the sweep."""

POINTS = 40
"""What a strategy may measure."""

DEFAULT_SWEEP = 150


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `prism bench tune`."""
    parser.add_argument(
        "--workload", action="append", metavar="NAME", help="only this one; may be repeated"
    )
    parser.add_argument("--target", default="sm_80", metavar="sm_80", help="default sm_80")
    parser.add_argument(
        "--strategy", default="model", choices=("random", "model", "evolve"), help="default model"
    )
    parser.add_argument(
        "--sweep",
        type=int,
        default=DEFAULT_SWEEP,
        metavar="N",
        help=f"points of each sweep, 0 for none (default {DEFAULT_SWEEP})",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the JSON there too"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Measure every configuration, one row each."""
    from prism.errors import PrismError

    if arguments.sweep < 0:
        raise PrismError(f"--sweep: expected a number from 0, found {arguments.sweep}")
    names = {workload for workload, _, _ in CONFIGURATIONS}
    for name in arguments.workload or ():
        if name not in names:
            raise PrismError(
                f"--workload: no configuration of '{name}' ({', '.join(sorted(names))})"
            )
    rows = [
        _row(workload, shape, reduced, arguments)
        for workload, shape, reduced in CONFIGURATIONS
        if not arguments.workload or workload in arguments.workload
    ]
    text = json.dumps({"target": arguments.target, "rows": rows}, indent=2)
    if arguments.output is not None:
        try:
            arguments.output.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise PrismError(f"{arguments.output}: {error.strerror}") from error
    print(text if arguments.json else _report(rows))
    return 0


def _row(workload: str, shape: str, reduced: str, arguments: argparse.Namespace) -> dict[str, Any]:
    from prism.cli.compile import Pipeline
    from prism.cli.environment import make_context, progress
    from prism.cli.source import read_source
    from prism.errors import PrismError
    from prism.tune.bindings import parse_sizes
    from prism.tune.choose import choose
    from prism.tune.problem import make_problem
    from prism.tune.target import load_target

    start = time.perf_counter()
    context = make_context()
    source = read_source(EXAMPLES / f"{workload}.mlir", context)
    with progress() as show:
        pipeline = Pipeline(context, source, show)
        result = pipeline.search()
        show(f"{workload} {shape}")
        target = load_target(arguments.target)
        proven = [
            candidate
            for candidate in pipeline.candidates()
            if result.families[candidate.sym_name.data].verdict == "equal"
        ]
        sizes = parse_sizes(shape, result.workload)
        row: dict[str, Any] = {"workload": workload, "shape": shape}
        try:
            row["points"] = make_problem(proven, sizes, target).count
            chosen = choose(proven, sizes, target)
        except PrismError as error:
            return {**row, "error": error.message}
        row["chosen"] = {
            "graph": chosen.candidate.sym_name.data,
            "parameters": chosen.parameters,
        }
        row["model_us"] = round(chosen.cost.seconds * 1e6, 3)
        row["terms_us"] = {k: round(v * 1e6, 3) for k, v in chosen.cost.terms.items()}
        row["seconds"] = round(time.perf_counter() - start, 3)
        if arguments.sweep:
            row |= _gap(pipeline, proven, reduced, arguments)
    return row


def _gap(
    pipeline: Any, proven: list[Any], reduced: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    """The strategy's best at the reduced shape, the sweep's, and how far they are apart."""
    from random import Random

    from prism.errors import PrismError
    from prism.tune.bindings import parse_sizes
    from prism.tune.executors import ProcessExecutor
    from prism.tune.problem import make_problem
    from prism.tune.session import Budget, Tuner
    from prism.tune.strategies import STRATEGIES
    from prism.tune.target import load_target

    workload = pipeline.result.workload
    sizes = parse_sizes(reduced, workload)
    problem = make_problem(proven, sizes, load_target(arguments.target))
    executor = ProcessExecutor()
    try:
        tuner = Tuner(problem, workload, sizes, "sim", executor)
        session = tuner.run(STRATEGIES[arguments.strategy], Budget(POINTS), seed=0)
        known = {trial.key for trial, _ in session.measured}
        number = min(arguments.sweep, problem.count)
        others = [t for t in problem.sample(Random(1), number) if t.key not in known]
        swept = [*session.measured, *zip(others, tuner.measure(others), strict=True)]
    except PrismError as error:
        return {"reduced": reduced, "error": error.message}
    finally:
        executor.close()
    best, outcome = min((pair for pair in swept if pair[1].ok), key=lambda pair: pair[1].seconds)
    return {
        "reduced": reduced,
        "measured": len(session.measured),
        "simulated": {
            "us": round(session.outcome.seconds * 1e6, 4),
            "statuses": dict(session.statuses),
            **dict(session.outcome.counts),
        },
        "best_of_sweep": {
            "points": len(swept),
            "of": problem.count,
            "us": round(outcome.seconds * 1e6, 4),
            "parameters": best.point.parameters(),
        },
        "gap": round(session.outcome.seconds / outcome.seconds - 1, 4),
    }


def _report(rows: list[dict[str, Any]]) -> str:
    from prism.cli.table import table
    from prism.tune.bindings import format_bindings

    lines = [
        (
            row["workload"],
            row["shape"],
            row.get("points", "-"),
            f"{row['model_us']:.2f}" if "model_us" in row else "-",
            f"{row['seconds']:.2f}" if "seconds" in row else "-",
            f"{100 * row['gap']:.1f} %" if "gap" in row else "-",
            row.get("error") or format_bindings(row["chosen"]["parameters"]),
        )
        for row in rows
    ]
    return table(("workload", "shape", "points", "model us", "seconds", "gap", "chosen"), lines)
