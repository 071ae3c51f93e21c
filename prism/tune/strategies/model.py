"""Rank all points by the cost model and measure the best of them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from random import Random

from prism.tune.measure import Outcome
from prism.tune.problem import Problem, Trial


@dataclass(frozen=True)
class ModelRanked:
    """
    `batch` points are asked for at a time; of points that are equal to the model, and differ in the
    graph only, `alike` are; a graph whose points were refused `refusals` times is given up.
    """

    batch: int = 8
    alike: int = 2
    refusals: int = 6

    def batches(
        self, problem: Problem, budget: int, random: Random
    ) -> Generator[Sequence[Trial], Sequence[Outcome], None]:
        """Points by rank."""
        refused: dict[int, int] = {}
        seen: dict[tuple[object, ...], int] = {}
        asked = 0
        chunk: list[Trial] = []

        for trial in problem.ranked:
            if asked >= budget:
                break
            key = (problem.estimate(trial), *trial.point.parameters().items())
            if seen.get(key, 0) >= self.alike or refused.get(trial.graph, 0) >= self.refusals:
                continue
            seen[key] = seen.get(key, 0) + 1
            chunk.append(trial)
            asked += 1
            if len(chunk) == self.batch or asked == budget:
                outcomes = yield chunk
                for each, outcome in zip(chunk, outcomes, strict=True):
                    if not outcome.ok:
                        refused[each.graph] = refused.get(each.graph, 0) + 1
                chunk = []
        if chunk:
            yield chunk
