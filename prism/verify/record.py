"""
Makes proofs for the checker: the e-graph notes the instances of axioms that it used, and what the
goals need of these is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from prism.verify.axioms import Axiom
from prism.verify.checker import RULES, Checker, ProofError, Step, check
from prism.verify.congruence import GIVEN
from prism.verify.egraph import EGraph
from prism.verify.instantiate import VALUE_CONDITIONS
from prism.verify.language import Pattern, variables
from prism.verify.sign_facts import SIGN_FACTS, SignFact
from prism.verify.terms import Argument, Constant, TermTable


class Recorder:
    """
    Replays the noted instances of an e-graph, in an order in which each follows, and picks from
    them the steps of proofs.
    """

    def __init__(self, table: TermTable, egraph: EGraph) -> None:
        self.table = table
        self.steps: list[Step] = []
        self.checker = Checker(table)
        noted = [Step(name, _binding(name, values)) for name, values in egraph.noted(table)]
        # Instances on small terms first: their explanations are the shorter ones.
        noted.sort(key=lambda step: max(v for v in step.binding.values() if isinstance(v, int)))
        self._replay(noted)

    def proof(self, goals: Sequence[tuple[int, int]]) -> list[Step] | None:
        """The steps that prove pairs of terms equal, or None if the noted instances do not."""
        congruence = self.checker.congruence
        for goal in goals:
            for term in goal:
                congruence.add(term)
            if not congruence.same(*goal):
                return None
        needed: set[int] = set()
        fresh = congruence.explain(goals)
        while fresh:
            needed |= fresh
            following: set[int] = set()
            for number in fresh:
                for term, known in self.checker.uses[number]:
                    following |= congruence.explain([(term, known.term)])
                    if known.reason != GIVEN:
                        following.add(known.reason)
            fresh = following - needed
        steps = [self.steps[number] for number in sorted(needed)]
        check(self.table, steps, goals)
        return steps

    def _replay(self, noted: Iterable[Step]) -> None:
        waiting = list(noted)
        while waiting:
            refused = [step for step in waiting if not self._try(step)]
            if not self._learn_signs() and len(refused) == len(waiting):
                return
            waiting = refused

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
            for term in range(len(self.table.terms)):
                for fact in _FACTS_OF.get(self.table.terms[term].head, ()):
                    again |= self._learn(fact, term)
            learned |= again
        return learned

    def _learn(self, fact: SignFact, term: int) -> bool:
        congruence = self.checker.congruence
        binding = self._match(fact.term, term)
        if binding is None or congruence.known(fact.predicate, term) is not None:
            return False
        # Cheaper than a refused step: a condition on values that nothing is known of.
        for condition in fact.when:
            value = binding.get(str(condition[1]))
            if condition[0] in VALUE_CONDITIONS and isinstance(value, int):
                if congruence.known(str(condition[0]), value) is None:
                    return False
        return self._try(Step(fact.name, binding))

    def _match(self, pattern: Pattern, term: int) -> dict[str, int | str | Constant] | None:
        """The binding under which a fact's term, which is one head over variables, is a term."""
        entry = self.table.terms[term]
        arguments = _grouped(entry.head, entry.arguments)
        binding: dict[str, int | str | Constant] = {}
        names = variables(pattern)
        parts = pattern[1:] if isinstance(pattern, tuple) else ()
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
    rule = RULES[name]
    if not isinstance(rule, Axiom):
        raise ValueError(f"'{name}' is no axiom")
    rest = list(values)
    binding: dict[str, int | str | Constant] = {}
    for variable, sort in variables(rule.left).items():
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
