"""Evolution: children of the best points, of which the model picks the likely ones."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from prism.tune.measure import Outcome
from prism.tune.problem import Problem, Trial
from prism.tune.space import Point, Space

_ATTEMPTS = 40
"""How often a child may fall outside the space before its parents are given up for now."""


@dataclass(frozen=True)
class Evolve:
    """
    Of each generation of `batch` points the first has `best` points of the model and random ones.

    Later ones are the likeliest by the model of `pool` times as many children of the `parents` best
    points so far; a child is a crossover with the probability `crossover`, else a mutation. One
    point of each generation is random, so that no part of the space is out of reach.
    """

    batch: int = 8
    best: int = 5
    parents: int = 6
    pool: int = 4
    crossover: float = 0.3

    def batches(
        self, problem: Problem, budget: int, random: Random
    ) -> Generator[Sequence[Trial], Sequence[Outcome], None]:
        """Generations until the budget is used, or nothing new is found."""
        measured: dict[tuple[object, ...], tuple[float, Trial]] = {}
        first = [*problem.ranked[: self.best], *problem.sample(random, self.batch)]
        generation = _distinct(first, measured)[: min(self.batch, budget)]
        while generation:
            outcomes = yield generation
            for trial, outcome in zip(generation, outcomes, strict=True):
                measured[trial.key] = (outcome.seconds, trial)
            left = min(self.batch, budget - len(measured))
            if left <= 0:
                return
            generation = self._next(problem, measured, left, random)

    def _next(
        self,
        problem: Problem,
        measured: dict[tuple[object, ...], tuple[float, Trial]],
        number: int,
        random: Random,
    ) -> list[Trial]:
        good = sorted(
            (pair for pair in measured.values() if pair[0] != float("inf")),
            key=lambda pair: pair[0],
        )
        parents = [trial for _, trial in good[: self.parents]]
        children: list[Trial] = []
        for _ in range(self.pool * number if parents else 0):
            child = self._child(problem, parents, random)
            if child is not None:
                children.append(child)
        children = _distinct(children, measured)
        children.sort(key=problem.estimate)
        strangers = _distinct(problem.sample(random, 4 * number), measured)
        kept = children[: number - 1]
        return _distinct([*kept, *strangers], measured)[:number]

    def _child(self, problem: Problem, parents: Sequence[Trial], random: Random) -> Trial | None:
        parent = random.choice(parents)
        partners = [each for each in parents if each.graph == parent.graph and each is not parent]
        space = problem.spaces[parent.graph]
        for _ in range(_ATTEMPTS):
            genes = dict(_genes(parent.point))
            if partners and random.random() < self.crossover:
                other = dict(_genes(random.choice(partners).point))
                genes = {name: random.choice((genes[name], other[name])) for name in genes}
            else:
                name = random.choice(list(genes))
                genes[name] = random.choice(space.values(name))
            point = _point(space, genes)
            if point is not None and point != parent.point:
                return Trial(parent.graph, point)
        return None


def _genes(point: Point) -> dict[str, int]:
    """The parameters that are free: counts follow from tiles."""
    tiles = {f"tile.{axis}": tile for axis, tile in point.tiles.items()}
    return {**tiles, "warps": point.warps, "swap": point.swap, "stages": point.stages}


def _point(space: Space, genes: dict[str, int]) -> Point | None:
    """The point of the space with these parameters, if it is one."""
    tiles = tuple(genes[f"tile.{axis.name}"] for axis in space.graph.axes)
    return space.find(tiles, (genes["warps"], genes["swap"], genes["stages"]))


def _distinct(trials: Sequence[Trial], known: Mapping[tuple[object, ...], object]) -> list[Trial]:
    """Trials that are new, each once."""
    found = {trial.key: trial for trial in trials if trial.key not in known}
    return list(found.values())
