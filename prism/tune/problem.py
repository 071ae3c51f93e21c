"""A tuning problem: the spaces of a workload's proven graphs at a shape, for a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from random import Random

from xdsl.dialects.func import FuncOp

from prism.tune.cost import cost
from prism.tune.graph import Graph, SpaceError, read_graph
from prism.tune.space import Point, Space
from prism.tune.target import Target
from prism.tune.usage import estimate_usage


@dataclass(frozen=True)
class Trial:
    """A point of one of the problem's graphs, by its index."""

    graph: int
    point: Point

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it the same point."""
        return (self.graph, *self.point.parameters().items())


@dataclass(frozen=True)
class Problem:
    """
    What a strategy chooses from. Graphs without a space at these sizes are left out.

    Graphs that differ in nothing that the model sees share their estimates.
    """

    candidates: tuple[FuncOp, ...]
    graphs: tuple[Graph, ...]
    spaces: tuple[Space, ...]
    target: Target
    _estimates: dict[object, float] = field(default_factory=dict[object, float], repr=False)

    @property
    def count(self) -> int:
        """All points of all graphs."""
        return self._ends[-1] if self._ends else 0

    def trial(self, index: int) -> Trial:
        """A point by its index among all."""
        for graph, end in enumerate(self._ends):
            if index < end:
                return Trial(
                    graph, self.spaces[graph].point(index - end + self.spaces[graph].count)
                )
        raise IndexError(index)

    def trials(self) -> Iterator[Trial]:
        """All points of all graphs, in one order."""
        for graph, space in enumerate(self.spaces):
            for point in space.points():
                yield Trial(graph, point)

    def sample(self, random: Random, number: int) -> list[Trial]:
        """Distinct points, each equally likely."""
        chosen = random.sample(range(self.count), min(number, self.count))
        return [self.trial(index) for index in chosen]

    def estimate(self, trial: Trial) -> float:
        """The seconds of the model for the usage that the graph says; infinite if it cannot be."""
        key = (self._signatures[trial.graph], *trial.point.parameters().items())
        if key not in self._estimates:
            graph, point = self.graphs[trial.graph], trial.point
            usage = estimate_usage(graph, point.tiles, point.warps, point.swap, point.stages)
            found = cost(graph, point, usage, self.target)
            self._estimates[key] = float("inf") if found is None else found.seconds
        return self._estimates[key]

    @cached_property
    def ranked(self) -> tuple[Trial, ...]:
        """All points by the model; equal ones in the order of the graphs."""
        estimated = [(self.estimate(trial), trial) for trial in self.trials()]
        finite = [pair for pair in estimated if pair[0] != float("inf")]
        return tuple(trial for _, trial in sorted(finite, key=lambda pair: pair[0]))

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(accumulate(space.count for space in self.spaces))

    @cached_property
    def _signatures(self) -> tuple[str, ...]:
        return tuple(repr(replace(graph, name="")) for graph in self.graphs)


def make_problem(
    candidates: Sequence[FuncOp],
    sizes: Mapping[str, int],
    target: Target,
    overrides: Mapping[str, int] | None = None,
) -> Problem:
    """
    The problem of some proven candidates.

    Raises `SpaceError` with the first reason if none of them has a space.
    """
    kept: list[FuncOp] = []
    graphs: list[Graph] = []
    spaces: list[Space] = []
    refusal: SpaceError | None = None
    for candidate in candidates:
        try:
            graph = read_graph(candidate, sizes)
            space = Space(graph, target, overrides)
        except SpaceError as error:
            refusal = refusal or error
            continue
        kept.append(candidate)
        graphs.append(graph)
        spaces.append(space)
    if not kept:
        raise refusal or SpaceError("there is no graph to tune")
    return Problem(tuple(kept), tuple(graphs), tuple(spaces), target)
