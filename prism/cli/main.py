"""
`prism`: the commands, their arguments and their exit status.

0 success; 1 the job failed (not equal, wrong result); 2 bad input or usage; 70 a bug in Prism; 130
interrupted. Modules are imported by the command that needs them: `prism --help` stays fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from prism.cli import bench, db, space, tuning_options
from prism.errors import JobFailedError, PrismError

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands; each sets `module`, whose `run` does it."""
    parser = argparse.ArgumentParser(
        prog="prism",
        description="A symbolic superoptimizer for tensor programs: MLIR in, proven PTX out.",
    )
    parser.add_argument("--version", action="version", version=f"prism {version('prism')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    optimize = commands.add_parser(
        "optimize", help="find, prove, tune and compile the kernels of a workload"
    )
    optimize.set_defaults(module="prism.cli.optimize")
    optimize.add_argument("file", metavar="FILE", help="MLIR file with one workload function")
    optimize.add_argument(
        "-o", "--output", metavar="BUNDLE", help="directory to write the bundle to"
    )
    optimize.add_argument(
        "--time-limit", type=_seconds, metavar="S", help="give up after S seconds"
    )
    _add_compilation(optimize)
    optimize.add_argument(
        "--db",
        metavar="PATH|none",
        help="the tuning database (default: PRISM_DB, or prism/tuning.db in the cache directory)",
    )
    tuning_options.add_tuning(optimize)
    _add_json(optimize)

    run = commands.add_parser(
        "run", help="run a bundle or a workload on random inputs against a float64 reference"
    )
    run.set_defaults(module="prism.cli.run")
    run.add_argument("path", metavar="BUNDLE|FILE", help="bundle directory or MLIR file")
    run.add_argument(
        "--backend",
        choices=("sim", "cuda"),
        default="sim",
        help="Prism's PTX simulator (default) or a GPU",
    )
    run.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="seed of the inputs (default 0)"
    )
    _add_compilation(run)
    _add_json(run)

    verify = commands.add_parser("verify", help="prove hand-written graphs equal to a workload")
    verify.set_defaults(module="prism.cli.verify")
    verify.add_argument(
        "workload", metavar="WORKLOAD", nargs="?", help="MLIR file with the workload function"
    )
    verify.add_argument(
        "graph", metavar="GRAPH", nargs="?", help="MLIR file with graphs (kernel.graph_def)"
    )
    verify.add_argument(
        "--certificate",
        metavar="F",
        help="replay the proofs in F, of --write-certificate or the output of prism-verify",
    )
    verify.add_argument(
        "--write-certificate", metavar="F", help="write the proofs of the graphs to F (JSON)"
    )
    _add_json(verify)

    _add_sim(commands.add_parser("sim", help="run any PTX file in the simulator"))

    database = commands.add_parser("db", help="list, share and clean up stored tuning results")
    database.set_defaults(module="prism.cli.db")
    db.add_arguments(database)

    parameters = commands.add_parser("space", help="the parameter spaces of the proven graphs")
    parameters.set_defaults(module="prism.cli.space")
    space.add_arguments(parameters)

    bench.add_arguments(commands.add_parser("bench", help="measure what the documentation quotes"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. Diagnostics go to standard error, one line each."""
    try:
        parsed = make_parser().parse_args(arguments)
        status = import_module(parsed.module).run(parsed)
        sys.stdout.flush()
    except PrismError as error:
        place = "prism" if error.location is None else str(error.location)
        _complain(f"{place}: error: {error.message}")
        return EXIT_FAILED if isinstance(error, JobFailedError) else EXIT_BAD_INPUT
    except KeyboardInterrupt:
        _complain("prism: interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away; keep the interpreter from flushing into the pipe once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if os.environ.get("PRISM_TRACEBACK"):
            raise
        reason = " ".join(str(error).split())[:300]
        _complain(
            f"prism: internal error: {type(error).__name__}: {reason}; "
            "please report it (PRISM_TRACEBACK=1 shows where)"
        )
        return EXIT_INTERNAL
    return status


def _add_compilation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shape",
        metavar="n=8,d=4096",
        help="the sizes of the workload's symbols (optimize: one may be a range, n=1..64)",
    )
    parser.add_argument(
        "--target", default="sm_80", metavar="sm_80", help="the GPU to compile for (default sm_80)"
    )
    parser.add_argument("--graph", metavar="NAME", help="the candidate graph to take")
    parser.add_argument(
        "--set", metavar="grid.x=64,warps=4", help="parameters to fix instead of tuning them"
    )


def _add_sim(sim: argparse.ArgumentParser) -> None:
    sim.set_defaults(module="prism.cli.sim")
    sim.add_argument("file", metavar="FILE.ptx", help="PTX text, of whatever origin")
    sim.add_argument("--kernel", metavar="NAME", help="needed if the file has several")
    sim.add_argument(
        "--grid", type=_dim3, required=True, metavar="X[,Y[,Z]]", help="blocks in the grid"
    )
    sim.add_argument(
        "--block", type=_dim3, required=True, metavar="X[,Y[,Z]]", help="threads in a block"
    )
    sim.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help="once per parameter: a number, TYPE:SHAPE[:FILL] for a buffer (f16:8x4096:normal; "
        "FILL is zeros, ones, normal, uniform, arange, empty or a number), @FILE.npy, hex:BYTES",
    )
    sim.add_argument(
        "--smem", type=_count, default=0, metavar="BYTES", help="dynamic shared memory"
    )
    sim.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="seed of random fills (default 0)"
    )
    sim.add_argument(
        "--budget", type=_count, metavar="N", help="vector instructions before a loop is endless"
    )
    sim.add_argument("--cooperative", action="store_true", help="run all blocks at once")
    sim.add_argument("--no-sanitizer", action="store_true", help="check bounds only")
    sim.add_argument(
        "-o", "--output", metavar="DIR", help="save buffers that the kernel changed as argN.npy"
    )
    _add_json(sim)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def _count(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"expected a number from 0, found {text}")
    return value


def _dim3(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) for part in text.split(","))
    if len(sizes) > 3 or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"expected up to 3 sizes from 1, found {text}")
    return sizes


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, found {text}")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**64:
        raise argparse.ArgumentTypeError(f"expected an integer within 0..2^64-1, found {text}")
    return value


def _complain(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
