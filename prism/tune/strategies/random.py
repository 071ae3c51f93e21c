"""Random sampling, as in the paper: every point of every graph is equally likely."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from random import Random

from prism.tune.measure import Outcome
from prism.tune.problem import Problem, Trial


@dataclass(frozen=True)
class RandomSampling:
    """`batch` points are asked for at a time."""

    batch: int = 8

    def batches(
        self, problem: Problem, budget: int, random: Random
    ) -> Generator[Sequence[Trial], Sequence[Outcome], None]:
        """Distinct points in random order."""
        trials = problem.sample(random, budget)
        for start in range(0, len(trials), self.batch):
            yield trials[start : start + self.batch]
