"""
Terms over a workload's inputs: hash-consed, typed by shape, without maps, tiles or loops.

A term is the erasure of a value: what whole tensor it stands for. Terms are small ints into a
`TermTable`, equal ints being equal terms, so that a term is at the same time an operator DAG in
which every equal subterm is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from prism.dialects.expansions import expand
from prism.dialects.operators import OPERATORS, Attributes, Kind
from prism.dialects.shapes import NO_ATTRIBUTES, Shape, result_shape
from prism.dialects.sym_expr import SymExpr

INPUT = "input"
"""The name of a node that is an argument of the workload; its attribute is the argument's index."""

Attribute = int | SymExpr | Attributes | None
"""
The reduced dim of a reduction, the constant of a scalar operator, the index of an input; other
attributes as they are.
"""

Node = tuple[str, Attribute, tuple[int, ...]]
"""Operator, attribute, operands."""

ONE = SymExpr.constant(1)


class TermTable:
    """All terms of one search, each built once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.shapes: list[Shape] = []
        self.inputs: dict[int, int] = {}
        self._index: dict[Node, int] = {}
        self._keys: dict[int, str] = {}

    def input(self, index: int, shape: Shape) -> int:
        """The argument `index` of the workload."""
        term = self.inputs[index] = self._intern((INPUT, index, ()), shape)
        return term

    def apply(self, name: str, operands: Sequence[int], attribute: Attribute = None) -> int:
        """
        The term of an operator of the table that is not a composite.

        Raises VerifyException if the operands' shapes do not fit.
        """
        node = (name, attribute, tuple(operands))
        if (known := self._index.get(node)) is not None:
            return known
        shapes = [self.shapes[o] for o in operands]
        return self._intern(node, result_shape(OPERATORS[name], shapes, whole(attribute)))

    def expand(self, name: str, operands: Sequence[int], attributes: Attributes) -> int:
        """
        The term of any operator of the table, composites expanded to what they are defined as.

        See `prism.dialects.expansions`. Raises VerifyException if the operands' shapes do not fit.
        """
        return expand(_Builder(self), name, operands, attributes)

    def topological(self, roots: Sequence[int]) -> list[int]:
        """The terms that `roots` are made of, operands first, each once, in a fixed order."""
        seen: set[int] = set()
        order: list[int] = []
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            term, ready = stack.pop()
            if ready:
                order.append(term)
            elif term not in seen:
                seen.add(term)
                stack.append((term, True))
                stack.extend((o, False) for o in reversed(self.nodes[term][2]) if o not in seen)
        return order

    def key(self, root: int) -> str:
        """
        A term as text, operands first, each subterm once: linear in the DAG, whatever is shared.

        Independent of the order in which the table was filled: the order of keys is the canonical
        order of terms.
        """
        if (known := self._keys.get(root)) is not None:
            return known
        order = self.topological([root])
        position = {term: i for i, term in enumerate(order)}
        lines: list[str] = []
        for term in order:
            name, attribute, operands = self.nodes[term]
            inside = "" if attribute is None else f"<{attribute_text(attribute)}>"
            lines.append(f"{name}{inside}({','.join(str(position[o]) for o in operands)})")
        return self._keys.setdefault(root, ";".join(lines))

    def _intern(self, node: Node, shape: Shape) -> int:
        if (known := self._index.get(node)) is not None:
            return known
        term = self._index[node] = len(self.nodes)
        self.nodes.append(node)
        self.shapes.append(shape)
        return term


def compact(name: str, attributes: Attributes) -> Attribute:
    """
    Attributes as terms have them: the dim of a reduction or a constant alone stands for itself.
    """
    if attributes == Attributes():
        return None
    if attributes == Attributes(dim=attributes.dim) and OPERATORS[name].kind is not Kind.CONCAT:
        return attributes.dim
    if attributes == Attributes(constant=attributes.constant):
        return attributes.constant
    return attributes


def whole(attribute: Attribute) -> Attributes:
    """The attributes of an operator that a term has in short."""
    match attribute:
        case Attributes():
            return attribute
        case None:
            return NO_ATTRIBUTES
        case int():
            return Attributes(dim=attribute)
        case _:
            return Attributes(constant=attribute)


def attribute_text(attribute: Attribute) -> str:
    """An attribute as text, different for different ones."""
    if not isinstance(attribute, Attributes):
        return str(attribute)
    parts: list[str] = []
    if attribute.dim is not None:
        parts.append(f"dim {attribute.dim}")
    if attribute.constant is not None:
        parts.append(f"by {attribute.constant}")
    if attribute.bounds is not None:
        parts.append(f"from {attribute.bounds[0]} to {attribute.bounds[1]}")
    if attribute.permutation is not None:
        parts.append(f"perm {attribute.permutation}")
    if attribute.shape is not None:
        parts.append(f"shape [{', '.join(map(str, attribute.shape))}]")
    return " ".join(parts)


def is_positive(expression: SymExpr) -> bool:
    """Whether an expression is positive for all positive sizes, as far as its signs show."""
    coefficients = [c for _, c in (*expression.numerator, *expression.denominator)]
    return bool(expression.numerator) and all(c > Fraction(0) for c in coefficients)


@dataclass(frozen=True, slots=True)
class _Builder:
    """Builds expansions in a table."""

    table: TermTable

    def apply(self, name: str, operands: Sequence[int], attributes: Attributes) -> int:
        attribute = compact(name, attributes)
        first, *others = operands
        if OPERATORS[name].arity is None:
            # Joining many is joining two again and again.
            for other in others:
                first = self.table.apply(name, [first, other], attribute)
            return first
        return self.table.apply(name, operands, attribute)

    def shape(self, value: int) -> Shape:
        return self.table.shapes[value]
