"""
The expression check: a value is kept only if its expression is part of one equal to the workload's.

The e-graph of the workload, saturated once, holds all these expressions. An operator on values of
given classes passes if it is an e-node, and then its class is known too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from prism.search.egraph import Classes, ClassId
from prism.search.enumerative.tensors import supported
from prism.search.rules import COMMUTATIVE
from prism.search.terms import INPUT, Attribute


@dataclass(frozen=True, slots=True)
class Application:
    """An operator on one or two classes, in this order, and the class of its result."""

    name: str
    attribute: Attribute
    operands: tuple[ClassId, ...]
    result: ClassId

    @property
    def commutes(self) -> bool:
        """Whether the operands may be swapped."""
        return self.name in COMMUTATIVE


class Expressions:
    """Which operators pass the check, by the classes of their operands."""

    def __init__(self, classes: Classes) -> None:
        self.unsupported: set[str] = set()
        """Operators of the e-graph that this engine does not know: it never adds them."""
        self._by_operands: dict[tuple[ClassId, ...], list[Application]] = {}
        self._results: dict[ClassId, set[ClassId]] = {}
        for result, nodes in enumerate(classes.nodes):
            for name, attribute, operands in nodes:
                if name == INPUT:
                    continue
                if len(operands) > 2 or not supported(name):
                    self.unsupported.add(name)
                    continue
                known = self._by_operands.setdefault(tuple(sorted(operands)), [])
                known.append(Application(name, attribute, operands, result))
                for operand in operands:
                    self._results.setdefault(operand, set()).add(result)
        for known in self._by_operands.values():
            known.sort(key=lambda one: (one.name, str(one.attribute), one.operands))

    def on(self, operands: Sequence[ClassId]) -> Sequence[Application]:
        """The operators that may take these classes, in any order of the operands."""
        return self._by_operands.get(tuple(sorted(operands)), ())

    def leads_on(self, known: ClassId, computed: Collection[ClassId]) -> bool:
        """Whether an operator may take this class for something not computed yet."""
        return any(result not in computed for result in self._results.get(known, ()))
