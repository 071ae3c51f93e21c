"""
Strategies: which points to measure next. One file each; `STRATEGIES` is the table.

A strategy is a frozen dataclass of its settings with one method, `batches`: a generator that yields
lists of trials and is sent what became of them. It decides by those, by the model and by the random
numbers that it is given, and by nothing else: the same seed gives the same answer.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from random import Random
from typing import Protocol

from prism.tune.measure import Outcome
from prism.tune.problem import Problem, Trial
from prism.tune.strategies.evolve import Evolve
from prism.tune.strategies.exhaustive import Exhaustive
from prism.tune.strategies.model import ModelRanked
from prism.tune.strategies.random import RandomSampling

Batches = Generator[Sequence[Trial], Sequence[Outcome], None]


class Strategy(Protocol):
    """Decides which points are measured; it ends when it has no more to ask."""

    def batches(self, problem: Problem, budget: int, random: Random) -> Batches:
        """Ask for at most `budget` points in all; sent the outcomes of each batch, in order."""
        ...


STRATEGIES: dict[str, Strategy] = {
    "random": RandomSampling(),
    "model": ModelRanked(),
    "evolve": Evolve(),
    "exhaustive": Exhaustive(),
}
"""Every strategy by its name, with its usual settings."""
