"""Every law of the search by evaluation at all small shapes: it holds under its conditions, and only then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from prism.search.rules import NONNEGATIVE, RULES, Pattern, Rule, parse_pattern

UNARY = {
    "neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "square": np.square,
    "rsqrt": lambda a: 1 / np.sqrt(a), "reciprocal": lambda a: 1 / a,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "silu": lambda a: a / (1 + np.exp(-a)),
    "relu": lambda a: np.maximum(a, 0), "tanh": np.tanh,
}  # fmt: skip
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
}
CONSTANTS = (0.5, 1.0, -3.0)
SCALARS = ("k", "l", "p")
DIMS = ("d", "i", "j")


class IllShapedError(Exception):
    pass


def evaluate(pattern: Pattern, values: Mapping[str, Any]) -> np.ndarray:
    """The value of a pattern under the shape rules of the operator table: no broadcast but of size 1."""
    if isinstance(pattern, str):
        return values[pattern]
    name, *arguments = pattern
    if name == "sum":
        dim, operand = literal(arguments[0], values), evaluate(arguments[1], values)
        return operand.sum(axis=operand.ndim - 1 - dim, keepdims=True)
    if name in ("scale", "shift"):
        constant, operand = literal(arguments[0], values), evaluate(arguments[1], values)
        return operand * constant if name == "scale" else operand + constant
    operands = [evaluate(argument, values) for argument in arguments]
    if name in UNARY:
        return UNARY[name](*operands)
    a, b = operands
    if name == "matmul":
        if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
            raise IllShapedError
        return a @ b
    if any(m != n and 1 not in (m, n) for m, n in zip(a.shape, b.shape, strict=True)):
        raise IllShapedError
    return BINARY[name](a, b)


def literal(pattern: Pattern, values: Mapping[str, Any]) -> Any:
    assert isinstance(pattern, str)
    return (
        values[pattern]
        if pattern in values
        else float(pattern.strip('"'))
        if '"' in pattern
        else int(pattern)
    )


def variables(pattern: Pattern) -> set[str]:
    if isinstance(pattern, str):
        return {pattern} if pattern.isalpha() else set()
    return set().union(*(variables(p) for p in pattern[1:]))


def holds(condition: str, values: Mapping[str, Any]) -> bool:
    kind, *names = condition.split()

    def size(name: str, dim: str) -> int:
        return values[name].shape[-1 - literal(dim, values)]

    match kind:
        case "one":
            return size(names[0], names[1]) == 1
        case "same":
            return size(names[0], names[2]) == size(names[1], names[2])
        case "batch":
            return values[names[0]].shape[:-2] == values[names[1]].shape[:-2]
        case "nonneg":
            return bool((values[names[0]] >= 0).all())
        case "positive":
            return values[names[0]] > 0
        case "product":
            return values[names[2]] == values[names[0]] * values[names[1]]
        case "mean":
            return values[names[0]] == 1 / size(names[1], names[2])
        case "inverse":
            return values[names[1]] == 1 / values[names[0]]
        case _:
            raise ValueError(condition)


def assignments(names: set[str]) -> Iterator[dict[str, Any]]:
    """Every shape of rank 2 and 3 with sizes 1 and 2 for the tensors, dims and constants; both signs."""
    random = np.random.default_rng(7)
    tensors = sorted(names - {*SCALARS, *DIMS})
    scalars, dims = sorted(names & {*SCALARS}), sorted(names & {*DIMS})
    for rank in (2, 3):
        shapes = list(product((1, 2), repeat=rank))
        # Products of two constants must be among the values of p.
        constants = sorted({*CONSTANTS, *(a * b for a in CONSTANTS for b in CONSTANTS), 2.0})
        for chosen in product(shapes, repeat=len(tensors)):
            for at in product(range(2), repeat=len(dims)):
                for signed in (False, True):
                    data = [random.uniform(0.5, 2, shape) for shape in chosen]
                    if signed:
                        data = [d * random.choice((-1, 1), d.shape) for d in data]
                    free = [constants if s == "p" else [*CONSTANTS, 2.0] for s in scalars]
                    for numbers in product(*free):
                        yield {
                            **dict(zip(tensors, data, strict=True)),
                            **dict(zip(dims, at, strict=True)),
                            **dict(zip(scalars, numbers, strict=True)),
                        }


def violations(rule: Rule, conditions: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Assignments at which one side is well shaped and the other is not, or has another value."""
    left, right = parse_pattern(rule.left), parse_pattern(rule.right)
    directions = [(left, right), (right, left)] if rule.both else [(left, right)]
    names = variables(left) | variables(right) | {
        n for c in rule.conditions for n in c.split()[1:] if n.isalpha()
    }  # fmt: skip
    for values in assignments(names):
        if not all(holds(c, values) for c in conditions):
            continue
        for start, end in directions:
            try:
                expected = evaluate(start, values)
            except IllShapedError:
                continue
            try:
                found = evaluate(end, values)
            except IllShapedError:
                yield values
                continue
            if expected.shape != found.shape or not np.allclose(expected, found, equal_nan=True):
                yield values


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_law_holds_under_its_conditions(rule: Rule):
    assert next(violations(rule, rule.conditions), None) is None


@pytest.mark.parametrize(
    ("rule", "dropped"),
    [(rule, condition) for rule in RULES for condition in rule.conditions],
    ids=lambda x: x if isinstance(x, str) else x.name,
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_law_fails_without_any_of_its_conditions(rule: Rule, dropped: str):
    kept = tuple(c for c in rule.conditions if c != dropped)
    assert next(violations(rule, kept), None) is not None


def nonneg_violations(pattern: str, conditions: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    parsed = parse_pattern(pattern)
    for values in assignments(variables(parsed)):
        if all(holds(c, values) for c in conditions):
            try:
                found = evaluate(parsed, values)
            except IllShapedError:
                continue
            if (found[~np.isnan(found)] < 0).any():
                yield values


@pytest.mark.parametrize(("pattern", "conditions"), NONNEGATIVE, ids=lambda x: str(x))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_what_counts_as_nonnegative_is(pattern: str, conditions: tuple[str, ...]):
    assert next(nonneg_violations(pattern, conditions), None) is None
    for dropped in conditions:
        kept = tuple(c for c in conditions if c != dropped)
        assert next(nonneg_violations(pattern, kept), None) is not None, dropped
