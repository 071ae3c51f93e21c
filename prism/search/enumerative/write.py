"""From a complete search state to an sGraph: steps, maps, and the constraints that were found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from prism.dialects.layouts import REPL
from prism.dialects.sym import GRID_AXES, Constraint
from prism.search.enumerative.cuts import CUT, NEVER, Cuts
from prism.search.enumerative.problem import Tensor, Value, map_kind
from prism.search.graphs import OUTPUT, Graph, Step
from prism.search.sgraph import SGraph
from prism.search.terms import INPUT


def write_sgraph(
    values: Sequence[Value],
    results: Sequence[int],
    cuts: Cuts,
    variables: Mapping[tuple[Tensor, str], tuple[int, ...]],
    loops: tuple[str, ...],
    concrete: Collection[str],
) -> SGraph:
    """
    The sGraph of a complete graph, `results` being the positions of its results.

    Maps of the kinds in `concrete` are known, all others symbolic.
    """
    steps = [value.step for value in values]
    shapes = [value.tile.shape for value in values]
    tensors: dict[Tensor, int] = {}
    for position, step in enumerate(steps):
        if step.name == INPUT and isinstance(step.attribute, int):
            tensors[INPUT, step.attribute] = position
    for index, position in enumerate(results):
        tensors[OUTPUT, index] = len(steps)
        steps.append(Step(OUTPUT, (position,), index))
        shapes.append(values[position].tile.shape)
    maps: dict[tuple[int, str], int | tuple[str, ...]] = {}
    named: list[int] = []
    for (tensor, axis), literals in variables.items():
        if map_kind(tensor, axis) in concrete:
            roots = [cuts.find(literal) for literal in literals]
            maps[tensors[tensor], axis] = roots.index(CUT) if CUT in roots else REPL
        else:
            maps[tensors[tensor], axis] = tuple(_name(literal) for literal in literals)
            named += literals
    graph = Graph(tuple(steps), tuple(shapes), loops)
    return SGraph(graph, GRID_AXES, maps, tuple(_constraints(cuts, named)))


def _name(literal: int) -> str:
    return f"m{literal - CUT - 1}"


def _constraints(cuts: Cuts, named: Sequence[int]) -> list[Constraint]:
    """What the store knows of some variables, in terms of these variables only."""
    classes: dict[int, list[str]] = {}
    for literal in named:
        classes.setdefault(cuts.find(literal), []).append(_name(literal))
    found: list[Constraint] = []
    if NEVER in classes:
        found.append(Constraint("never", tuple(classes[NEVER])))
    found += [Constraint("some", (name,)) for name in classes.get(CUT, ())]
    free = {root: names for root, names in classes.items() if root not in (NEVER, CUT)}
    found += [Constraint("equal", tuple(names)) for names in free.values() if len(names) > 1]
    for kind, sets in (("at_most_one", cuts.exclusions), ("some", cuts.choices)):
        for literals in sets:
            roots = dict.fromkeys(cuts.find(literal) for literal in literals)
            open_ = tuple(free[root][0] for root in roots if root in free)
            if kind == "some" and CUT not in roots:
                found.append(Constraint(kind, open_))
            elif kind == "at_most_one" and len(open_) > 1:
                found.append(Constraint(kind, open_))
    return list(dict.fromkeys(found))
