"""Choosing a graph and its parameters by measured points."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from prism.cli.compile import Pipeline
from prism.errors import JobFailedError
from prism.tune.database import Database
from prism.tune.executors import DEFAULT_TIME_LIMIT, EXECUTORS
from prism.tune.problem import make_problem
from prism.tune.session import Budget, Session, Tuner
from prism.tune.strategies import STRATEGIES
from prism.tune.target import load_target


def request_text(arguments: argparse.Namespace) -> str:
    """What the options change in the answer, for the key of a stored result; empty by default."""
    if arguments.strategy is None:
        return ""
    return (
        f";strategy={arguments.strategy};measure={arguments.measure};points={arguments.points};"
        f"seed={arguments.seed}"
    )


def tune_measured(
    pipeline: Pipeline,
    sizes: Mapping[str, int],
    target: str,
    arguments: argparse.Namespace,
    database: Database | None = None,
    overrides: Mapping[str, int] | None = None,
) -> tuple[Session, str]:
    """
    Run the strategy of the options on the proven graphs; the session and the best graph's name.

    Raises `TuneError` if no point is good, `SpaceError` if there is none.
    """
    result = pipeline.result
    proven = [
        candidate
        for candidate in pipeline.candidates()
        if result.families[candidate.sym_name.data].verdict == "equal"
        and arguments.graph in (None, candidate.sym_name.data)
    ]
    if not proven:
        which = "none" if arguments.graph is None else f"no graph @{arguments.graph}"
        raise JobFailedError(f"@{result.workload.sym_name.data}: {which} is proven equal")
    problem = make_problem(proven, sizes, load_target(target), overrides)
    executor = EXECUTORS[arguments.executor](arguments.workers, DEFAULT_TIME_LIMIT)
    try:
        tuner = Tuner(problem, result.workload, sizes, arguments.measure, executor, database)
        budget = Budget(arguments.points, arguments.seconds)
        session = tuner.run(STRATEGIES[arguments.strategy], budget, arguments.seed)
    finally:
        executor.close()
    return session, problem.graphs[session.best.graph].name
