"""
Graphs of one block as values: operators, where a loop accumulates, inputs and outputs, without
maps.

A graph is what a `kernel.graph_def` says apart from its maps. Steps refer to earlier steps by
index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from prism.dialects.shapes import Shape
from prism.search.rules import COMMUTATIVE
from prism.search.terms import INPUT, ONE, Attribute, TermTable

ACCUM = "accum"
"""A step that sums over a loop axis; its attribute is the axis."""

OUTPUT = "output"
"""A step that writes a result of the workload; its attribute is the result's index."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of the table, or an input, accum or output."""

    name: str
    operands: tuple[int, ...]
    attribute: Attribute | str = None


@dataclass(frozen=True)
class Graph:
    """
    Steps in topological order; `shapes[s]` is the shape of the whole tensor that step s stands for.

    `loops` names the loop axes, the outermost first.
    """

    steps: tuple[Step, ...]
    shapes: tuple[Shape, ...]
    loops: tuple[str, ...]

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The input steps, in order."""
        return tuple(s for s, step in enumerate(self.steps) if step.name == INPUT)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The output steps, in order."""
        return tuple(s for s, step in enumerate(self.steps) if step.name == OUTPUT)

    @cached_property
    def tensors(self) -> tuple[int, ...]:
        """The steps that have maps: inputs, then outputs."""
        return self.inputs + self.outputs

    @cached_property
    def cuttable(self) -> tuple[tuple[int, ...], ...]:
        """Per step, the dims that an axis may cut: those of a size other than 1."""
        return tuple(
            tuple(d for d, size in enumerate(shape) if size != ONE) for shape in self.shapes
        )

    @cached_property
    def ones(self) -> tuple[tuple[bool, ...], ...]:
        """Per step and dim, whether the size is 1."""
        return tuple(tuple(size == ONE for size in shape) for shape in self.shapes)


def from_terms(
    table: TermTable,
    outputs: Sequence[int],
    accumulated: Mapping[int, str] | AbstractSet[int] | tuple[int, ...],
    loops: tuple[str, ...],
) -> Graph:
    """
    The graph of a DAG whose terms in `accumulated` are summed, each over its loop axis.

    A set without axes means the outermost loop.
    """
    if isinstance(accumulated, (AbstractSet, tuple)):
        accumulated = {term: loops[0] for term in accumulated}
    steps: list[Step] = []
    shapes: list[Shape] = []
    position: dict[int, int] = {}

    def append(step: Step, shape: Shape) -> int:
        steps.append(step)
        shapes.append(shape)
        return len(steps) - 1

    order = table.topological(outputs)
    inputs = sorted((t for t in order if table.nodes[t][0] == INPUT), key=lambda t: table.key(t))
    for term in [*inputs, *(t for t in order if table.nodes[t][0] != INPUT)]:
        name, attribute, operands = table.nodes[term]
        step = Step(name, tuple(position[o] for o in operands), attribute)
        position[term] = append(step, table.shapes[term])
        if term in accumulated:
            accum = Step(ACCUM, (position[term],), accumulated[term])
            position[term] = append(accum, table.shapes[term])
    for index, term in enumerate(outputs):
        append(Step(OUTPUT, (position[term],), index), table.shapes[term])
    return Graph(tuple(steps), tuple(shapes), loops)


def step_terms(table: TermTable, graph: Graph) -> list[int]:
    """The term that each step stands for: its erasure, maps and loops forgotten."""
    terms: list[int] = []
    for step, shape in zip(graph.steps, graph.shapes, strict=True):
        operands = [terms[o] for o in step.operands]
        match step.name, step.attribute:
            case "input", int(index):
                terms.append(table.input(index, shape))
            case (("accum" | "output"), _):
                terms.append(operands[0])
            case name, attribute if not isinstance(attribute, str):
                terms.append(table.apply(name, operands, attribute))
            case name, attribute:
                raise ValueError(f"step {name}: unexpected attribute {attribute!r}")
    return terms


def erasure(graph: Graph, terms: Sequence[int]) -> tuple[int, ...]:
    """
    The terms of a graph's outputs, in the order of the workload's results; `terms` is per step.
    """
    results = {graph.steps[s].attribute: terms[s] for s in graph.outputs}
    return tuple(results[index] for index in range(len(results)))


def canonical(graph: Graph) -> str:
    """
    A digest that is equal for graphs that differ only in the order of steps and of commuted
    operands.
    """
    digests: list[bytes] = []
    for step in graph.steps:
        parts = [digests[o] for o in step.operands]
        if step.name in COMMUTATIVE:
            parts.sort()
        head = f"{step.name} {step.attribute} ".encode()
        digests.append(blake2b(head + b"".join(parts), digest_size=16).digest())
    outputs = b"".join(sorted(digests[s] for s in graph.outputs))
    return f"{' '.join(graph.loops)}:{outputs.hex()}"
