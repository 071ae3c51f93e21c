"""
What a term denotes, computed: arrays at every index of the axes, for given sizes and inputs.

It knows nothing of axioms or the e-graph, so it is a judge of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from prism.verify.terms import Argument, Size, TermTable

Array: TypeAlias = NDArray[np.float64]

Index = Mapping[str, int]

_UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": lambda x: -x,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.where(x > 0, x, 0 * x),
    "tanh": np.tanh,
}

_EXPONENTIAL = ("exp", "sigmoid", "silu", "tanh")

_MAX_EXPONENT = 30.0
"""Beyond it 1 + exp(x) loses what the comparisons look at."""

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "maximum": np.maximum,
}


def chunk(extent: int, count: int, index: int) -> tuple[int, int]:
    """Start and end of the index-th of `count` chunks of ceil(extent / count) elements."""
    size = -(-extent // count)
    return min(index * size, extent), min((index + 1) * size, extent)


@dataclass
class Model:
    """
    Sizes, the number of indices of each axis, and an array per input and index.

    Where a value is undefined it is NaN, and so is all that depends on it. Raises OverflowError
    where float64 is too small for an exponential, which says nothing about the reals.
    """

    table: TermTable
    sizes: Mapping[str, int]
    counts: Mapping[str, int]
    inputs: Callable[[str, Index], Array]
    _memo: dict[tuple[int, tuple[tuple[str, int], ...]], Array] = field(
        default_factory=dict[tuple[int, tuple[tuple[str, int], ...]], Array]
    )

    def extent(self, size: Size, index: Index) -> int:
        """The number of elements of a size at an index of the axes that cut it."""
        whole, *axes = size
        extent = self.sizes[whole] if whole in self.sizes else int(whole)
        for axis in axes:
            start, end = chunk(extent, self.counts[axis], index[axis])
            extent = end - start
        return extent

    def value(self, term: int, index: Index) -> Array:
        """The array that a term denotes at an index; `index` has all axes the term depends on."""
        entry = self.table.terms[term]
        key = (term, tuple(sorted((axis, index[axis]) for axis in entry.axes)))
        if key not in self._memo:
            with np.errstate(all="ignore"):
                array = self._value(entry.head, entry.arguments, index)
            self._memo[key] = np.where(np.isfinite(array), array, np.nan)
        return self._memo[key]

    def _value(self, head: str, arguments: tuple[Argument, ...], index: Index) -> Array:
        match head, arguments:
            case "in", (str() as name,):
                return self.inputs(name, index)
            case "un", (str() as function, int() as a):
                value = self.value(a, index)
                if function in _EXPONENTIAL and np.any(np.abs(value) > _MAX_EXPONENT):
                    raise OverflowError(function)
                return _UNARY[function](value)
            case "bin", (str() as function, int() as a, int() as b):
                return _BINARY[function](self.value(a, index), self.value(b, index))
            case "scale", (Fraction() as number, Fraction() as sizes, int() as a):
                return self._constant(number, sizes) * self.value(a, index)
            case "shift", (Fraction() as number, Fraction() as sizes, int() as a):
                return self._constant(number, sizes) + self.value(a, index)
            case "matmul", (int() as a, int() as b):
                left, right = self.value(a, index), self.value(b, index)
                return np.sum(left[..., :, :, None] * right[..., None, :, :], axis=-2)
            case "sum", (int() as dim, int() as a):
                return np.sum(self.value(a, index), axis=-dim, keepdims=True)
            case "part", (int() as a, int() as dim, str() as axis):
                array = self.value(a, index)
                start, end = chunk(array.shape[-dim], self.counts[axis], index[axis])
                return np.take(array, range(start, end), axis=-dim)
            case "comb", (int() as a, int() as dim, str() as axis):
                return np.concatenate(self._family(a, axis, index), axis=-dim)
            case "red", (int() as a, str() as axis):
                return np.sum(self._family(a, axis, index), axis=0)
            case _:
                raise ValueError(f"no term: {head} {arguments}")

    def _family(self, term: int, axis: str, index: Index) -> list[Array]:
        return [self.value(term, {**index, axis: k}) for k in range(self.counts[axis])]

    def _constant(self, number: Fraction, sizes: Fraction) -> float:
        """Reads the product of sizes off its prime factors."""
        value = number
        for name, prime in self.table.symbols.items():
            size = self.sizes[name]
            above, below = sizes.numerator, sizes.denominator
            while above % prime == 0:
                above, value = above // prime, value * size
            while below % prime == 0:
                below, value = below // prime, value / size
            sizes = Fraction(above, below)
        return float(value)
