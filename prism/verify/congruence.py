"""
Equality of terms closed under congruence, and the signs known of their values.

Every union has a reason, a number of the caller; `explain` says which reasons an equality follows
from. Needs neither egglog nor the search.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from prism.verify.language import argument_sorts
from prism.verify.terms import Argument, TermTable

Signature = tuple[str, tuple[Argument, ...]]

_IMPLIED = {"pos": ("nonneg", "nonzero")}
"""What else is known of values of a sign."""


GIVEN = -1
"""The reason for what needs none: inputs are real numbers."""


@dataclass(frozen=True, slots=True)
class Known:
    """That the values of a term have a sign, and for what reason."""

    term: int
    reason: int


@dataclass
class Congruence:
    """
    Classes of equal terms of a table, which may grow; terms enter by `add` with all inside them.
    """

    table: TermTable
    _parent: dict[int, int] = field(default_factory=dict[int, int])
    _members: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _users: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _signatures: dict[Signature, int] = field(default_factory=dict[Signature, int])
    _facts: dict[int, dict[str, Known]] = field(default_factory=dict[int, dict[str, Known]])
    _edges: dict[int, tuple[int, int | None]] = field(
        default_factory=dict[int, tuple[int, int | None]]
    )
    """The forest of unions: per term the next one towards its root and the reason, None if the two
    have equal operands."""
    _pending: list[tuple[int, int, int | None]] = field(
        default_factory=list[tuple[int, int, int | None]]
    )

    def add(self, term: int) -> None:
        """Enters a term and all inside it."""
        if term in self._parent:
            return
        operands = self.table.operands(term)
        for operand in operands:
            self.add(operand)
        self._parent[term] = term
        self._members[term] = [term]
        self._users[term] = []
        self._facts[term] = {}
        if self.table.terms[term].head == "in":
            self._facts[term]["total"] = Known(term, GIVEN)
        for operand in set(map(self.find, operands)):
            self._users[operand].append(term)
        self._sign(term)
        self._settle()

    def terms(self) -> list[int]:
        """All terms that have entered, in order."""
        return list(self._parent)

    def find(self, term: int) -> int:
        """The representative of a term's class."""
        root = term
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[term] != root:
            self._parent[term], term = root, self._parent[term]
        return root

    def same(self, left: int, right: int) -> bool:
        """Whether two terms are equal; both were added."""
        return self.find(left) == self.find(right)

    def union(self, left: int, right: int, reason: int) -> None:
        """Makes two terms equal, and all that follows by congruence."""
        self.add(left)
        self.add(right)
        self._pending.append((left, right, reason))
        self._settle()

    def learn(self, predicate: str, term: int, reason: int) -> bool:
        """Notes what is known of the values of a term; whether it is new."""
        self.add(term)
        facts = self._facts[self.find(term)]
        known = Known(term, reason)
        new = predicate not in facts
        for name in (predicate, *_IMPLIED.get(predicate, ())):
            facts.setdefault(name, known)
        return new

    def known(self, predicate: str, term: int) -> Known | None:
        """What is known of the values of a term or one equal to it, if anything."""
        self.add(term)
        return self._facts[self.find(term)].get(predicate)

    def members(self, term: int) -> list[int]:
        """All terms equal to a term."""
        return self._members[self.find(term)]

    def explain(self, pairs: Iterable[tuple[int, int]]) -> set[int]:
        """The reasons from which equalities follow that hold."""
        reasons: set[int] = set()
        seen: set[tuple[int, int]] = set()
        stack = list(pairs)
        while stack:
            left, right = stack.pop()
            if left == right or (left, right) in seen:
                continue
            seen.add((left, right))
            for a, b, reason in self._path(left, right):
                if reason is None:
                    operands = zip(self.table.operands(a), self.table.operands(b), strict=True)
                    stack += operands
                else:
                    reasons.add(reason)
        return reasons

    def _settle(self) -> None:
        while self._pending:
            left, right, reason = self._pending.pop()
            a, b = self.find(left), self.find(right)
            if a == b:
                continue
            if len(self._members[a]) > len(self._members[b]):
                a, b, left, right = b, a, right, left
            self._link(left, right, reason)
            self._parent[a] = b
            self._members[b] += self._members.pop(a)
            for name, known in self._facts.pop(a).items():
                self._facts[b].setdefault(name, known)
            users = self._users.pop(a)
            self._users[b] += users
            for user in users:
                self._sign(user)

    def _sign(self, term: int) -> None:
        """Joins a term with one of the same head whose operands are equal to its own."""
        entry = self.table.terms[term]
        if entry.head == "in":
            return
        arguments = tuple(
            self.find(argument) if sort == "term" and isinstance(argument, int) else argument
            for sort, argument in zip(argument_sorts(entry.head), entry.arguments, strict=True)
        )
        other = self._signatures.setdefault((entry.head, arguments), term)
        if other != term and not self.same(other, term):
            self._pending.append((term, other, None))

    def _link(self, left: int, right: int, reason: int | None) -> None:
        """Adds an edge to the forest: the tree of `left` gets it as its root first."""
        node, edge = left, self._edges.pop(left, None)
        while edge is not None:
            above, why = edge
            following = self._edges.pop(above, None)
            self._edges[above] = (node, why)
            node, edge = above, following
        self._edges[left] = (right, reason)

    def _path(self, left: int, right: int) -> list[tuple[int, int, int | None]]:
        """The edges between two terms of one tree of the forest."""
        depth: dict[int, int] = {left: 0}
        up: list[tuple[int, int, int | None]] = []
        node = left
        while node in self._edges:
            above, why = self._edges[node]
            up.append((node, above, why))
            node = above
            depth[node] = len(up)
        down: list[tuple[int, int, int | None]] = []
        node = right
        while node not in depth:
            above, why = self._edges[node]
            down.append((node, above, why))
            node = above
        return up[: depth[node]] + down
