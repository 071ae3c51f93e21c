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
    verify.add_argument("workload", metavar="WORKLOAD", help="MLIR file with the workload function")
    verify.add_argument("graph", metavar="GRAPH", help="MLIR file with graphs (kernel.graph_def)")
    _add_json(verify)
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
    parser.add_argument("--shape", metavar="n=8,d=4096", help="the sizes of the workload's symbols")
    parser.add_argument(
        "--target", default="sm_80", metavar="sm_80", help="the GPU to compile for (default sm_80)"
    )
    parser.add_argument("--graph", metavar="NAME", help="the candidate graph to take")
    parser.add_argument(
        "--set", metavar="grid.x=64,warps=4", help="parameters to fix instead of tuning them"
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


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
