"""A tuning session: a strategy asks, an executor measures, the database remembers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from prism.tune.choose import TuneError
from prism.tune.database import Database
from prism.tune.executors import Executor
from prism.tune.identity import dtype_text, shape_text, tool_version
from prism.tune.measure import Outcome, Task
from prism.tune.problem import Problem, Trial
from prism.tune.records import Measurement, encode_object
from prism.tune.strategies import Strategy
from prism.verify.digest import digest


@dataclass(frozen=True)
class Budget:
    """Points to measure, and seconds after which no further batch is begun."""

    points: int = 40
    seconds: float = float("inf")


@dataclass(frozen=True)
class Session:
    """
    What tuning found: the best trial with its outcome, every point in the order of measurement,
    how many have which status, how many were known from the database, and seconds in all.
    """

    best: Trial
    outcome: Outcome
    measured: tuple[tuple[Trial, Outcome], ...]
    statuses: Mapping[str, int]
    recalled: int
    seconds: float


class Tuner:
    """Measures trials of one problem: by an executor, or out of the database."""

    def __init__(
        self,
        problem: Problem,
        workload: FuncOp,
        sizes: Mapping[str, int],
        backend: str,
        executor: Executor,
        database: Database | None = None,
    ) -> None:
        self._problem = problem
        self._workload = workload
        self._sizes = dict(sizes)
        self._backend = backend
        self._executor = executor
        self._database = database
        self._texts: dict[int, str] = {}
        self.recalled = 0

    def run(self, strategy: Strategy, budget: Budget, seed: int) -> Session:
        """
        Tune. Raises `TuneError` if no point that was measured is right.

        The same seed gives the same answer under every executor, unless the seconds run out.
        """
        start = time.monotonic()
        measured: list[tuple[Trial, Outcome]] = []
        batches = strategy.batches(self._problem, budget.points, Random(seed))
        try:
            batch = next(batches, None)
            while batch:
                outcomes = self.measure(batch)
                measured += zip(batch, outcomes, strict=True)
                if time.monotonic() - start > budget.seconds:
                    break
                batch = batches.send(outcomes)
        except StopIteration:
            pass
        finally:
            batches.close()
        statuses = Counter(outcome.status for _, outcome in measured)
        good = [pair for pair in measured if pair[1].ok]
        if not good:
            first = measured[0][1].detail if measured else "the space is empty"
            raise TuneError(f"none of {len(measured)} points is good; the first: {first}")
        best, outcome = min(good, key=lambda pair: pair[1].seconds)
        seconds = time.monotonic() - start
        return Session(best, outcome, tuple(measured), statuses, self.recalled, seconds)

    def measure(self, trials: Sequence[Trial]) -> list[Outcome]:
        """Outcomes in order; what is stored is not measured again."""
        keys = [self._key(trial) for trial in trials]
        known = [self._recall(key) for key in keys]
        tasks = [self._task(trial) for trial, old in zip(trials, known, strict=True) if old is None]
        fresh = iter(self._executor.run(tasks) if tasks else ())
        outcomes: list[Outcome] = []
        for key, old in zip(keys, known, strict=True):
            outcome = old or next(fresh)
            if old is None:
                self._store(key, outcome)
            outcomes.append(outcome)
        self.recalled += len(trials) - len(tasks)
        return outcomes

    def _task(self, trial: Trial) -> Task:
        if trial.graph not in self._texts:
            functions = [self._workload.clone(), self._problem.candidates[trial.graph].clone()]
            self._texts[trial.graph] = str(ModuleOp(functions))
        name = self._problem.graphs[trial.graph].name
        text, target = self._texts[trial.graph], self._problem.target.name
        return Task(text, name, self._sizes, trial.point, target, self._backend)

    def _key(self, trial: Trial) -> Measurement:
        return Measurement(
            digest(self._workload, self._problem.candidates[trial.graph]),
            shape_text(self._sizes),
            dtype_text(self._workload),
            self._problem.target.name,
            self._backend,
            encode_object(trial.point.parameters()),
            tool_version(),
        )

    def _recall(self, key: Measurement) -> Outcome | None:
        stored = None if self._database is None else self._database.measurement(key)
        if stored is None:
            return None
        seconds = stored.seconds if stored.status == "ok" else float("inf")
        return Outcome(stored.status, seconds, stored.detail)

    def _store(self, key: Measurement, outcome: Outcome) -> None:
        if self._database is not None:
            seconds = outcome.seconds if outcome.ok else 0.0
            found = key.with_outcome(outcome.status, seconds, outcome.detail, int(time.time()))
            self._database.put_measurement(found)
