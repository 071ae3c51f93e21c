"""The command line of `tools/gpu_check`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from prism.errors import PrismError
from prism.runtime.bundle import is_bundle, load_bundle
from prism.runtime.cuda_core import NoDriverError, require_driver

from .index import Configuration, read_index
from .report import make_row, skipped_row, table, write_json
from .supervise import BUNDLE_LIMIT_S, Supervisor, worker_command
from .worker import work

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_BUNDLES = ROOT / "build" / "gpu"
TIME_LIMIT_S = 450.0

EXIT_WRONG = 1
EXIT_BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every bundle that ran is right, 1 if one is wrong, 2 for bad input or no GPU."""
    parsed = _parser().parse_args(arguments)
    if parsed.worker is not None:
        with os.fdopen(parsed.pipe, "w", encoding="utf-8") as pipe:
            work(parsed.worker, parsed.bundles, parsed.seed, parsed.dry_run, pipe)
        return 0
    try:
        return _check(parsed)
    except PrismError as error:
        print(f"gpu_check: error: {error.message}", file=sys.stderr)
        return EXIT_BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpu_check",
        description="Check bundles against torch in float64 on a GPU, and time them.",
    )
    parser.add_argument(
        "bundles",
        metavar="BUNDLE",
        nargs="*",
        help="bundles, or directories of them (default build/gpu, which `make gpu-bundles` makes)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="run in the simulator instead: no GPU, no times"
    )
    parser.add_argument("-o", "--output", metavar="FILE", default="build/gpu_check.json")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the inputs")
    parser.add_argument(
        "--time-limit", type=float, default=TIME_LIMIT_S, metavar="S", help="seconds for all"
    )
    parser.add_argument(
        "--bundle-limit", type=float, default=BUNDLE_LIMIT_S, metavar="S", help="seconds for each"
    )
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--pipe", type=int, help=argparse.SUPPRESS)
    return parser


def _check(parsed: argparse.Namespace) -> int:
    if not parsed.dry_run:
        try:
            require_driver()
        except NoDriverError as error:
            raise PrismError("no NVIDIA driver on this machine; try --dry-run") from error
    paths, skipped = find_bundles([Path(path) for path in parsed.bundles] or [DEFAULT_BUNDLES])
    manifests = {str(path): load_bundle(path).manifest for path in paths}
    script = str(ROOT / "tools" / "gpu_check")
    supervisor = Supervisor(
        worker_command(script, parsed.seed, dry_run=parsed.dry_run),
        time.monotonic() + parsed.time_limit,
        bundle_limit=parsed.bundle_limit,
        progress=_show if sys.stderr.isatty() else lambda text: None,
    )
    supervisor.run("kernels", list(manifests))
    # Last, so that a slow compiler costs its own column only.
    if not parsed.dry_run and not parsed.no_compile:
        supervisor.run("compiled", [path for path, row in supervisor.rows.items() if row.get("ok")])
    bandwidth = supervisor.machine.get("copy_bytes_per_s")
    rows = [make_row(manifests[path], row, bandwidth) for path, row in supervisor.rows.items()]
    rows += [skipped_row(entry) for entry in skipped]
    print(table(supervisor.machine, rows))
    write_json(Path(parsed.output), supervisor.machine, rows)
    print(f"\nwritten to {parsed.output}")
    return EXIT_WRONG if any(row["ok"] is False for row in rows) else 0


def find_bundles(paths: Sequence[Path]) -> tuple[list[Path], list[Configuration]]:
    """
    The bundles at `paths` or one level below, and the configurations there that have none.

    Raises `PrismError` for a path without bundles.
    """
    bundles: list[Path] = []
    skipped: list[Configuration] = []
    for path in paths:
        if is_bundle(path):
            bundles.append(path)
            continue
        children = sorted(path.iterdir()) if path.is_dir() else []
        inside = [child for child in children if is_bundle(child)]
        if not inside:
            raise PrismError(
                f"{path}: no bundles found; `make gpu-bundles` makes those of the paper"
            )
        bundles += inside
        skipped += [each for each in read_index(path).configurations if each.reason is not None]
    return bundles, skipped


def _show(text: str) -> None:
    print(text, file=sys.stderr)
