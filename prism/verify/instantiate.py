"""
Instances of patterns: the term of an axiom's side under a binding, and the conditions that its
shapes, axes and constants decide. The audit and the certificate checker share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from prism.verify.language import FUNCTION_FACTS, Pattern
from prism.verify.terms import UNIT, Constant, IllShapedError, TermTable

Binding = Mapping[str, int | str | Constant]
"""A value per variable of an axiom: a term or dim, an axis or function, a constant."""

Condition = tuple[Pattern, ...]

VALUE_CONDITIONS = frozenset({"pos", "nonneg", "nonzero", "total"})
"""The conditions on what a term's elements are; shapes do not decide them."""


def build_term(table: TermTable, pattern: Pattern, binding: Binding) -> int:
    """The term of a pattern with its variables bound. Raises IllShapedError."""

    def term(part: Pattern) -> int:
        return build_term(table, part, binding)

    def name(part: Pattern) -> str:
        return str(binding.get(str(part), part))

    match pattern:
        case str():
            value = binding[pattern]
            if isinstance(value, int):
                return value
        case ("un", f, a):
            return table.unary(name(f), term(a))
        case ("bin", g, a, b):
            return table.binary(name(g), term(a), term(b))
        case ("scale", c, a):
            return table.scale(constant_of(c, binding), term(a))
        case ("shift", c, a):
            return table.shift(constant_of(c, binding), term(a))
        case ("matmul", a, b):
            return table.matmul(term(a), term(b))
        case ("sum", d, a):
            return table.sum(_dim(binding, d), term(a))
        case ("max", d, a):
            return table.max(_dim(binding, d), term(a))
        case ("swap", a, d, e):
            return table.swap(term(a), _dim(binding, d), _dim(binding, e))
        case ("slice", a, d, window):
            return table.slice(term(a), _dim(binding, d), name(window))
        case ("part", a, d, axis):
            return table.part(term(a), _dim(binding, d), name(axis))
        case ("comb", a, d, axis):
            return table.comb(term(a), _dim(binding, d), name(axis))
        case ("red", a, axis):
            return table.red(term(a), name(axis))
        case ("redmax", a, axis):
            return table.redmax(term(a), name(axis))
        case ("rescaled", a, b, axis):
            return table.rescaled(term(a), term(b), name(axis))
        case _:
            pass
    raise ValueError(f"no term: {pattern}")


def satisfies(table: TermTable, condition: Condition, binding: Binding) -> bool:
    """Whether a condition holds that is not one of `VALUE_CONDITIONS`. Raises IllShapedError."""
    name, *arguments = condition

    def term(part: Pattern) -> int:
        return build_term(table, part, binding)

    match str(name), arguments:
        case "unit", (a, d):
            return table.shape(term(a))[-_dim(binding, d)] == UNIT
        case "uncut", (a, d):
            return len(table.shape(term(a))[-_dim(binding, d)]) == 1
        case "mean", (c, a, d):
            share = table.share(table.shape(term(a))[-_dim(binding, d)])
            return share is not None and constant_of(c, binding) == share
        case "free", (a, d, axis):
            return binding[str(axis)] not in table.shape(term(a))[-_dim(binding, d)][1:]
        case "same", (a, b, d):
            dim = _dim(binding, d)
            return table.shape(term(a))[-dim] == table.shape(term(b))[-dim]
        case "same-shape", (a, b):
            return table.shape(term(a)) == table.shape(term(b))
        case "same-batch", (a, b):
            return table.shape(term(a))[:-2] == table.shape(term(b))[:-2]
        case "closed", (a, axis):
            return binding[str(axis)] not in table.axes(term(a))
        case (("ne-axis" | "ne-dim"), (a, b)):
            return binding[str(a)] != binding[str(b)]
        case "batch", (d,):
            return _dim(binding, d) >= 3
        case ("nz" | "ge0" | "gt0") as test, (c,):
            value = constant_of(c, binding).value
            return {"nz": value != 0, "ge0": value >= 0, "gt0": value > 0}[test]
        case "same-mono", (c, e):
            return constant_of(c, binding).sizes == constant_of(e, binding).sizes
        case predicate, (function,) if predicate in FUNCTION_FACTS:
            return binding[str(function)] in FUNCTION_FACTS[predicate]
        case _:
            raise ValueError(f"no condition on shapes: {condition}")


def constant_of(pattern: Pattern, binding: Binding) -> Constant:
    """The constant of an expression; 0 has no sizes. Raises IllShapedError for 1 / 0."""
    match pattern:
        case int():
            return Constant(Fraction(pattern))
        case str():
            value = binding[pattern]
            if isinstance(value, Constant):
                return value
        case ("*", c, e):
            left, right = constant_of(c, binding), constant_of(e, binding)
            return _normal(left.value * right.value, left.sizes * right.sizes)
        case ("+", c, e):
            left, right = constant_of(c, binding), constant_of(e, binding)
            return _normal(left.value + right.value, left.sizes)
        case ("/", c):
            constant = constant_of(c, binding)
            if constant.value == 0:
                raise IllShapedError("division by zero")
            return Constant(1 / constant.value, 1 / constant.sizes)
        case _:
            pass
    raise ValueError(f"no constant: {pattern}")


def _normal(value: Fraction, sizes: Fraction) -> Constant:
    return Constant(value, sizes if value else Fraction(1))


def _dim(binding: Binding, dim: Pattern) -> int:
    value = binding[dim] if isinstance(dim, str) else dim
    if not isinstance(value, int):
        raise ValueError(f"no dim: {dim}")
    return value
