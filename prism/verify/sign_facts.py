"""What is known of the values of terms, signs and definedness: data, as the axioms are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from prism.verify.axioms import parse_condition, split_conditions
from prism.verify.language import Pattern, parse


@dataclass(frozen=True)
class SignFact:
    """A condition on values (`pos`, `nonneg`, `nonzero`, `total`) that holds of `term`."""

    predicate: str
    term_text: str
    when_text: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The fact as text, which no two share."""
        when = f" if {', '.join(self.when_text)}" if self.when_text else ""
        return f"({self.predicate} {self.term_text}){when}"

    @cached_property
    def term(self) -> Pattern:
        """The parsed term."""
        return parse(self.term_text)

    @cached_property
    def when(self) -> tuple[tuple[Pattern, ...], ...]:
        """The parsed conditions."""
        return tuple(parse_condition(text) for text in self.when_text)


def _facts(predicate: str, table: str) -> tuple[SignFact, ...]:
    """Facts, one a line: `term if conditions`."""
    facts: list[SignFact] = []
    for line in table.strip().splitlines():
        term, _, conditions = line.strip().partition(" if ")
        facts.append(SignFact(predicate, term, split_conditions(conditions)))
    return tuple(facts)


SIGN_FACTS: tuple[SignFact, ...] = (
    *_facts(
        "pos",
        """
        (exp A)
        (sigmoid A)
        (rsqrt A)
        (sqrt A) if (nonzero A)
        (square A) if (nonzero A)
        (reciprocal A) if (nonneg A)
        (scale c A) if (gt0 c), (pos A)
        (shift c A) if (gt0 c), (nonneg A)
        (shift c A) if (ge0 c), (pos A)
        (add A B) if (pos A), (nonneg B)
        (mul A B) if (pos A), (pos B)
        (div A B) if (pos A), (nonneg B)
        (maximum A B) if (pos A)
        (sum d A) if (pos A), (uncut A d)
        (max d A) if (pos A)
        (part A d a) if (pos A)
        """,
    ),
    *_facts(
        "nonneg",
        """
        (square A)
        (sqrt A)
        (relu A)
        (scale c A) if (ge0 c), (nonneg A)
        (shift c A) if (ge0 c), (nonneg A)
        (add A B) if (nonneg A), (nonneg B)
        (mul A B) if (nonneg A), (nonneg B)
        (mul A A)
        (div A B) if (nonneg A), (nonneg B)
        (maximum A B) if (nonneg A)
        (sum d A) if (nonneg A)
        (max d A) if (nonneg A)
        (matmul A B) if (nonneg A), (nonneg B)
        (part A d a) if (nonneg A)
        (red A a) if (nonneg A)
        """,
    ),
    *_facts(
        "nonzero",
        """
        (reciprocal A)
        (scale c A) if (nz c), (nonzero A)
        (mul A B) if (nonzero A), (nonzero B)
        (div A B) if (nonzero A)
        (max d A) if (nonzero A)
        (part A d a) if (nonzero A)
        """,
    ),
    *_facts(
        "total",
        """
        (neg A) if (total A)
        (exp A) if (total A)
        (square A) if (total A)
        (sigmoid A) if (total A)
        (silu A) if (total A)
        (relu A) if (total A)
        (tanh A) if (total A)
        (log A) if (total A), (pos A)
        (sqrt A) if (total A), (nonneg A)
        (rsqrt A) if (total A), (pos A)
        (reciprocal A) if (total A), (nonzero A)
        (add A B) if (total A), (total B)
        (sub A B) if (total A), (total B)
        (mul A B) if (total A), (total B)
        (maximum A B) if (total A), (total B)
        (div A B) if (total A), (total B), (nonzero B)
        (scale c A) if (total A)
        (shift c A) if (total A)
        (matmul A B) if (total A), (total B)
        (sum d A) if (total A)
        (max d A) if (total A), (uncut A d)
        (swap A d e) if (total A)
        (slice A d w) if (total A)
        (gelu A) if (total A)
        (gelu_tanh A) if (total A)
        (part A d a) if (total A)
        """,
    ),
)
"""Signs of values wherever they are defined (`pos` implies the other two), and definedness."""
