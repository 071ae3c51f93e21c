"""
Checks proofs: sequences of instances of axioms and sign facts, closed under congruence.

It trusts the tables of axioms and facts, which the audit evaluates, the encoding of functions as
terms and itself. It needs neither egglog nor the search, and nothing here looks for a proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from prism.verify.axioms import AXIOMS, Axiom
from prism.verify.congruence import Congruence, Known
from prism.verify.instantiate import VALUE_CONDITIONS, Binding, build_term, satisfies
from prism.verify.language import variables
from prism.verify.sign_facts import SIGN_FACTS, SignFact
from prism.verify.terms import IllShapedError, TermTable

Rule = Axiom | SignFact

RULES: Mapping[str, Rule] = {
    **{axiom.name: axiom for axiom in AXIOMS},
    **{fact.name: fact for fact in SIGN_FACTS},
}
"""Every axiom and sign fact by the name that a proof uses."""


@cache
def variables_of(rule: str) -> Mapping[str, str]:
    """The variables of the left side of an axiom, or of a fact's term, each with its sort."""
    entry = RULES[rule]
    return variables(entry.left if isinstance(entry, Axiom) else entry.term)


class ProofError(Exception):
    """A step that does not follow; the message says which and why."""


@dataclass(frozen=True)
class Step:
    """An instance of a rule: a value for each variable of its left side, or of its term."""

    rule: str
    binding: Binding


@dataclass(frozen=True)
class _Instance:
    """
    What a step says where its conditions on values hold: that the term `root` is equal to `other`,
    or of a sign fact (without `other`) what it is.
    """

    root: int
    other: int | None
    predicate: str
    values: Sequence[tuple[str, int]]
    """The conditions on values, each with its term."""


class Instances:
    """
    The instances of steps over one table. What they are depends on the table alone, so the proofs
    of several graphs share them: of the same step object the shapes are checked once.
    """

    def __init__(self, table: TermTable) -> None:
        self.table = table
        self._known: dict[int, tuple[Step, _Instance]] = {}

    def of(self, step: Step) -> _Instance:
        """The instance of a step. Raises ProofError unless its rule applies to its terms."""
        known = self._known.get(id(step))
        if known is None:
            # The step is kept, so its id stays its own.
            known = self._known[id(step)] = (step, self._make(step))
        return known[1]

    def _make(self, step: Step) -> _Instance:
        rule = RULES.get(step.rule)
        if rule is None:
            raise ProofError(f"there is no axiom '{step.rule}'")
        side = rule.left if isinstance(rule, Axiom) else rule.term
        expected = variables_of(step.rule)
        if expected.keys() != step.binding.keys():
            raise ProofError(f"{step.rule}: expected values for {', '.join(expected)}")
        try:
            root = build_term(self.table, side, step.binding)
            values: list[tuple[str, int]] = []
            for condition in rule.when:
                name = str(condition[0])
                if name in VALUE_CONDITIONS:
                    values.append((name, build_term(self.table, condition[1], step.binding)))
                elif not satisfies(self.table, condition, step.binding):
                    raise ProofError(f"{step.rule}: the condition {name} does not hold")
            if isinstance(rule, SignFact):
                return _Instance(root, None, rule.predicate, values)
            other = build_term(self.table, rule.right, step.binding)
        except IllShapedError as error:
            raise ProofError(f"{step.rule}: {error}") from error
        if self.table.shape(root) != self.table.shape(other):
            raise ProofError(f"{step.rule}: the sides have different shapes")
        return _Instance(root, other, "", values)


@dataclass
class Checker:
    """
    What follows from the steps taken so far. `uses` has per step the facts that its conditions
    needed, each with the term of the condition.
    """

    instances: Instances
    congruence: Congruence = field(init=False)
    uses: list[list[tuple[int, Known]]] = field(default_factory=list[list[tuple[int, Known]]])

    def __post_init__(self) -> None:
        self.congruence = Congruence(self.instances.table)

    def take(self, step: Step) -> None:
        """Takes a step. Raises ProofError if its rule does not apply."""
        instance = self.instances.of(step)
        uses: list[tuple[int, Known]] = []
        for name, term in instance.values:
            known = self.congruence.known(name, term)
            if known is None:
                raise ProofError(f"{step.rule}: nothing says that the condition {name} holds")
            uses.append((term, known))
        if instance.other is None:
            self.congruence.learn(instance.predicate, instance.root, len(self.uses))
        else:
            self.congruence.union(instance.root, instance.other, len(self.uses))
        self.uses.append(uses)


def check(steps: Sequence[Step], goals: Sequence[tuple[int, int]], instances: Instances) -> None:
    """Checks that steps prove pairs of terms equal. Raises ProofError if they do not."""
    checker = Checker(instances)
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
