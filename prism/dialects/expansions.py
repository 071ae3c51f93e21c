"""
What each composite operator is in terms of others: one entry each, for any builder of terms.

Over the reals only. A softmax expands to the form that subtracts the maximum, which no finite row
overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from prism.dialects.operators import Attributes
from prism.dialects.shapes import NO_ATTRIBUTES, ONE, Shape, required
from prism.dialects.sym_expr import SymExpr

V = TypeVar("V")


class Builder(Protocol[V]):
    """What makes the terms of an expansion."""

    def apply(self, name: str, operands: Sequence[V], attributes: Attributes) -> V:
        """The term of an operator of the table that is no composite."""
        ...

    def shape(self, value: V) -> Shape:
        """The shape of a term."""
        ...


def expand(builder: Builder[V], name: str, operands: Sequence[V], attributes: Attributes) -> V:
    """
    The term of any operator of the table, a composite by its entry here.

    Raises VerifyException if an attribute that the operator takes is missing.
    """
    expansion = EXPANSIONS.get(name)
    if expansion is None:
        return builder.apply(name, operands, attributes)
    return expansion(builder, operands, attributes)


def _apply(build: Builder[V], name: str, *operands: V) -> V:
    return build.apply(name, operands, NO_ATTRIBUTES)


def _mean(build: Builder[V], operands: Sequence[V], given: Attributes) -> V:
    """sum(x) / size."""
    (x,) = operands
    dim = required(given.dim, "dim")
    total = build.apply("sum", [x], Attributes(dim=dim))
    return build.apply("scale", [total], Attributes(constant=ONE / build.shape(x)[dim]))


def _root(build: Builder[V], square: V, eps: SymExpr) -> V:
    """sqrt(mean + eps) of squares over the last dim."""
    mean = _mean(build, [square], Attributes(dim=len(build.shape(square)) - 1))
    if eps != SymExpr.constant(0):
        mean = build.apply("shift", [mean], Attributes(constant=eps))
    return _apply(build, "sqrt", mean)


def _rms_norm(build: Builder[V], operands: Sequence[V], given: Attributes) -> V:
    """x / sqrt(mean(x^2) + eps) over the last dim."""
    (x,) = operands
    root = _root(build, _apply(build, "square", x), required(given.constant, "eps"))
    return _apply(build, "div", x, root)


def _layer_norm(build: Builder[V], operands: Sequence[V], given: Attributes) -> V:
    """(x - mean x) / sqrt(mean((x - mean x)^2) + eps) w + b over the last dim."""
    x, weight, bias = operands
    mean = _mean(build, [x], Attributes(dim=len(build.shape(x)) - 1))
    centered = _apply(build, "sub", x, mean)
    root = _root(build, _apply(build, "square", centered), required(given.constant, "eps"))
    normal = _apply(build, "div", centered, root)
    return _apply(build, "add", _apply(build, "mul", normal, weight), bias)


def _shifted(build: Builder[V], x: V, given: Attributes) -> tuple[V, V]:
    """x - max x, and the sum of its exponentials, over `dim`."""
    dim = Attributes(dim=required(given.dim, "dim"))
    shifted = _apply(build, "sub", x, build.apply("max", [x], dim))
    return shifted, build.apply("sum", [_apply(build, "exp", shifted)], dim)


def _softmax(build: Builder[V], operands: Sequence[V], given: Attributes) -> V:
    """exp(x - max x) / sum exp(x - max x) over `dim`."""
    (x,) = operands
    shifted, total = _shifted(build, x, given)
    return _apply(build, "div", _apply(build, "exp", shifted), total)


def _log_softmax(build: Builder[V], operands: Sequence[V], given: Attributes) -> V:
    """x - max x - log(sum exp(x - max x)) over `dim`."""
    (x,) = operands
    shifted, total = _shifted(build, x, given)
    return _apply(build, "sub", shifted, _apply(build, "log", total))


def _clamp(build: Builder[V], operands: Sequence[V], given: Attributes) -> V:
    """min(max(x, lo), hi)."""
    (x,) = operands
    least, most = required(given.bounds, "bounds")
    at_least = build.apply("at_least", [x], Attributes(constant=least))
    return build.apply("at_most", [at_least], Attributes(constant=most))


def _cast(build: Builder[V], operands: Sequence[V], given: Attributes) -> V:
    """Over the reals an element type changes nothing."""
    return operands[0]


EXPANSIONS: Mapping[str, Callable[[Builder[Any], Sequence[Any], Attributes], Any]] = {
    "mean": _mean,
    "cast": _cast,
    "clamp": _clamp,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
}
"""By the name of each operator that is not on tiles: its term in those that are."""
