"""
Map variables under equalities and exclusions, with undo: what symbolic dimension matching solves.

The literal of a dim on an axis says whether the axis cuts it: `NEVER`, `CUT`, or a variable. A
store keeps the equalities that matching finds and propagates them through the paper's constraints
(1) and (2), each an exclusion of which at most one literal is `CUT`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NEVER = 0
"""The literal of a dim that the axis does not cut."""

CUT = 1
"""The literal of a dim that the axis cuts."""


class Cuts:
    """
    Literals by union and find, `NEVER` and `CUT` being two classes that never meet.

    Every change can be undone: `mark` before, `undo` after. A method that returns False found a
    contradiction and leaves the store to be undone.
    """

    def __init__(self) -> None:
        self._parent = [NEVER, CUT]
        self._members = [[NEVER], [CUT]]
        self._exclusions: list[tuple[int, ...]] = []
        self._excluded_in: list[list[int]] = [[], []]
        self._choices: list[tuple[int, ...]] = []
        self._trail: list[int] = []

    @property
    def exclusions(self) -> Sequence[tuple[int, ...]]:
        """The sets of literals of which at most one is `CUT`."""
        return self._exclusions

    @property
    def choices(self) -> Sequence[tuple[int, ...]]:
        """The sets of literals of which one or more are `CUT`."""
        return self._choices

    def variable(self) -> int:
        """A new variable; it stays when changes are undone."""
        self._parent.append(len(self._parent))
        self._members.append([self._parent[-1]])
        self._excluded_in.append([])
        return self._parent[-1]

    def find(self, literal: int) -> int:
        """`NEVER`, `CUT` or the variable that stands for all that equal the literal."""
        parent = self._parent
        while parent[literal] != literal:
            literal = parent[literal]
        return literal

    def mark(self) -> tuple[int, int, int]:
        """The state to come back to."""
        return len(self._trail), len(self._exclusions), len(self._choices)

    def undo(self, mark: tuple[int, int, int]) -> None:
        """Takes back every change since `mark`."""
        changes, exclusions, choices = mark
        while len(self._trail) > changes:
            child = self._trail.pop()
            del self._members[self._parent[child]][-len(self._members[child]) :]
            self._parent[child] = child
        while len(self._exclusions) > exclusions:
            index = len(self._exclusions) - 1
            for literal in self._exclusions.pop():
                if self._excluded_in[literal][-1:] == [index]:
                    self._excluded_in[literal].pop()
        del self._choices[choices:]

    def equate(self, left: int, right: int) -> bool:
        """Makes two literals equal, with all that follows from the exclusions."""
        root, child = sorted((self.find(left), self.find(right)))
        if root == child:
            return True
        if child == CUT:
            return False
        members = list(self._members[child])
        self._parent[child] = root
        self._members[root] += members
        self._trail.append(child)
        if root == NEVER:
            return True
        return all(
            self._propagate(self._exclusions[index])
            for member in members
            for index in self._excluded_in[member]
        )

    def match(self, left: Sequence[int], right: Sequence[int]) -> bool:
        """Makes two dims cut by the same axes: equal coefficients, axis by axis."""
        return all(self.equate(a, b) for a, b in zip(left, right, strict=True))

    def exclude(self, literals: Sequence[int]) -> bool:
        """At most one of some literals is `CUT`; equal ones are hence `NEVER`."""
        index = len(self._exclusions)
        self._exclusions.append(tuple(literals))
        for literal in literals:
            self._excluded_in[literal].append(index)
        return self._propagate(self._exclusions[index])

    def require(self, literals: Iterable[int]) -> bool:
        """At least one of some literals is `CUT`."""
        self._choices.append(tuple(literals))
        return self.consistent()

    def consistent(self) -> bool:
        """Whether every required choice is still open; the last literal of one is `CUT`."""
        for choice in self._choices:
            roots = {self.find(literal) for literal in choice} - {NEVER}
            if not roots:
                return False
            if len(roots) == 1 and not self.equate(roots.pop(), CUT):
                return False
        return True

    def _propagate(self, exclusion: Sequence[int]) -> bool:
        roots = [self.find(literal) for literal in exclusion]
        if roots.count(CUT) > 1:
            return False
        if CUT in roots:
            return all(self.equate(root, NEVER) for root in roots if root != CUT)
        return all(
            self.equate(root, NEVER) for root in roots if root != NEVER and roots.count(root) > 1
        )
