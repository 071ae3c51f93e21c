"""
What a term denotes, computed exactly: arrays at every index of axes, for given sizes and inputs.

It knows nothing of axioms or the e-graph, so it is a judge of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from prism.verify.exact import NOTHING, ZERO, Exact, ExactArray, each, exact
from prism.verify.terms import Argument, Size, TermTable

Index = Mapping[str, int]

UNARY_MEANING: dict[str, Callable[[Exact], Exact]] = {
    "neg": lambda x: -x,
    "exp": Exact.exp,
    "log": Exact.log,
    "sqrt": Exact.sqrt,
    "rsqrt": lambda x: 1 / x.sqrt(),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "sigmoid": Exact.sigmoid,
    "silu": lambda x: x * x.sigmoid(),
    "relu": Exact.relu,
    "tanh": Exact.tanh,
    "gelu": Exact.gelu,
    "gelu_tanh": Exact.gelu_tanh,
}
"""What each function of one element computes."""

BINARY_MEANING: dict[str, Callable[[Exact, Exact], Exact]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "maximum": Exact.maximum,
}
"""What each function of two elements computes."""


def chunk(extent: int, count: int, index: int) -> tuple[int, int]:
    """Start and end of the index-th of `count` chunks of ceil(extent / count) elements."""
    size = -(-extent // count)
    return min(index * size, extent), min((index + 1) * size, extent)


@dataclass
class Model:
    """
    Sizes, the number of indices of each axis, and an array per input and index.

    A value that is undefined stays so in all that depends on it. Raises UndecidedError where the
    enclosures are too wide to say.
    """

    table: TermTable
    sizes: Mapping[str, int]
    counts: Mapping[str, int]
    inputs: Callable[[str, Index], ExactArray]
    _memo: dict[tuple[int, tuple[tuple[str, int], ...]], ExactArray] = field(
        default_factory=dict[tuple[int, tuple[tuple[str, int], ...]], ExactArray]
    )

    def extent(self, size: Size, index: Index) -> int:
        """The number of elements of a size at an index of the axes that cut it."""
        whole, *axes = size
        extent = self.sizes[whole] if whole in self.sizes else int(whole)
        for axis in axes:
            start, end = chunk(extent, self.counts[axis], index[axis])
            extent = end - start
        return extent

    def value(self, term: int, index: Index) -> ExactArray:
        """The array that a term denotes at an index; `index` has all axes the term depends on."""
        entry = self.table.terms[term]
        key = (term, tuple(sorted((axis, index[axis]) for axis in entry.axes)))
        if key not in self._memo:
            self._memo[key] = self._value(entry.head, entry.arguments, index)
        return self._memo[key]

    def _value(self, head: str, arguments: tuple[Argument, ...], index: Index) -> ExactArray:
        match head, arguments:
            case "in", (str() as name,):
                return self.inputs(name, index)
            case "un", (str() as function, int() as a):
                return each(UNARY_MEANING[function], self.value(a, index))
            case "bin", (str() as function, int() as a, int() as b):
                return each(BINARY_MEANING[function], self.value(a, index), self.value(b, index))
            case "scale", (Fraction() as number, Fraction() as sizes, int() as a):
                constant = self._constant(number, sizes)
                return each(constant.__mul__, self.value(a, index))
            case "shift", (Fraction() as number, Fraction() as sizes, int() as a):
                constant = self._constant(number, sizes)
                return each(constant.__add__, self.value(a, index))
            case "matmul", (int() as a, int() as b):
                left, right = self.value(a, index), self.value(b, index)
                return total(left[..., :, :, None] * right[..., None, :, :], -2)
            case "sum", (int() as dim, int() as a):
                return np.expand_dims(total(self.value(a, index), -dim), -dim)
            case "max", (int() as dim, int() as a):
                return np.expand_dims(largest(self.value(a, index), -dim), -dim)
            case "swap", (int() as a, int() as dim, int() as other):
                return np.swapaxes(self.value(a, index), -dim, -other)
            case "slice", (int() as a, int() as dim, str() as window):
                first, last = (int(end.evaluate(self.sizes)) for end in self.table.windows[window])
                return np.moveaxis(np.moveaxis(self.value(a, index), -dim, 0)[first:last], 0, -dim)
            case "part", (int() as a, int() as dim, str() as axis):
                array = self.value(a, index)
                start, end = chunk(array.shape[-dim], self.counts[axis], index[axis])
                return np.take(array, range(start, end), axis=-dim)
            case "comb", (int() as a, int() as dim, str() as axis):
                return np.concatenate(self._family(a, axis, index), axis=-dim)
            case "red", (int() as a, str() as axis):
                return total(np.stack(self._family(a, axis, index)), 0)
            case "redmax", (int() as a, str() as axis):
                return largest(np.stack(self._family(a, axis, index)), 0)
            case "rescaled", (int() as a, int() as b, str() as axis):
                return self._rescaled(a, b, axis, index)
            case _:
                raise ValueError(f"no term: {head} {arguments}")

    def _family(self, term: int, axis: str, index: Index) -> list[ExactArray]:
        return [self.value(term, {**index, axis: k}) for k in range(self.counts[axis])]

    def _rescaled(self, a: int, b: int, axis: str, index: Index) -> ExactArray:
        return rescaled_sum(self._family(a, axis, index), self._family(b, axis, index))

    def _constant(self, number: Fraction, sizes: Fraction) -> Exact:
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
        return exact(value)


def rescaled_sum(tiles: Sequence[ExactArray], maxima: Sequence[ExactArray]) -> ExactArray:
    """The sum of tiles, each times exp of its maximum less the largest of these."""
    whole = largest(np.stack(maxima), 0)
    summands = [
        each(_rescale, tile, maximum, whole) for tile, maximum in zip(tiles, maxima, strict=True)
    ]
    return total(np.stack(summands), 0)


def _rescale(value: Exact, maximum: Exact, whole: Exact) -> Exact:
    return ZERO if maximum.empty and not whole.empty else value * (maximum - whole).exp()


def largest(array: ExactArray, axis: int) -> ExactArray:
    """The largest along an axis."""
    moved = np.moveaxis(array, axis, 0)
    largest = np.full(moved.shape[1:], NOTHING, dtype=object)
    for item in moved:
        largest = each(Exact.maximum, largest, item)
    return largest


def total(array: ExactArray, axis: int) -> ExactArray:
    """The sums along an axis; zero where there is nothing to sum."""
    if array.shape[axis] == 0:
        return np.full(np.delete(array.shape, axis), ZERO, dtype=object)
    return np.asarray(np.sum(array, axis=axis), dtype=object)
