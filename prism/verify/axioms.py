"""
The axioms that `prism-verify` may use, as data.

Every axiom is an equation of terms of `prism/verify/language.py` with the side conditions under
which it holds for all sizes, at every index of the axes, with equal domains: where one side is
undefined (a division by zero, a root of a negative number) so is the other. The conditions list all
that is needed beyond the left side being well-shaped; the tests drop each to find that it matters.

Published sets of this kind drop conditions: dividing passes a matmul only if the divisor has size 1
in the contracted dim, a sum over an axis of a tensor that does not depend on it is a multiple of
it, and a mean is not a sum. Here none of these follows.

Most axioms are used in one direction, towards a form in which quotients are products with
reciprocals, differences are sums and factors stand outside of sums and matmuls. That keeps the
e-graph small: on the workloads of the paper it saturates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from prism.verify.language import Pattern, parse


class AxiomClass(Enum):
    """What an axiom is about."""

    COMMUTATION = "commutation of cutting with an operator"
    CANCELLATION = "cancellation of comb and part"
    PARALLEL_MATMUL = "a matmul by parts of the contracted dim"
    PARALLEL_SUM = "a sum by parts of the summed dim"
    LINEARITY = "a sum over an axis passing a linear operator"
    MATMUL = "matmul algebra"
    SUM = "algebra of sums"
    MAXIMUM = "algebra of maxima over a dim"
    ELEMENTWISE = "elementwise algebra"
    DISTRIBUTION = "products of sums"
    QUOTIENT = "quotients and reciprocals"
    CONSTANT = "scaling and shifting by constants"
    ROOT = "squares and roots"
    EXPONENTIAL = "exponentials and logarithms"
    ACTIVATION = "activation functions"


MOVEMENT = frozenset(
    {
        AxiomClass.COMMUTATION,
        AxiomClass.CANCELLATION,
        AxiomClass.PARALLEL_MATMUL,
        AxiomClass.PARALLEL_SUM,
        AxiomClass.LINEARITY,
    }
)
"""The classes that move parts and sums over axes; the others are about whole tensors."""


@dataclass(frozen=True)
class Axiom:
    """`left = right` under the conditions `when`; used from right to left as well if `both`."""

    name: str
    kind: AxiomClass
    left_text: str
    right_text: str
    when_text: tuple[str, ...] = ()
    both: bool = False
    simplifies: bool = False
    """Whether the left side, once replaced, is of no more use: cancellations must not be undone."""
    unless_same: tuple[str, str] | None = None
    """Two variables; where they are one term the axiom would go on for ever and is not used."""

    @cached_property
    def left(self) -> Pattern:
        """The parsed left side."""
        return parse(self.left_text)

    @cached_property
    def right(self) -> Pattern:
        """The parsed right side."""
        return parse(self.right_text)

    @cached_property
    def when(self) -> tuple[tuple[Pattern, ...], ...]:
        """The parsed conditions."""
        return tuple(parse_condition(text) for text in self.when_text)


def parse_condition(text: str) -> tuple[Pattern, ...]:
    """The parsed text of one condition."""
    pattern = parse(text)
    if not isinstance(pattern, tuple):
        raise ValueError(f"expected a condition, found {text!r}")
    return pattern


def split_conditions(text: str) -> tuple[str, ...]:
    """`(unit B 1), (nz c)` as texts of conditions."""
    return tuple(part.strip() for part in text.split(", ")) if text else ()


def _class(kind: AxiomClass, table: str) -> tuple[Axiom, ...]:
    """
    The axioms of a class, one a line: `name: left -> right if conditions`.

    With `=` in place of the arrow an axiom is used both ways, with `=>` it simplifies. A line may
    go on with its `if` and end with `unless A is B`.
    """
    axioms: list[Axiom] = []
    for line in table.strip().replace("\n            ", " ").splitlines():
        name, _, rule = line.strip().partition(": ")
        rule, _, same = rule.partition(" unless ")
        equation, _, conditions = rule.partition(" if ")
        arrow = next(arrow for arrow in (" = ", " -> ", " => ") if arrow in equation)
        left, _, right = equation.partition(arrow)
        one, _, other = same.partition(" is ")
        axioms.append(
            Axiom(
                name,
                kind,
                left,
                right,
                split_conditions(conditions),
                both=arrow == " = ",
                simplifies=arrow == " => ",
                unless_same=(one, other) if same else None,
            )
        )
    return tuple(axioms)


AXIOMS: tuple[Axiom, ...] = (
    *_class(
        AxiomClass.COMMUTATION,
        """
        unary-part: (un f (part A d a)) -> (part (un f A) d a)
        scale-part: (scale c (part A d a)) -> (part (scale c A) d a)
        shift-part: (shift c (part A d a)) -> (part (shift c A) d a)
        binary-part-part: (bin g (part A d a) (part B d a)) -> (part (bin g A B) d a)
        binary-part-unit: (bin g (part A d a) B) -> (part (bin g A B) d a) if (unit B d)
        binary-unit-part: (bin g A (part B d a)) -> (part (bin g A B) d a) if (unit A d)
        matmul-part-rows: (matmul (part A 2 a) B) -> (part (matmul A B) 2 a)
        matmul-part-columns: (matmul A (part B 1 a)) -> (part (matmul A B) 1 a)
        matmul-part-batch: (matmul (part A d a) (part B d a)) -> (part (matmul A B) d a)
            if (batch d)
        sum-part: (sum d (part A e a)) -> (part (sum d A) e a) if (ne-dim d e)
        max-part: (max d (part A e a)) -> (part (max d A) e a) if (ne-dim d e)
        swap-part: (swap (part A f a) d e) -> (part (swap A d e) f a)
            if (ne-dim f d), (ne-dim f e)
        swap-part-later: (swap (part A d a) d e) -> (part (swap A d e) e a)
        swap-part-earlier: (swap (part A e a) d e) -> (part (swap A d e) d a)
        slice-part: (slice (part A e a) d w) -> (part (slice A d w) e a)
        part-part: (part (part A d a) e b) -> (part (part A e b) d a) if (ne-dim d e)
        red-part: (red (part A d b) a) -> (part (red A a) d b)
        """,
    ),
    *_class(
        AxiomClass.CANCELLATION,
        """
        comb-of-part: (comb (part A d a) d a) -> A if (closed A a)
        part-of-comb: (part (comb A d a) d a) -> A
        """,
    ),
    *_class(
        AxiomClass.PARALLEL_MATMUL,
        """
        matmul-by-parts: (red (matmul (part A 1 a) (part B 2 a)) a) -> (matmul A B)
            if (closed A a), (closed B a)
        """,
    ),
    *_class(
        AxiomClass.PARALLEL_SUM,
        """
        sum-by-parts: (red (sum d (part A d a)) a) -> (sum d A) if (closed A a)
        sum-of-comb: (sum d (comb A d a)) -> (red (sum d A) a)
        rescaled-sum: (rescaled (sum d (exp (sub (part A d a) (max d (part A d a)))))
            (max d (part A d a)) a) -> (sum d (exp (sub A (max d A))))
            if (closed A a), (uncut A d)
        rescaled-matmul: (rescaled
            (matmul (exp (sub (part A 1 a) (max 1 (part A 1 a)))) (part B 2 a))
            (max 1 (part A 1 a)) a) -> (matmul (exp (sub A (max 1 A))) B)
            if (closed A a), (closed B a), (uncut A 1)
        max-by-parts: (redmax (max d (part A d a)) a) -> (max d A) if (closed A a)
        max-of-comb: (max d (comb A d a)) -> (redmax (max d A) a)
        """,
    ),
    *_class(
        AxiomClass.LINEARITY,
        """
        red-unary: (red (un f A) a) -> (un f (red A a)) if (linear f)
        red-scale: (red (scale c A) a) -> (scale c (red A a))
        red-left: (red (bin g A B) a) -> (bin g (red A a) B) if (linear-left g), (closed B a)
        red-right: (red (bin g A B) a) -> (bin g A (red B a)) if (linear-right g), (closed A a)
        red-additive: (red (bin g A B) a) -> (bin g (red A a) (red B a)) if (additive g)
        red-matmul-left: (red (matmul A B) a) -> (matmul (red A a) B) if (closed B a)
        red-matmul-right: (red (matmul A B) a) -> (matmul A (red B a)) if (closed A a)
        red-sum: (red (sum d A) a) -> (sum d (red A a)) if (free A d a)
        red-swap: (red (swap A d e) a) -> (swap (red A a) d e)
        red-slice: (red (slice A d w) a) -> (slice (red A a) d w)
        red-red: (red (red A a) b) -> (red (red A b) a)
        """,
    ),
    *_class(
        AxiomClass.MATMUL,
        """
        matmul-associative: (matmul (matmul A B) C) = (matmul A (matmul B C))
            if (uncut A 1), (uncut B 1)
        matmul-mul-rows: (matmul (mul A B) C) -> (mul (matmul A C) B)
            if (unit B 1), (same-batch A C)
        matmul-mul-columns: (matmul A (mul B C)) -> (mul (matmul A B) C)
            if (unit C 2), (same-batch A B)
        matmul-scale-left: (matmul (scale c A) B) -> (scale c (matmul A B))
        matmul-scale-right: (matmul A (scale c B)) -> (scale c (matmul A B))
        matmul-sum-rows: (sum 2 (matmul A B)) -> (matmul (sum 2 A) B) if (uncut A 2)
        matmul-sum-columns: (sum 1 (matmul A B)) -> (matmul A (sum 1 B)) if (uncut B 1)
        matmul-swap: (matmul (swap B 1 2) (swap A 1 2)) = (swap (matmul A B) 1 2)
        swap-swap: (swap (swap A d e) d e) => A
        swap-unary: (swap (un f A) d e) -> (un f (swap A d e))
        swap-binary: (swap (bin g A B) d e) -> (bin g (swap A d e) (swap B d e))
        swap-scale: (swap (scale c A) d e) -> (scale c (swap A d e))
        slice-columns: (slice (matmul A B) 1 w) -> (matmul A (slice B 1 w))
        slice-rows: (slice (matmul A B) 2 w) -> (matmul (slice A 2 w) B)
        slice-unary: (slice (un f A) d w) -> (un f (slice A d w))
        slice-scale: (slice (scale c A) d w) -> (scale c (slice A d w))
        matmul-outer: (matmul A B) -> (mul A B) if (unit A 1)
        """,
    ),
    *_class(
        AxiomClass.SUM,
        """
        sum-sum: (sum d (sum e A)) -> (sum e (sum d A))
        sum-unit: (sum d A) => A if (unit A d)
        sum-add: (sum d (add A B)) -> (add (sum d A) (sum d B)) if (same A B d)
        sum-mul: (sum d (mul A B)) -> (mul (sum d A) B) if (unit B d), (uncut A d)
        sum-scale: (sum d (scale c A)) -> (scale c (sum d A))
        variance: (scale c (sum d (square (sub A (scale c (sum d A)))))) ->
            (sub (scale c (sum d (square A))) (square (scale c (sum d A)))) if (mean c A d)
        """,
    ),
    *_class(
        AxiomClass.MAXIMUM,
        """
        max-max: (max d (max e A)) -> (max e (max d A))
        max-unit: (max d A) => A if (unit A d)
        max-increasing: (max d (un f A)) -> (un f (max d A)) if (increasing f), (uncut A d)
        max-add: (max d (add A B)) -> (add (max d A) B) if (unit B d), (uncut A d)
        max-mul: (max d (mul A B)) -> (mul (max d A) B) if (unit B d), (nonneg B), (uncut A d)
        max-scale: (max d (scale c A)) -> (scale c (max d A)) if (ge0 c), (uncut A d)
        max-shift: (max d (shift c A)) -> (shift c (max d A)) if (uncut A d)
        max-maximum: (max d (maximum A B)) -> (maximum (max d A) (max d B)) if (same A B d)
        """,
    ),
    *_class(
        AxiomClass.ELEMENTWISE,
        """
        add-commutative: (add A B) -> (add B A)
        add-associative: (add (add A B) C) = (add A (add B C))
        add-zero: (add A (scale 0 B)) => A if (total B), (same-shape A (add A (scale 0 B)))
        mul-commutative: (mul A B) -> (mul B A)
        mul-associative: (mul (mul A B) C) = (mul A (mul B C))
        sub-as-add: (sub A B) -> (add A (scale -1 B))
        neg-as-scale: (neg A) -> (scale -1 A)
        add-same: (add A A) -> (scale 2 A)
        maximum-commutative: (maximum A B) -> (maximum B A)
        maximum-associative: (maximum (maximum A B) C) = (maximum A (maximum B C))
        maximum-same: (maximum A A) => A
        maximum-add: (maximum (add A C) (add B C)) -> (add (maximum A B) C)
        maximum-mul: (maximum (mul A C) (mul B C)) -> (mul (maximum A B) C) if (nonneg C)
        """,
    ),
    *_class(
        AxiomClass.DISTRIBUTION,
        """
        mul-over-add: (mul (add A B) C) -> (add (mul A C) (mul B C))
        matmul-add-left: (matmul (add A B) C) -> (add (matmul A C) (matmul B C))
            if (same A B 1), (same-batch A B)
        matmul-add-right: (matmul A (add B C)) -> (add (matmul A B) (matmul A C))
            if (same B C 2), (same-batch B C)
        shift-mul: (mul (shift c A) B) -> (add (mul A B) (scale c B))
        """,
    ),
    *_class(
        AxiomClass.QUOTIENT,
        """
        div-as-mul: (div A B) -> (mul A (reciprocal B))
        reciprocal-reciprocal: (reciprocal (reciprocal A)) => A if (nonzero A)
        reciprocal-mul: (reciprocal (mul A B)) = (mul (reciprocal A) (reciprocal B))
        quotient-cancel-swapped: (mul (reciprocal B) (mul A B)) => A
            if (nonzero B), (total B), (same-shape A (mul A B))
        quotient-cancel-inverse-swapped: (mul B (mul A (reciprocal B))) => A
            if (nonzero B), (total B), (same-shape A (mul A (reciprocal B)))
        quotient-cancel: (mul (mul A B) (reciprocal B)) => A
            if (nonzero B), (total B), (same-shape A (mul A B))
        quotient-cancel-inverse: (mul (mul A (reciprocal B)) B) => A
            if (nonzero B), (total B), (same-shape A (mul A (reciprocal B)))
        quotient-self: (mul A (reciprocal A)) -> (shift 1 (scale 0 A)) if (nonzero A)
        quotient-square: (mul A (reciprocal (mul A A))) => (reciprocal A)
        quotient-square-swapped: (mul (reciprocal (mul A A)) A) => (reciprocal A)
        """,
    ),
    *_class(
        AxiomClass.CONSTANT,
        """
        scale-scale: (scale c (scale e A)) -> (scale (* c e) A)
        scale-one: (scale 1 A) => A
        scale-mul: (mul (scale c A) B) -> (scale c (mul A B))
        scale-add: (add (scale c A) (scale c B)) -> (scale c (add A B))
        scale-terms: (add (scale c A) (scale e A)) -> (scale (+ c e) A) if (same-mono c e)
        scale-term-one: (add (scale c A) A) -> (scale (+ c 1) A) if (same-mono c 1)
        scale-maximum: (maximum (scale c A) (scale c B)) -> (scale c (maximum A B)) if (ge0 c)
        scale-reciprocal: (reciprocal (scale c A)) -> (scale (/ c) (reciprocal A)) if (nz c)
        shift-shift: (shift c (shift e A)) -> (shift (+ c e) A) if (same-mono c e)
        shift-commutes: (shift c (shift e A)) -> (shift e (shift c A))
        shift-zero: (shift 0 A) => A
        shift-add: (add (shift c A) B) -> (shift c (add A B))
        shift-maximum: (maximum (shift c A) (shift c B)) -> (shift c (maximum A B))
        scale-shift: (scale c (shift e A)) -> (shift (* c e) (scale c A))
        """,
    ),
    *_class(
        AxiomClass.ROOT,
        """
        square-as-mul: (square A) -> (mul A A)
        sqrt-mul: (sqrt (mul A B)) -> (mul (sqrt A) (sqrt B))
            if (nonneg A), (nonneg B) unless A is B
        rsqrt-as-reciprocal: (rsqrt A) -> (reciprocal (sqrt A))
        sqrt-times-sqrt: (mul (sqrt A) (sqrt A)) => A if (nonneg A)
        sqrt-of-square: (sqrt (mul A A)) => A if (nonneg A)
        scale-sqrt: (scale c (sqrt A)) -> (sqrt (scale (* c c) A)) if (gt0 c)
        sqrt-of-reciprocal: (sqrt (reciprocal A)) -> (reciprocal (sqrt A))
        quotient-by-sqrt: (mul A (reciprocal (sqrt A))) => (sqrt A) if (pos A)
        quotient-by-sqrt-swapped: (mul (reciprocal (sqrt A)) A) => (sqrt A) if (pos A)
        quotient-of-sqrt: (mul (sqrt A) (reciprocal A)) => (reciprocal (sqrt A))
        quotient-of-sqrt-swapped: (mul (reciprocal A) (sqrt A)) => (reciprocal (sqrt A))
        """,
    ),
    *_class(
        AxiomClass.EXPONENTIAL,
        """
        exp-add: (exp (add A B)) -> (mul (exp A) (exp B))
        exp-maximum: (exp (maximum A B)) -> (maximum (exp A) (exp B))
        log-exp: (log (exp A)) => A
        exp-log: (exp (log A)) => A if (pos A)
        log-mul: (log (mul A B)) -> (add (log A) (log B)) if (pos B)
        exp-minus: (exp (scale -1 A)) -> (reciprocal (exp A))
        exp-double: (exp (scale 2 A)) -> (mul (exp A) (exp A))
        log-reciprocal: (log (reciprocal A)) -> (scale -1 (log A))
        """,
    ),
    *_class(
        AxiomClass.ACTIVATION,
        """
        sigmoid-as-reciprocal: (sigmoid A) -> (reciprocal (shift 1 (exp (neg A))))
        silu-as-mul: (silu A) -> (mul A (sigmoid A))
        tanh-as-sigmoid: (tanh A) -> (shift -1 (scale 2 (sigmoid (scale 2 A))))
        relu-relu: (relu (relu A)) => (relu A)
        relu-nonneg: (relu A) => A if (nonneg A)
        relu-scale: (relu (scale c A)) -> (scale c (relu A)) if (ge0 c)
        relu-maximum: (relu (maximum A B)) -> (maximum (relu A) (relu B))
        relu-as-maximum: (relu A) -> (maximum A (scale 0 A))
        relu-parts: (sub (relu A) (relu (neg A))) => A
        sigmoid-minus: (sigmoid (scale -1 A)) -> (shift 1 (scale -1 (sigmoid A)))
        tanh-minus: (tanh (scale -1 A)) -> (scale -1 (tanh A))
        """,
    ),
)

IRREVERSIBLE = frozenset(
    {
        "binary-part-part",
        "red-part",
        "slice-part",
        "matmul-mul-rows",
        "matmul-mul-columns",
        "matmul-outer",
        "sum-of-comb",
        "max-of-comb",
    }
)
"""
The axioms whose right side may have a meaning where the left side has none or another one, under
the same conditions. The audit finds an instance of each; of all others it finds none.
"""
