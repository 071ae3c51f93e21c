"""
Which candidates are worth keeping: duplicates and dominated ones are not.

A candidate is dominated if another one multiplies the same matrices, allows every map that it
allows, and does the rest with a part of its operators, each on a tensor no larger and no more often
inside the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prism.dialects.operators import OPERATORS, Kind
from prism.dialects.shapes import Shape
from prism.search.egraph import ClassId
from prism.search.graphs import ACCUM, OUTPUT, Graph
from prism.search.layouts import Row
from prism.search.maps import Maps
from prism.search.terms import INPUT, ONE

CHEAPER = frozenset({("square", "mul")})
"""
Operators that cost no more than another on the same tensor: a square reads one operand, not two.
"""


@dataclass(frozen=True, slots=True)
class Work:
    """One operator that is no product: its name, the tensor it walks, how many loops repeat it."""

    name: str
    shape: Shape
    repeated: int

    def within(self, other: Work) -> bool:
        """Whether it is the same operator, or a cheaper one, and walks no more, no more often."""
        return (
            (self.name == other.name or (self.name, other.name) in CHEAPER)
            and self.repeated <= other.repeated
            and len(self.shape) == len(other.shape)
            and all(a in (b, ONE) for a, b in zip(self.shape, other.shape, strict=True))
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """What the comparison needs of a candidate."""

    products: frozenset[tuple[tuple[ClassId, ...], int]]
    inputs: tuple[object, ...]
    work: tuple[Work, ...]
    maps: frozenset[Maps]


def profile(graph: Graph, class_of_step: Sequence[ClassId], maps: frozenset[Maps]) -> Profile:
    """The profile of a candidate; `class_of_step` are the e-graph's classes of its erasures."""
    products: set[tuple[tuple[ClassId, ...], int]] = set()
    work: list[Work] = []
    repeated = _repeated(graph, maps)
    for index, step in enumerate(graph.steps):
        if step.name in (INPUT, OUTPUT):
            continue
        if step.name != ACCUM and OPERATORS[step.name].kind is Kind.MATMUL:
            operands = tuple(class_of_step[o] for o in step.operands)
            products.add((operands, repeated[index]))
            continue
        shapes = [graph.shapes[s] for s in (index, *step.operands)]
        if len(set(map(len, shapes))) > 1:
            shapes = shapes[:1]
        work.append(Work(step.name, _largest(shapes), repeated[index]))
    # Rows are compared tensor by tensor, whatever the order of the steps.
    order = sorted(range(len(graph.tensors)), key=lambda t: _place(graph, t))
    ordered = frozenset(
        (tuple(_permuted(grid, order)), tuple(_permuted(loops, order))) for grid, loops in maps
    )
    inputs = tuple(graph.steps[graph.tensors[t]].attribute for t in order)
    work.sort(key=lambda w: (w.name, w.repeated, str(w.shape)))
    return Profile(frozenset(products), inputs, tuple(work), ordered)


def _place(graph: Graph, tensor: int) -> tuple[bool, int]:
    """Where a tensor comes: inputs before outputs, by the index of the argument or result."""
    step = graph.steps[graph.tensors[tensor]]
    return step.name == OUTPUT, step.attribute if isinstance(step.attribute, int) else 0


def _permuted(rows: Sequence[Row], order: Sequence[int]) -> list[Row]:
    return [tuple(row[t] for t in order) for row in rows]


def dominates(better: Profile, worse: Profile) -> bool:
    """Whether `better` does what `worse` does with less, and not the other way round as well."""
    return _covers(better, worse) and not _covers(worse, better)


def _covers(left: Profile, right: Profile) -> bool:
    if left.products != right.products or left.inputs != right.inputs:
        return False
    return right.maps <= left.maps and _fits(left.work, right.work)


def _fits(small: Sequence[Work], large: Sequence[Work]) -> bool:
    """Whether each operator of `small` finds its own in `large` that it is within: a matching."""
    if len(small) > len(large):
        return False
    taken: dict[int, int] = {}

    def place(index: int, seen: set[int]) -> bool:
        for slot, other in enumerate(large):
            if slot not in seen and small[index].within(other):
                seen.add(slot)
                if slot not in taken or place(taken[slot], seen):
                    taken[slot] = index
                    return True
        return False

    return all(place(index, set()) for index in range(len(small)))


def _largest(shapes: Sequence[Shape]) -> Shape:
    """Per dim, the size of whichever is not 1: what an elementwise operator or a sum walks."""
    return tuple(next((s for s in sizes if s != ONE), ONE) for sizes in zip(*shapes, strict=True))


def _repeated(graph: Graph, maps: frozenset[Maps]) -> Mapping[int, int]:
    """
    Per step: how many loops repeat it under some map. A loop repeats what reads something that it
    cuts, up to the accum.
    """
    depth = dict.fromkeys(range(len(graph.steps)), 0)
    for position, axis in enumerate(graph.loops):
        cut_inputs = {
            tensor
            for _, loops in maps
            for tensor, layout in zip(graph.tensors, loops[position], strict=True)
            if layout >= 0
        }
        repeated: dict[int, bool] = {}
        after: set[int] = set()
        for index, step in enumerate(graph.steps):
            ends = step.name == ACCUM and step.attribute == axis
            if ends or any(o in after for o in step.operands):
                after.add(index)
            repeated[index] = index in cut_inputs or (
                (index not in after or ends) and any(repeated[o] for o in step.operands)
            )
            depth[index] += repeated[index]
    return depth
