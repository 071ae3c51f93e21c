"""
Makes proofs for the checker: the e-graph notes the instances of axioms that it used, and what the
goals need of these is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from prism.verify.checker import Checker, Instances, ProofError, Step, check, variables_of
from prism.verify.congruence import GIVEN
from prism.verify.egraph import EGraph
from prism.verify.instantiate import VALUE_CONDITIONS
from prism.verify.sign_facts import SIGN_FACTS, SignFact
from prism.verify.terms import Argument, Constant, TermTable


@dataclass(frozen=True, slots=True)
class _Chance:
    """A sign fact that may say something of a term, and the conditions on values that it needs."""

    predicate: str
    term: int
    needs: Sequence[tuple[str, int]]
    step: Step


class Recorder:
    """
    Replays the noted instances of an e-graph, in an order in which each follows, and picks from
    them the steps of proofs of the goals.
    """

    def __init__(self, table: TermTable, egraph: EGraph, goals: Sequence[tuple[int, int]]) -> None:
        self.table = table
        self.steps: list[Step] = []
        self.instances = Instances(table)
        self.checker = Checker(self.instances)
        self._seen = 0
        self._open: list[_Chance] = []
        self._follows: dict[int, frozenset[int]] = {}
        noted = [Step(name, _binding(name, values)) for name, values in egraph.noted(table)]
        # Instances on small terms first: their explanations are the shorter ones.
        noted.sort(key=lambda step: max(v for v in step.binding.values() if isinstance(v, int)))
        refused = self._replay(noted)
        if refused:
            # The sign that a step lacks may come from a term of a goal that is equal to its own.
            # Entered before, these would make the explanations of what is equal longer.
            for term in (term for goal in goals for term in goal):
                self.checker.congruence.add(term)
            self._replay(refused)

    def proof(self, goals: Sequence[tuple[int, int]]) -> list[Step] | None:
        """The steps that prove pairs of terms equal, or None if the noted instances do not."""
        congruence = self.checker.congruence
        for goal in goals:
            for term in goal:
                congruence.add(term)
            if not congruence.same(*goal):
                return None
        needed: set[int] = set()
        fresh = frozenset(congruence.explain(goals))
        while fresh:
            needed |= fresh
            fresh = frozenset[int]().union(*map(self._needs, fresh)) - needed
        steps = [self.steps[number] for number in sorted(needed)]
        check(steps, goals, self.instances)
        return steps

    def _needs(self, number: int) -> frozenset[int]:
        """The steps that the conditions of a step need."""
        if number not in self._follows:
            uses = self.checker.uses[number]
            equal = self.checker.congruence.explain((term, known.term) for term, known in uses)
            signs = {known.reason for _, known in uses if known.reason != GIVEN}
            self._follows[number] = frozenset(equal | signs)
        return self._follows[number]

    def _replay(self, noted: Sequence[Step]) -> Sequence[Step]:
        """Takes steps until no further one follows, and returns those that do not."""
        waiting = noted
        while waiting:
            refused = [step for step in waiting if not self._try(step)]
            if not self._learn_signs() and len(refused) == len(waiting):
                break
            waiting = refused
        return waiting

    def _try(self, step: Step) -> bool:
        try:
            self.checker.take(step)
        except ProofError:
            return False
        self.steps.append(step)
        return True

    def _learn_signs(self) -> bool:
        """Takes every sign fact that says something new of a term; whether there was one."""
        learned = False
        again = True
        while again:
            again = False
            self._notice()
            waiting: list[_Chance] = []
            for chance in self._open:
                if self.checker.congruence.known(chance.predicate, chance.term) is None:
                    if self._learn(chance):
                        again = True
                    else:
                        waiting.append(chance)
            self._open = waiting
            learned |= again
        return learned

    def _notice(self) -> None:
        """Finds the sign facts that may say something of the terms that are new."""
        # A term that has not entered is equal to none, so no instance needs to know its sign.
        terms = self.checker.congruence.terms()
        for term in terms[self._seen :]:
            for fact in _FACTS_OF.get(self.table.terms[term].head, ()):
                binding = self._match(fact, term)
                if binding is None:
                    continue
                needs = [
                    (str(condition[0]), value)
                    for condition in fact.when
                    if condition[0] in VALUE_CONDITIONS
                    and isinstance(value := binding.get(str(condition[1])), int)
                ]
                self._open.append(_Chance(fact.predicate, term, needs, Step(fact.name, binding)))
        self._seen = len(terms)

    def _learn(self, chance: _Chance) -> bool:
        # Cheaper than a refused step: a condition on values that nothing is known of.
        known = self.checker.congruence.known
        if any(known(predicate, term) is None for predicate, term in chance.needs):
            return False
        return self._try(chance.step)

    def _match(self, fact: SignFact, term: int) -> dict[str, int | str | Constant] | None:
        """The binding under which a fact's term, which is one head over variables, is a term."""
        entry = self.table.terms[term]
        arguments = _grouped(entry.head, entry.arguments)
        binding: dict[str, int | str | Constant] = {}
        names = variables_of(fact.name)
        parts = fact.term[1:] if isinstance(fact.term, tuple) else ()
        for part, argument in zip(parts, arguments, strict=True):
            name = str(part)
            if name not in names:
                if name != argument:
                    return None
            elif name in binding and binding[name] != argument:
                return None
            else:
                binding[name] = argument
        return binding


_FACTS_OF: dict[str, tuple[SignFact, ...]] = {
    head: tuple(
        fact for fact in SIGN_FACTS if isinstance(fact.term, tuple) and fact.term[0] == head
    )
    for head in {str(fact.term[0]) for fact in SIGN_FACTS if isinstance(fact.term, tuple)}
}
"""The sign facts by the head of their term."""


def _binding(name: str, values: Sequence[Argument]) -> dict[str, int | str | Constant]:
    """The binding of noted values, of which a constant takes two."""
    rest = list(values)
    binding: dict[str, int | str | Constant] = {}
    for variable, sort in variables_of(name).items():
        value = rest.pop(0)
        if sort == "constant":
            binding[variable] = Constant(Fraction(value), Fraction(rest.pop(0)))
        elif isinstance(value, Fraction):
            raise ValueError(f"{name}: a number for {variable}")
        else:
            binding[variable] = value
    return binding


def _grouped(head: str, arguments: Sequence[Argument]) -> list[int | str | Constant]:
    """The arguments of a term with constants in one piece."""
    if head in ("scale", "shift"):
        value, sizes, a = arguments
        return [Constant(Fraction(value), Fraction(sizes)), int(a)]
    return [argument for argument in arguments if not isinstance(argument, Fraction)]
