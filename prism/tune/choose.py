"""Choosing a proven graph and its parameters for a shape and a target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp

from prism.codegen.errors import CannotLower
from prism.codegen.limits import lowering_cost
from prism.errors import JobFailedError
from prism.tune.cost import Cost, cost
from prism.tune.graph import Graph, SpaceError, read_graph
from prism.tune.space import Point, Space, parameter_names
from prism.tune.target import Target
from prism.tune.usage import OTHER_REGISTERS, Usage, estimate_usage

MAX_LOWERINGS = 96
"""How many points are lowered for their true footprint before giving up."""

GOOD_ENOUGH = 16
"""How many points that can be lowered are compared by their true footprint."""

MAX_REFUSALS = 6
"""How many points of one graph may be refused before its others are passed over."""


class TuneError(JobFailedError):
    """No proven graph has a parameter point that fits the target and can be lowered."""


@dataclass(frozen=True)
class Choice:
    """A graph with its parameters and estimated cost."""

    candidate: FuncOp
    point: Point
    cost: Cost

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters by name."""
        return self.point.parameters()


@dataclass(frozen=True)
class _Ranked:
    seconds: float
    order: int
    candidate: FuncOp
    graph: Graph
    point: Point


def choose(
    candidates: Sequence[FuncOp],
    sizes: Mapping[str, int],
    target: Target,
    overrides: Mapping[str, int] | None = None,
) -> Choice:
    """
    The cheapest point of all candidates by the cost model, among those that can be lowered.

    Points are ranked with an estimated usage; the best are lowered in that order, and the cheapest
    of the first few by their true footprint wins. Equal costs go to the earlier graph. Raises
    `SpaceError` if no graph has the overridden parameters, `TuneError` if nothing fits.
    """
    ranked = _rank(candidates, sizes, target, overrides or {})
    best: Choice | None = None
    tried = found = 0
    refusals: dict[str, None] = {}
    refused: Counter[str] = Counter()
    for entry in ranked:
        if tried >= MAX_LOWERINGS or found >= GOOD_ENOUGH:
            break
        if refused[entry.graph.name] >= MAX_REFUSALS:
            continue
        tried += 1
        try:
            footprint = lowering_cost(entry.candidate, sizes, entry.point.parameters(), target)
        except CannotLower as error:
            refused[entry.graph.name] += 1
            refusals[f"@{entry.graph.name}: {error.message}"] = None
            continue
        registers = min(
            target.max_registers_per_thread, OTHER_REGISTERS + footprint.accumulator_registers
        )
        usage = Usage(footprint.smem_bytes, footprint.threads, registers)
        actual = cost(entry.graph, entry.point, usage, target)
        if actual is None:
            refusals[f"@{entry.graph.name}: over a limit of {target.name}"] = None
            continue
        found += 1
        if best is None or actual.seconds < best.cost.seconds:
            best = Choice(entry.candidate, entry.point, actual)
    if best is None:
        reason = next(iter(refusals), "no point fits its limits")
        raise TuneError(
            f"none of {len(candidates)} proven graphs can be lowered for {target.name} at this "
            f"shape ({tried} points tried); first refusal: {reason}"
        )
    return best


def _rank(
    candidates: Sequence[FuncOp],
    sizes: Mapping[str, int],
    target: Target,
    overrides: Mapping[str, int],
) -> list[_Ranked]:
    ranked: list[_Ranked] = []
    refusal: SpaceError | None = None
    some_agree = False
    estimates: dict[str, list[tuple[float, Point]]] = {}
    _check_names(candidates, sizes, overrides)
    for candidate in candidates:
        try:
            graph = read_graph(candidate, sizes)
        except SpaceError as error:
            refusal = refusal or error
            continue
        if not overrides.keys() <= parameter_names(graph):
            continue
        # What the user fixed is refused by code generation, which says why, not left out here.
        space = Space(graph, None if overrides else target, overrides)
        some_agree = some_agree or space.count > 0
        # Graphs that differ in elementwise operators only have the same estimates.
        signature = repr(replace(graph, name=""))
        if signature not in estimates:
            estimates[signature] = list(_estimates(space, target))
        for seconds, point in estimates[signature]:
            ranked.append(_Ranked(seconds, len(ranked), candidate, graph, point))
    if not some_agree and refusal is not None and not overrides:
        raise refusal
    if overrides and not some_agree:
        text = ", ".join(f"{name}={value}" for name, value in overrides.items())
        raise SpaceError(f"no tiling of the proven graphs has {text}")
    ranked.sort(key=lambda entry: (entry.seconds, entry.order))
    return ranked


def _estimates(space: Space, target: Target) -> Iterator[tuple[float, Point]]:
    """The seconds of every point that fits, with a usage estimated from the graph."""
    graph = space.graph
    for point in space.points():
        usage = estimate_usage(graph, point.tiles, point.warps, point.swap, point.stages)
        estimate = cost(graph, point, usage, target)
        if estimate is not None:
            yield estimate.seconds, point


def _check_names(
    candidates: Sequence[FuncOp], sizes: Mapping[str, int], overrides: Mapping[str, int]
) -> None:
    """Refuse an override that names a parameter of no candidate."""
    known: set[str] = set()
    for candidate in candidates if overrides else ():
        try:
            known |= parameter_names(read_graph(candidate, sizes))
        except SpaceError:
            continue
    for name in overrides:
        if name not in known:
            options = ", ".join(sorted(known))
            raise SpaceError(f"no proven graph has a parameter '{name}' (known: {options})")
