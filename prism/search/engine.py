"""The steps of the search on values: generate sGraphs, prune candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prism.dialects.sym import LOOP_AXES
from prism.search.cover import fits_a_kernel, graphs_of
from prism.search.dags import enumerate_dags
from prism.search.dominance import Profile, dominates, profile
from prism.search.egraph import Classes, Limits, saturate
from prism.search.from_ir import Workload
from prism.search.graphs import canonical, erasure, step_terms
from prism.search.maps import assignments
from prism.search.program import Program
from prism.search.programs import cheapest, covers
from prism.search.sgraph import SGraph, constrain

LOOPS = LOOP_AXES[:2]
"""The loop axes of generated graphs: one loop, or one inside another."""

MAX_GRAPHS = 16
"""
How many graphs without maps of one workload are kept, the cheapest ones, unless dominated ones are
asked for.
"""


@dataclass(frozen=True, slots=True)
class Generated:
    """
    The sGraphs of a workload in canonical order; `complete` unless a limit cut the search short.
    """

    sgraphs: tuple[SGraph, ...]
    complete: bool
    programs: tuple[Program, ...] = ()
    """Programs of several kernels, where one kernel is not known to do as well."""


def generate(
    workload: Workload,
    limits: Limits = Limits(),
    *,
    dominated: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> Generated:
    """
    Every operator DAG that the saturated e-graph holds, without a loop and with each loop, and each
    loop in a loop, that types.

    With `dominated` also those that `prune` would drop because another one does the same with less
    work. A workload of more operators than a kernel may have is only covered by several; `sizes`
    are those to price covers with, as far as known.
    """
    table, outputs = workload.table, workload.outputs
    if not fits_a_kernel(table, outputs):
        return Generated((), complete=True, programs=tuple(covers(workload, LOOPS, (), sizes)))
    classes = saturate(table, outputs, limits)
    found = enumerate_dags(table, classes, [classes.of_term[t] for t in outputs])
    sgraphs: dict[str, SGraph] = {}
    for dag in found.dags:
        for graph in graphs_of(table, dag, LOOPS):
            sgraphs[f"{len(sgraphs)}"] = constrain(graph)
    if not dominated:
        profiles: dict[str, Profile] = {}
        for name, sgraph in sgraphs.items():
            of_step = [found.class_of[t] for t in step_terms(table, sgraph.graph)]
            profiles[name] = profile(sgraph.graph, of_step, frozenset(assignments(sgraph)))
        for name, _ in list(_dominated(list(sgraphs), profiles)):
            del sgraphs[name]
    complete = found.complete and classes.saturated
    if not dominated and len(sgraphs) > MAX_GRAPHS:
        names = list(sgraphs)
        graphs = [sgraphs[name].graph for name in names]
        kept = cheapest(workload, graphs, MAX_GRAPHS, sizes)
        sgraphs = {names[i]: sgraphs[names[i]] for i in kept}
        complete = False
    programs = covers(workload, LOOPS, [s.graph for s in sgraphs.values()], sizes)
    return Generated(tuple(sgraphs.values()), complete, tuple(programs))


def prune(
    workload: Workload, candidates: Mapping[str, SGraph], limits: Limits = Limits()
) -> dict[str, str]:
    """
    The candidates to drop, each with the reason.

    In this order: no map assignment satisfies layouts and constraints; the erasure is not found
    equal to the workload; another candidate is the same; another candidate dominates it.
    """
    dropped: dict[str, str] = {}
    terms = {name: step_terms(workload.table, c.graph) for name, c in candidates.items()}
    results = {name: erasure(c.graph, terms[name]) for name, c in candidates.items()}
    roots = [*workload.outputs, *(t for of_one in terms.values() for t in of_one)]
    classes = saturate(workload.table, roots, limits)
    expected = [classes.of_term[t] for t in workload.outputs]
    profiles: dict[str, Profile] = {}
    seen: dict[tuple[str, object], str] = {}
    for name, candidate in candidates.items():
        maps = frozenset(assignments(candidate))
        if not maps:
            dropped[name] = "no map assignment satisfies the layouts and the constraints"
            continue
        if [classes.of_term[t] for t in results[name]] != expected:
            dropped[name] = f"not found equal to @{workload.name}{_limit(classes)}"
            continue
        of_step = [classes.of_term[t] for t in terms[name]]
        profiles[name] = profile(candidate.graph, of_step, maps)
        first = seen.setdefault((canonical(candidate.graph), profiles[name].maps), name)
        if first != name:
            dropped[name] = f"the same graph as @{first}"
    kept = [name for name in candidates if name not in dropped]
    return dropped | dict(_dominated(kept, profiles))


def _dominated(names: Sequence[str], profiles: Mapping[str, Profile]) -> Iterator[tuple[str, str]]:
    """
    The dominated ones, each with one that dominates it and is itself not dominated.

    There is one, for dominance is a strict order. Candidates with equal profiles are one to it.
    """
    groups: dict[object, dict[Profile, str]] = {}
    for name in names:
        of_products = groups.setdefault(profiles[name].products, {})
        of_products.setdefault(profiles[name], name)
    better: dict[Profile, str] = {}
    for group in groups.values():
        best = {p: n for p, n in group.items() if not any(dominates(o, p) for o in group)}
        for one in group:
            if one not in best:
                better[one] = next(name for other, name in best.items() if dominates(other, one))
    for name in names:
        if (first := better.get(profiles[name])) is not None:
            yield name, f"dominated by @{first}, which does the same with less work"


def _limit(classes: Classes) -> str:
    return "" if classes.saturated else " within the limits of the search"
