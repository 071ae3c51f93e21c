"""
Operator DAGs: every way to compute the outputs with one e-node per class that is needed.

A DAG is a tuple of terms, one per output: hash-consing makes equal subterms one operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prism.search.egraph import Classes, ClassId, ClassNode
from prism.search.terms import INPUT, TermTable

Dag = tuple[int, ...]
"""One term per output."""


@dataclass(frozen=True, slots=True)
class Dags:
    """
    The DAGs in canonical order, and the class of each of their terms.

    `complete` unless the limit cut the enumeration short.
    """

    dags: tuple[Dag, ...]
    class_of: dict[int, ClassId]
    complete: bool


def enumerate_dags(
    table: TermTable, classes: Classes, outputs: Sequence[ClassId], limit: int = 500
) -> Dags:
    """Every acyclic choice of one e-node per class reachable from `outputs`, at most `limit`."""
    useful = [_useful(nodes) for nodes in classes.nodes]
    found: dict[Dag, None] = {}
    class_of: dict[int, ClassId] = {}
    complete = True
    for chosen in _choices(useful, {}, tuple(outputs)):
        if len(found) >= limit:
            complete = False
            break
        terms = _build(table, chosen, outputs)
        found[tuple(terms[output] for output in outputs)] = None
        class_of |= {term: known for known, term in terms.items()}
    ordered = sorted(found, key=lambda dag: [table.key(term) for term in dag])
    return Dags(tuple(ordered), class_of, complete)


def _useful(nodes: Sequence[ClassNode]) -> list[ClassNode]:
    """
    Leaves out e-nodes that only spell another one of the class differently.

    An input is there already, and a a is a^2.
    """
    inputs = [node for node in nodes if node[0] == INPUT]
    if inputs:
        return inputs
    squares = {operands for name, _, operands in nodes if name == "square"}
    return [
        (name, attribute, operands)
        for name, attribute, operands in nodes
        if not (name == "mul" and operands[0] == operands[1] and operands[:1] in squares)
    ]


def _choices(
    nodes: Sequence[Sequence[ClassNode]],
    chosen: dict[ClassId, ClassNode],
    pending: tuple[ClassId, ...],
) -> Iterator[dict[ClassId, ClassNode]]:
    """
    Extends `chosen` to all classes that `pending` and its operands reach, in every acyclic way.
    """
    while pending and pending[-1] in chosen:
        pending = pending[:-1]
    if not pending:
        yield dict(chosen)
        return
    current = pending[-1]
    for node in nodes[current]:
        if not _reaches(chosen, node[2], current):
            chosen[current] = node
            yield from _choices(nodes, chosen, (*pending[:-1], *node[2]))
            del chosen[current]


def _reaches(chosen: dict[ClassId, ClassNode], sources: Sequence[ClassId], target: ClassId) -> bool:
    """Whether `target` is an operand, however deep, of `sources` under the choices made."""
    stack = list(sources)
    seen: set[ClassId] = set()
    while stack:
        current = stack.pop()
        if current == target:
            return True
        if current not in seen:
            seen.add(current)
            if current in chosen:
                stack.extend(chosen[current][2])
    return False


def _build(
    table: TermTable, chosen: dict[ClassId, ClassNode], outputs: Sequence[ClassId]
) -> dict[ClassId, int]:
    """The term of each class that a choice needs."""
    terms: dict[ClassId, int] = {}

    def build(current: ClassId) -> int:
        if current not in terms:
            name, attribute, operands = chosen[current]
            built = [build(o) for o in operands]
            if name == INPUT and isinstance(attribute, int):
                terms[current] = table.inputs[attribute]
            else:
                terms[current] = table.apply(name, built, attribute)
        return terms[current]

    for output in outputs:
        build(output)
    return terms
