"""
Programs: what a candidate of several kernels does, as values.

Each kernel is a graph whose inputs and outputs are numbered by its own operands and results, or an
operator of the workload as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from prism.search.graphs import Graph, Step
from prism.search.maps import Maps
from prism.search.sgraph import SGraph
from prism.search.terms import INPUT
from prism.search.terms import Attribute as TermAttribute

ARGUMENT = -1
"""As the kernel of a `Ref`: an argument of the workload."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A whole tensor: result `index` of a kernel, or the argument `index` of the workload."""

    kernel: int
    index: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """One graph-defined kernel: its graph, what it reads and the types of what it writes."""

    sgraph: SGraph
    operands: tuple[Ref, ...]
    result_types: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Plain:
    """An operator of the workload that stays as it is: on whole tensors, in no graph."""

    name: str
    attribute: TermAttribute
    operands: tuple[Ref, ...]
    result_types: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Kernels in the order in which they run, and what the candidate returns."""

    kernels: tuple[Kernel | Plain, ...]
    outputs: tuple[Ref, ...]

    @property
    def symbolic(self) -> bool:
        """Whether the maps of some kernel are not decided."""
        return any(isinstance(k, Kernel) and k.sgraph.variables for k in self.kernels)


Choice = tuple[Maps, ...]
"""The maps of each kernel of a program; of a plain operator none."""


def with_inputs(graph: Graph, numbers: dict[int, int]) -> Graph:
    """The graph with each input `n` called `numbers[n]`."""
    steps = tuple(
        Step(INPUT, (), numbers[step.attribute])
        if step.name == INPUT and isinstance(step.attribute, int)
        else step
        for step in graph.steps
    )
    return Graph(steps, graph.shapes, graph.loops)
