"""The options of measured tuning; imports nothing heavy, for the parser."""

from __future__ import annotations

import argparse

STRATEGIES = ("random", "model", "evolve", "exhaustive")
BACKENDS = ("model", "sim")
EXECUTORS = ("serial", "processes")

DEFAULT_POINTS = 40


def add_tuning(parser: argparse.ArgumentParser) -> None:
    """Options of `prism optimize` that replace the model's choice by measured points."""
    group = parser.add_argument_group(
        "measured tuning", "Without --strategy the cost model chooses alone."
    )
    group.add_argument("--strategy", choices=STRATEGIES, help="which points are measured")
    group.add_argument(
        "--measure", choices=BACKENDS, default="sim", help="how (default: in the simulator)"
    )
    group.add_argument(
        "--points", type=_positive, default=DEFAULT_POINTS, metavar="N", help="at most (default 40)"
    )
    group.add_argument(
        "--seconds", type=_seconds, default=float("inf"), metavar="S", help="begin no point later"
    )
    group.add_argument("--executor", choices=EXECUTORS, default="processes", help="where")
    group.add_argument(
        "--workers", type=_count, default=0, metavar="N", help="processes (default: one per CPU)"
    )
    group.add_argument("--seed", type=_count, default=0, metavar="N", help="of random choices")


def _positive(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 10**9:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"expected a number from 0, found {text}")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, found {text}")
    return value
