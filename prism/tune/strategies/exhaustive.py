"""Every point, in order: for small spaces, and to know the best of the others."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from prism.tune.measure import Outcome
from prism.tune.problem import Problem, Trial


@dataclass(frozen=True)
class Exhaustive:
    """`batch` points are asked for at a time."""

    batch: int = 16

    def batches(
        self, problem: Problem, budget: int, random: Random
    ) -> Generator[Sequence[Trial], Sequence[Outcome], None]:
        """All points up to the budget."""
        trials = islice(problem.trials(), budget)
        while chunk := list(islice(trials, self.batch)):
            yield chunk
