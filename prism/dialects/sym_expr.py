"""
Symbolic sizes: immutable rational expressions over named parameters, independent of the IR.

A parameter is a workload size (`n`, `d`), an axis size (`grid.x`, `loop.i`) or an axis size to a
Boolean power (`grid.x^m3`, 1 where the axis does not cut). Expressions are kept in a normal form,
so that `==` and `hash` decide equality for all values of the parameters: Laurent polynomials with
exact rational coefficients natively, and quotients by sums cancelled by sympy, which is imported
only then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import sympy

Monomial = tuple[tuple[str, int], ...]
"""A sorted product of parameters with non-zero integer exponents; empty for the constant."""

Polynomial = tuple[tuple[Monomial, Fraction], ...]
"""A sorted sum of monomials with non-zero coefficients; empty for zero."""

MAX_TERMS = 256
"""An expression with more terms than this is refused: no size in a tensor program needs it."""

MAX_EXPONENT = 64
"""The largest magnitude of an exponent."""

MAX_DIGITS = 64
"""The largest number of decimal digits of a numerator or denominator."""

ONE: Polynomial = (((), Fraction(1)),)

_PARAMETER = re.compile(r"[A-Za-z_][\w$.]*(\^[A-Za-z_][\w$.]*)?\Z", re.ASCII)


class SymExprError(ValueError):
    """An expression outside what `SymExpr` represents: a division by zero, or one too large."""


@dataclass(frozen=True, slots=True)
class SymExpr:
    """
    The quotient of two polynomials in normal form.

    `denominator` is `ONE` unless it is a sum; monomial denominators are negative exponents.
    """

    numerator: Polynomial
    denominator: Polynomial = ONE

    @staticmethod
    def constant(value: int | Fraction) -> SymExpr:
        """The expression with the exact value `value`."""
        return _expression({(): Fraction(value)})

    @staticmethod
    @lru_cache(maxsize=4096)
    def symbol(name: str) -> SymExpr:
        """
        The parameter `name`: an identifier, with `^` and an identifier after it for a Boolean
        power.
        """
        if _PARAMETER.match(name) is None:
            raise SymExprError(f"'{name}' is not the name of a parameter")
        return _expression({((name, 1),): Fraction(1)})

    @staticmethod
    def of(value: SymExpr | int | Fraction | str) -> SymExpr:
        """A constant for a number, a parameter for a string, an expression as it is."""
        if isinstance(value, SymExpr):
            return value
        if isinstance(value, str):
            return SymExpr.symbol(value)
        return SymExpr.constant(value)

    def __add__(self, other: SymExpr | int) -> SymExpr:
        other = SymExpr.of(other)
        if self.denominator != ONE or other.denominator != ONE:
            return _from_sympy(_to_sympy(self) + _to_sympy(other))
        terms = dict(self.numerator)
        for monomial, coefficient in other.numerator:
            terms[monomial] = terms.get(monomial, Fraction(0)) + coefficient
        return _expression(terms)

    def __neg__(self) -> SymExpr:
        return SymExpr(tuple((m, -c) for m, c in self.numerator), self.denominator)

    def __sub__(self, other: SymExpr | int) -> SymExpr:
        return self + (-SymExpr.of(other))

    def __mul__(self, other: SymExpr | int) -> SymExpr:
        other = SymExpr.of(other)
        if self.denominator != ONE or other.denominator != ONE:
            return _from_sympy(_to_sympy(self) * _to_sympy(other))
        if len(self.numerator) == 1 == len(other.numerator):
            return _product(self.numerator[0], other.numerator[0])
        if len(self.numerator) * len(other.numerator) > MAX_TERMS * MAX_TERMS:
            raise SymExprError(f"expression of more than {MAX_TERMS} terms")
        terms: dict[Monomial, Fraction] = {}
        for left, a in self.numerator:
            for right, b in other.numerator:
                monomial = _times(left, right)
                terms[monomial] = terms.get(monomial, Fraction(0)) + a * b
        return _expression(terms)

    def __truediv__(self, other: SymExpr | int) -> SymExpr:
        other = SymExpr.of(other)
        if not other.numerator:
            raise SymExprError("division by zero")
        if len(other.numerator) == 1 and other.denominator == ONE:
            ((monomial, coefficient),) = other.numerator
            inverse = tuple((name, -exponent) for name, exponent in monomial)
            return self * SymExpr(((inverse, _ONE if coefficient == 1 else 1 / coefficient),))
        return _from_sympy(_to_sympy(self) / _to_sympy(other))

    def as_constant(self) -> Fraction | None:
        """The value of an expression without parameters, else None."""
        match self.numerator, self.denominator:
            case (), _:
                return Fraction(0)
            case (((), value),), d if d == ONE:
                return value
            case _:
                return None

    def as_symbol(self) -> str | None:
        """The name of an expression that is one parameter, else None."""
        match self.numerator, self.denominator:
            case ((((name, 1),), value),), d if value == 1 and d == ONE:
                return name
            case _:
                return None

    def symbols(self) -> frozenset[str]:
        """The parameters that occur, Boolean powers as one parameter each."""
        return frozenset(name for m, _ in (*self.numerator, *self.denominator) for name, _ in m)

    def substitute(self, values: Mapping[str, SymExpr | int | Fraction]) -> SymExpr:
        """Replaces parameters by values; those that `values` does not name stay."""

        def replaced(polynomial: Polynomial) -> SymExpr:
            total = SymExpr.constant(0)
            for monomial, coefficient in polynomial:
                term = SymExpr.constant(coefficient)
                for name, exponent in monomial:
                    factor = SymExpr.of(values.get(name, name))
                    for _ in range(abs(exponent)):
                        term = term * factor if exponent > 0 else term / factor
                total += term
            return total

        numerator = replaced(self.numerator)
        return numerator if self.denominator == ONE else numerator / replaced(self.denominator)

    def with_ones(self, names: Callable[[str], bool]) -> SymExpr:
        """Replaces by 1 every parameter that `names` accepts: a fast `substitute`."""
        if not any(map(names, self.symbols())):
            return self
        if self.denominator != ONE:
            return self.substitute(dict.fromkeys(filter(names, self.symbols()), 1))
        if len(self.numerator) == 1:
            ((monomial, coefficient),) = self.numerator
            kept = tuple((name, e) for name, e in monomial if not names(name))
            return SymExpr(((kept, coefficient),))
        terms: dict[Monomial, Fraction] = {}
        for monomial, coefficient in self.numerator:
            kept = tuple((name, e) for name, e in monomial if not names(name))
            terms[kept] = terms.get(kept, Fraction(0)) + coefficient
        return _expression(terms)

    def evaluate(self, values: Mapping[str, int]) -> Fraction:
        """The exact value with every parameter given; KeyError names one that is missing."""

        def value(polynomial: Polynomial) -> Fraction:
            total = Fraction(0)
            for monomial, term in polynomial:
                for name, exponent in monomial:
                    term *= Fraction(values[name]) ** exponent
                total += term
            return total

        return value(self.numerator) / value(self.denominator)

    def __str__(self) -> str:
        text = _polynomial_text(self.numerator)
        if self.denominator == ONE:
            return text
        if len(self.numerator) > 1:
            text = f"({text})"
        return f"{text} / ({_polynomial_text(self.denominator)})"


_ONE = Fraction(1)


def _product(left: tuple[Monomial, Fraction], right: tuple[Monomial, Fraction]) -> SymExpr:
    """The product of two terms: what sizes are made of, so without the way over a dictionary."""
    (a, c), (b, d) = left, right
    monomial = _times(a, b)
    if d == 1 and all(abs(exponent) <= MAX_EXPONENT for _, exponent in monomial):
        return SymExpr(((monomial, c),))
    return _expression({monomial: c * d})


def _expression(terms: Mapping[Monomial, Fraction]) -> SymExpr:
    return SymExpr(_polynomial(terms))


def _polynomial(terms: Mapping[Monomial, Fraction]) -> Polynomial:
    if len(terms) > MAX_TERMS:
        raise SymExprError(f"expression of more than {MAX_TERMS} terms")
    for monomial, coefficient in terms.items():
        if any(abs(exponent) > MAX_EXPONENT for _, exponent in monomial):
            raise SymExprError(f"exponent larger than {MAX_EXPONENT}")
        if max(abs(coefficient.numerator), coefficient.denominator) >= 10**MAX_DIGITS:
            raise SymExprError(f"number of more than {MAX_DIGITS} digits")
    return tuple(sorted(((m, c) for m, c in terms.items() if c), key=_order))


def _order(term: tuple[Monomial, Fraction]) -> tuple[int, Monomial]:
    return -sum(exponent for _, exponent in term[0]), term[0]


def _times(left: Monomial, right: Monomial) -> Monomial:
    exponents = dict(left)
    for name, exponent in right:
        exponents[name] = exponents.get(name, 0) + exponent
    return tuple(sorted((name, e) for name, e in exponents.items() if e))


def _polynomial_text(polynomial: Polynomial) -> str:
    if not polynomial:
        return "0"
    text = ""
    for monomial, coefficient in polynomial:
        negative = coefficient < 0
        sign = ("-" if negative else "") if not text else (" - " if negative else " + ")
        text += sign + _monomial_text(monomial, abs(coefficient))
    return text


def _monomial_text(monomial: Monomial, coefficient: Fraction) -> str:
    above = [name for name, exponent in monomial for _ in range(exponent)]
    below = [name for name, exponent in monomial for _ in range(-exponent)]
    if coefficient.numerator != 1 or not above:
        above.insert(0, str(coefficient.numerator))
    if coefficient.denominator != 1:
        below.insert(0, str(coefficient.denominator))
    text = " * ".join(above)
    if not below:
        return text
    return f"{text} / {below[0]}" if len(below) == 1 else f"{text} / ({' * '.join(below)})"


def _to_sympy(expression: SymExpr) -> sympy.Expr:
    import sympy

    def convert(polynomial: Polynomial) -> Any:
        total: Any = sympy.Integer(0)
        for monomial, coefficient in polynomial:
            term: Any = sympy.Rational(coefficient.numerator, coefficient.denominator)
            for name, exponent in monomial:
                term *= sympy.Symbol(name) ** exponent
            total += term
        return total

    return convert(expression.numerator) / convert(expression.denominator)


@lru_cache(maxsize=4096)
def _from_sympy(expression: sympy.Expr) -> SymExpr:
    import sympy

    cancel = cast(Any, sympy.cancel)
    numerator, denominator = cast(
        "tuple[sympy.Expr, sympy.Expr]", cancel(expression).as_numer_denom()
    )
    above, below = _from_polynomial(numerator), _from_polynomial(denominator)
    if len(below) == 1:
        return SymExpr(above) / SymExpr(below)
    leading = below[0][1]
    return SymExpr(
        tuple((m, c / leading) for m, c in above), tuple((m, c / leading) for m, c in below)
    )


def _from_polynomial(expression: sympy.Expr) -> Polynomial:
    import sympy

    names = sorted(str(s) for s in expression.free_symbols)
    if not names:
        value = cast(Any, expression)
        return _polynomial({(): Fraction(int(value.p), int(value.q))})
    terms: dict[Monomial, Fraction] = {}
    poly = cast(Any, sympy.Poly)(expression, *(sympy.Symbol(name) for name in names))
    for exponents, coefficient in poly.terms():
        monomial = tuple((n, int(e)) for n, e in zip(names, exponents, strict=True) if e)
        terms[monomial] = Fraction(int(coefficient.p), int(coefficient.q))
    return _polynomial(terms)
