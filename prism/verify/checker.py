"""
Checks proofs: sequences of instances of axioms and sign facts, closed under congruence.

It trusts the tables of axioms and facts, which the audit evaluates, the encoding of functions as
terms and itself. It needs neither egglog nor the search, and nothing here looks for a proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prism.verify.axioms import AXIOMS, Axiom
from prism.verify.congruence import Congruence, Known
from prism.verify.instantiate import VALUE_CONDITIONS, Binding, Condition, build_term, satisfies
from prism.verify.language import variables
from prism.verify.sign_facts import SIGN_FACTS, SignFact
from prism.verify.terms import IllShapedError, TermTable

Rule = Axiom | SignFact

RULES: Mapping[str, Rule] = {
    **{axiom.name: axiom for axiom in AXIOMS},
    **{fact.name: fact for fact in SIGN_FACTS},
}
"""Every axiom and sign fact by the name that a proof uses."""


class ProofError(Exception):
    """A step that does not follow; the message says which and why."""


@dataclass(frozen=True)
class Step:
    """An instance of a rule: a value for each variable of its left side, or of its term."""

    rule: str
    binding: Binding


@dataclass
class Checker:
    """
    What follows from the steps taken so far. `uses` has per step the facts that its conditions
    needed, each with the term of the condition.
    """

    table: TermTable
    congruence: Congruence = field(init=False)
    uses: list[list[tuple[int, Known]]] = field(default_factory=list[list[tuple[int, Known]]])

    def __post_init__(self) -> None:
        self.congruence = Congruence(self.table)

    def take(self, step: Step) -> None:
        """Takes a step. Raises ProofError if its rule does not apply."""
        rule = RULES.get(step.rule)
        if rule is None:
            raise ProofError(f"there is no axiom '{step.rule}'")
        side = rule.left if isinstance(rule, Axiom) else rule.term
        if variables(side).keys() != step.binding.keys():
            raise ProofError(f"{step.rule}: expected values for {', '.join(variables(side))}")
        number = len(self.uses)
        other: int | None = None
        try:
            root = build_term(self.table, side, step.binding)
            uses = [self._meet(step, condition) for condition in rule.when]
            if isinstance(rule, Axiom):
                other = build_term(self.table, rule.right, step.binding)
        except IllShapedError as error:
            raise ProofError(f"{step.rule}: {error}") from error
        if isinstance(rule, SignFact):
            self.congruence.learn(rule.predicate, root, number)
        elif other is not None:
            if self.table.shape(root) != self.table.shape(other):
                raise ProofError(f"{step.rule}: the sides have different shapes")
            self.congruence.union(root, other, number)
        self.uses.append([use for use in uses if use is not None])

    def _meet(self, step: Step, condition: Condition) -> tuple[int, Known] | None:
        """Checks a condition; the fact that it needed. Raises ProofError if it does not hold."""
        name = str(condition[0])
        if name not in VALUE_CONDITIONS:
            if not satisfies(self.table, condition, step.binding):
                raise ProofError(f"{step.rule}: the condition {name} does not hold")
            return None
        term = build_term(self.table, condition[1], step.binding)
        known = self.congruence.known(name, term)
        if known is None:
            raise ProofError(f"{step.rule}: nothing says that the condition {name} holds")
        return term, known


def check(table: TermTable, steps: Sequence[Step], goals: Sequence[tuple[int, int]]) -> None:
    """Checks that steps prove pairs of terms equal. Raises ProofError if they do not."""
    checker = Checker(table)
    for number, step in enumerate(steps):
        try:
            checker.take(step)
        except ProofError as error:
            raise ProofError(f"step {number}: {error}") from error
    for index, (left, right) in enumerate(goals):
        checker.congruence.add(left)
        checker.congruence.add(right)
        if not checker.congruence.same(left, right):
            raise ProofError(f"the steps do not prove result {index} equal")
