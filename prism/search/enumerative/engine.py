"""The engine: from a workload to its sGraphs and their concrete maps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from prism.search.egraph import Limits, saturate
from prism.search.enumerative.expressions import Expressions
from prism.search.enumerative.instances import Typing, instances
from prism.search.enumerative.problem import MAPS, Bounds, Problem, Progress
from prism.search.enumerative.search import Search
from prism.search.from_ir import UnsupportedError, Workload
from prism.search.graphs import Graph, canonical
from prism.search.maps import Maps
from prism.search.sgraph import SGraph
from prism.search.terms import INPUT

LOOPS = ((), ("i",))
"""The loop axes of the graphs, one search each: none, or the paper's one loop."""


@dataclass(frozen=True, slots=True)
class Found:
    """A graph, the sGraphs that it was found as (one, unless maps are concrete), and its maps."""

    graph: Graph
    sgraphs: tuple[SGraph, ...]
    maps: tuple[Maps, ...]


@dataclass(frozen=True, slots=True)
class Enumerated:
    """
    What the engine found, in the order of the search.

    `states` are the partial graphs that passed the checks, `mismatched` the extensions that
    dimension matching refused, `assignments` the concrete maps that satisfy the constraints, of
    which `maps` of each graph have those that the layout table accepts. `complete` unless a limit
    of the e-graph or of time cut the search short, `expired` if time did; `unsupported` are
    operators of the e-graph that it cannot add.
    """

    graphs: tuple[Found, ...]
    states: int
    mismatched: int
    assignments: int
    complete: bool
    expired: bool
    unsupported: tuple[str, ...]


def enumerate_graphs(
    workload: Workload,
    concrete: Collection[str] = (),
    bounds: Bounds = Bounds(),
    limits: Limits = Limits(),
) -> Enumerated:
    """
    Every graph of the workload that the paper's algorithm reaches, those without maps left out.

    `concrete` names the kinds of maps to enumerate during the search (`imap`, `fmap`, `omap`)
    instead of leaving them symbolic. Raises UnsupportedError for a workload with an operator whose
    dims this engine cannot match.
    """
    unknown = set(concrete) - set(MAPS)
    if unknown:
        raise ValueError(f"expected kinds of maps {MAPS}, found {sorted(unknown)}")
    progress = Progress(bounds.seconds)
    problem, saturated = _problem(workload, limits)
    found: dict[str, list[SGraph]] = {}
    maps: dict[str, dict[Maps, None]] = {}
    assignments = 0
    for loops in LOOPS:
        search = Search(problem, loops, frozenset(concrete), bounds.operators, progress)
        typings: dict[str, Typing] = {}
        for sgraph in search.run():
            key = canonical(sgraph.graph)
            typing = typings.setdefault(key, Typing(sgraph.graph))
            found.setdefault(key, []).append(sgraph)
            accepted = maps.setdefault(key, {})
            for one in instances(sgraph):
                assignments += 1
                if typing.accepts(one):
                    accepted[one] = None
                if assignments % 64 == 0 and progress.over():
                    break
    graphs = [
        Found(sgraphs[0].graph, tuple(sgraphs), tuple(maps[key]))
        for key, sgraphs in found.items()
        if maps[key]
    ]
    return Enumerated(
        tuple(graphs),
        progress.states,
        progress.mismatched,
        assignments,
        saturated and not progress.expired,
        progress.expired,
        tuple(sorted(problem.expressions.unsupported)),
    )


def _problem(workload: Workload, limits: Limits) -> tuple[Problem, bool]:
    table = workload.table
    classes = saturate(table, workload.outputs, limits)
    expressions = Expressions(classes)
    order = table.topological(workload.outputs)
    lost = {table.nodes[t][0] for t in order} & expressions.unsupported
    if lost:
        names = ", ".join(sorted(lost))
        raise UnsupportedError(f"the enumerative engine cannot match the dims of {names}")
    inputs = [
        (index, term, classes.of_term[term])
        for term in order
        if table.nodes[term][0] == INPUT and isinstance(index := table.nodes[term][1], int)
    ]
    outputs = tuple((term, classes.of_term[term]) for term in workload.outputs)
    return Problem(table, expressions, tuple(sorted(inputs)), outputs), classes.saturated
