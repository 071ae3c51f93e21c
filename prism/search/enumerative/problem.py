"""What one enumeration works on and reports: classes, bounds, switches and counts."""

from __future__ import annotations

import time
from dataclasses import dataclass

from prism.dialects.sym import GRID_AXES
from prism.search.egraph import ClassId
from prism.search.enumerative.expressions import Expressions
from prism.search.enumerative.tensors import Tile
from prism.search.graphs import OUTPUT, Step
from prism.search.terms import TermTable

IMAP, FMAP, OMAP = "imap", "fmap", "omap"

MAPS = (IMAP, FMAP, OMAP)
"""The kinds of maps; each is symbolic, or concrete: enumerated during the search."""


Tensor = tuple[str, int]
"""`input` or `output`, and the index of the argument or result."""


def map_kind(tensor: Tensor, axis: str) -> str:
    """The kind of map that says how an axis cuts a tensor."""
    if tensor[0] == OUTPUT:
        return OMAP
    return IMAP if axis in GRID_AXES else FMAP


@dataclass(frozen=True, slots=True)
class Problem:
    """
    A workload to the search: its terms and the expression check.

    `inputs` are the arguments that it reads, each with its index, `outputs` the terms of its
    results, both with their classes.
    """

    table: TermTable
    expressions: Expressions
    inputs: tuple[tuple[int, int, ClassId], ...]
    outputs: tuple[tuple[int, ClassId], ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    Where a search ends: graphs have at most `operators` operators and accums, and it takes at most
    `seconds`; None is no bound.
    """

    operators: int | None = None
    seconds: float | None = None


class Progress:
    """
    Counts of a search and its clock: partial graphs that passed the checks, extensions that
    dimension matching refused, and whether the time ended it.
    """

    def __init__(self, seconds: float | None) -> None:
        self.states = 0
        self.mismatched = 0
        self.expired = False
        self._deadline = None if seconds is None else time.perf_counter() + seconds

    def over(self) -> bool:
        """Whether the time is over, by a look at the clock."""
        if self._deadline is not None and time.perf_counter() > self._deadline:
            self.expired = True
        return self.expired


@dataclass(frozen=True, slots=True)
class Value:
    """A step of a partial graph: its term, the term's class, and its tile."""

    step: Step
    term: int
    known: ClassId
    tile: Tile
