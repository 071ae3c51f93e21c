"""`prism bench`: the measurements that the documentation quotes."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from prism.cli import bench_tune

DEFAULT_LIMIT = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand a measurement; each sets `module`, whose `run` does it."""
    benches = parser.add_subparsers(metavar="WHAT", required=True)
    search = benches.add_parser(
        "search", help="what the search of each workload takes and finds, against the paper"
    )
    search.set_defaults(module="prism.cli.bench", bench="prism.cli.bench_search")
    search.add_argument(
        "files", nargs="*", metavar="FILE", help="MLIR files (default: all of examples/)"
    )
    mode = search.add_mutually_exclusive_group()
    mode.add_argument(
        "--ablation",
        action="store_true",
        help="the enumerative engine on rms_norm (or FILE) with maps symbolic and enumerated",
    )
    mode.add_argument(
        "--stacked", action="store_true", help="1 to 16 gated MLP blocks, one after the other"
    )
    search.add_argument(
        "--time-limit",
        type=_positive,
        default=DEFAULT_LIMIT,
        metavar="S",
        help=f"seconds for each row (default {DEFAULT_LIMIT:g})",
    )
    search.add_argument("--json", action="store_true", help="print JSON instead of tables")
    sim = benches.add_parser("sim", help="thread-instructions per second of the PTX simulator")
    sim.set_defaults(module="prism.cli.bench", bench="prism.cli.bench_sim")
    sim.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the JSON there, too")
    sim.add_argument("--json", action="store_true", help="print JSON instead of a table")
    codegen = benches.add_parser(
        "codegen", help="what the chosen kernels of the paper's configurations move and execute"
    )
    codegen.set_defaults(module="prism.cli.bench", bench="prism.cli.bench_codegen")
    codegen.add_argument(
        "--workload", action="append", metavar="NAME", help="only this workload; may be repeated"
    )
    codegen.add_argument(
        "--target", action="append", metavar="sm_80", help="default: sm_80 and sm_90"
    )
    codegen.add_argument("--set", metavar="warps=4,stages=3", help="fix parameters of the kernels")
    codegen.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the JSON there, too"
    )
    codegen.add_argument("--json", action="store_true", help="print JSON instead of a table")
    tune = benches.add_parser(
        "tune", help="the chosen points, and how near the best of a sweep they are"
    )
    tune.set_defaults(module="prism.cli.bench", bench="prism.cli.bench_tune")
    bench_tune.add_arguments(tune)


def run(arguments: argparse.Namespace) -> int:
    """Runs the measurement that the subcommand names."""
    return import_module(arguments.bench).run(arguments)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, found {text}")
    return value
