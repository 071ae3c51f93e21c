"""
Terms of `prism/verify/language.py` over the inputs of one workload, shared and well-shaped.

A term is an index into a `TermTable`, equal terms are one index. The table refuses terms without a
meaning, so that everything the prover sees has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from prism.dialects.sym_expr import SymExpr
from prism.verify.language import argument_sorts

Size = tuple[str, ...]
"""A size: the printed whole size, then the axes that cut it, the outermost first."""

UNIT: Size = ("1",)

Shape = tuple[Size, ...]

Argument = int | str | Fraction
"""A term, dim, name, axis or a number of a constant, by the head's signature."""


class IllShapedError(Exception):
    """A term that has no meaning; the message says why."""


@dataclass(frozen=True, slots=True)
class Constant:
    """
    A number times a product of sizes. The product is a Gödel number: each size is a prime,
    so that equal products are equal numbers and products multiply.
    """

    value: Fraction
    sizes: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Term:
    """
    A head of `SIGNATURES` and its arguments; terms among them are indices. `shape` is
    from the first dim to the last, `axes` are those that the term may depend on.
    """

    head: str
    arguments: tuple[Argument, ...]
    shape: Shape
    axes: frozenset[str]


@dataclass
class TermTable:
    """The terms of one proof; dims are counted from the end, from 1."""

    terms: list[Term] = field(default_factory=list[Term])
    symbols: dict[str, int] = field(default_factory=dict[str, int])
    inputs: dict[str, int] = field(default_factory=dict[str, int])
    windows: dict[str, tuple[SymExpr, SymExpr]] = field(
        default_factory=dict[str, tuple[SymExpr, SymExpr]]
    )
    """By name the first element inside a slice and the first after it."""
    _index: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])

    def shape(self, term: int) -> Shape:
        """The shape of a term, from the first dim to the last."""
        return self.terms[term].shape

    def axes(self, term: int) -> frozenset[str]:
        """The axes that a term may depend on."""
        return self.terms[term].axes

    def operands(self, term: int) -> list[int]:
        """The terms among the arguments of a term."""
        entry = self.terms[term]
        sorts = argument_sorts(entry.head)
        return [
            argument
            for sort, argument in zip(sorts, entry.arguments, strict=True)
            if sort == "term" and isinstance(argument, int)
        ]

    @property
    def rank(self) -> int:
        """The largest number of dims of a term."""
        return max((len(term.shape) for term in self.terms), default=0)

    def input(self, name: str, shape: Shape, axes: frozenset[str] = frozenset()) -> int:
        """A workload input; one that depends on axes stands for any term when axioms are tested."""
        index = self.inputs[name] = self._add("in", (name,), shape, axes)
        return index

    def unary(self, function: str, a: int) -> int:
        """A function of each element."""
        return self._add("un", (function, a), self.shape(a), self.axes(a))

    def binary(self, function: str, a: int, b: int) -> int:
        """A function of two elements; sizes are equal, or declared 1 in one operand."""
        left, right = self.shape(a), self.shape(b)
        self._same_rank(left, right, function)
        for dim, (s, t) in enumerate(zip(left, right, strict=True)):
            if s != t and UNIT not in (s, t):
                raise IllShapedError(
                    f"{function} of sizes {size_text(s)} and {size_text(t)} in dim {dim}"
                )
        shape = tuple(t if s == UNIT else s for s, t in zip(left, right, strict=True))
        return self._add("bin", (function, a, b), shape, self.axes(a) | self.axes(b))

    def scale(self, constant: Constant, a: int) -> int:
        """A constant times each element."""
        arguments = (constant.value, constant.sizes, a)
        return self._add("scale", arguments, self.shape(a), self.axes(a))

    def shift(self, constant: Constant, a: int) -> int:
        """A constant plus each element."""
        arguments = (constant.value, constant.sizes, a)
        return self._add("shift", arguments, self.shape(a), self.axes(a))

    def matmul(self, a: int, b: int) -> int:
        """`[.., m, k] x [.., k, n]`."""
        left, right = self.shape(a), self.shape(b)
        self._same_rank(left, right, "matmul")
        if len(left) < 2 or left[:-2] != right[:-2] or left[-1] != right[-2]:
            raise IllShapedError(f"matmul of {shape_text(left)} and {shape_text(right)}")
        return self._add("matmul", (a, b), (*left[:-1], right[-1]), self.axes(a) | self.axes(b))

    def sum(self, dim: int, a: int) -> int:
        """The sum over a dim, which stays with size 1."""
        shape = self._with_size(a, dim, UNIT)
        return self._add("sum", (dim, a), shape, self.axes(a))

    def max(self, dim: int, a: int) -> int:
        """The largest over a dim, which stays with size 1."""
        shape = self._with_size(a, dim, UNIT)
        return self._add("max", (dim, a), shape, self.axes(a))

    def swap(self, a: int, dim: int, other: int) -> int:
        """Two dims exchanged, the later one (counted from the end: the smaller number) first."""
        if dim >= other:
            raise IllShapedError(f"dims {dim} and {other} are not in order")
        shape = list(self._with_size(a, dim, self._size(a, other)))
        shape[-other] = self._size(a, dim)
        return self._add("swap", (a, dim, other), tuple(shape), self.axes(a))

    def window(self, first: SymExpr, last: SymExpr) -> str:
        """The name of the elements from `first` up to before `last`, for `slice`."""
        name = f"{first}:{last}"
        self.windows[name] = (first, last)
        return name

    def slice(self, a: int, dim: int, window: str) -> int:
        """The elements of a dim inside a window of the table."""
        if len(self._size(a, dim)) > 1:
            raise IllShapedError(f"a slice of the cut size {size_text(self._size(a, dim))}")
        first, last = self.windows[window]
        shape = self._with_size(a, dim, (str(last - first),))
        return self._add("slice", (a, dim, window), shape, self.axes(a))

    def part(self, a: int, dim: int, axis: str) -> int:
        """The chunk along a dim that the index of an axis chooses."""
        size = self._size(a, dim)
        if size == UNIT:
            raise IllShapedError(f"axis {axis_text(axis)} cuts a dim of size 1")
        shape = self._with_size(a, dim, (*size, axis))
        return self._add("part", (a, dim, axis), shape, self.axes(a) | {axis})

    def comb(self, a: int, dim: int, axis: str) -> int:
        """The concatenation along a dim of the chunks at all indices of an axis."""
        size = self._size(a, dim)
        if size[1:] == () or size[-1] != axis:
            raise IllShapedError(
                f"dim of size {size_text(size)} is not cut last by axis {axis_text(axis)}"
            )
        shape = self._with_size(a, dim, size[:-1])
        self._free(shape, axis)
        return self._add("comb", (a, dim, axis), shape, self.axes(a) - {axis})

    def red(self, a: int, axis: str) -> int:
        """The sum at all indices of an axis."""
        self._free(self.shape(a), axis)
        return self._add("red", (a, axis), self.shape(a), self.axes(a) - {axis})

    def redmax(self, a: int, axis: str) -> int:
        """The largest at all indices of an axis."""
        self._free(self.shape(a), axis)
        return self._add("redmax", (a, axis), self.shape(a), self.axes(a) - {axis})

    def rescaled(self, a: int, b: int, axis: str) -> int:
        """The sum at all indices of an axis of `a`, each times exp of `b` less its maximum."""
        product = self.binary("mul", a, b)
        if self.shape(product) != self.shape(a):
            raise IllShapedError(
                f"maxima {shape_text(self.shape(b))} do not fit tiles {shape_text(self.shape(a))}"
            )
        self._free(self.shape(a), axis)
        axes = (self.axes(a) | self.axes(b)) - {axis}
        return self._add("rescaled", (a, b, axis), self.shape(a), axes)

    def make(self, head: str, arguments: Sequence[Argument]) -> int:
        """
        The term of a head and its arguments. Raises IllShapedError if it has no meaning, ValueError
        if the arguments are not those of the head, or of an input that the table does not have.
        """
        match head, tuple(arguments):
            case "in", (str() as name,) if name in self.inputs:
                return self.inputs[name]
            case "un", (str() as function, int() as a):
                return self.unary(function, a)
            case "bin", (str() as function, int() as a, int() as b):
                return self.binary(function, a, b)
            case "scale", (Fraction() as value, Fraction() as sizes, int() as a):
                return self.scale(Constant(value, sizes), a)
            case "shift", (Fraction() as value, Fraction() as sizes, int() as a):
                return self.shift(Constant(value, sizes), a)
            case "matmul", (int() as a, int() as b):
                return self.matmul(a, b)
            case "sum", (int() as dim, int() as a):
                return self.sum(dim, a)
            case "max", (int() as dim, int() as a):
                return self.max(dim, a)
            case "swap", (int() as a, int() as dim, int() as other):
                return self.swap(a, dim, other)
            case "slice", (int() as a, int() as dim, str() as window) if window in self.windows:
                return self.slice(a, dim, window)
            case "part", (int() as a, int() as dim, str() as axis):
                return self.part(a, dim, axis)
            case "comb", (int() as a, int() as dim, str() as axis):
                return self.comb(a, dim, axis)
            case "red", (int() as a, str() as axis):
                return self.red(a, axis)
            case "redmax", (int() as a, str() as axis):
                return self.redmax(a, axis)
            case "rescaled", (int() as a, int() as b, str() as axis):
                return self.rescaled(a, b, axis)
            case _:
                raise ValueError(f"no term: {head} {arguments}")

    def constants_symbol(self, name: str) -> int:
        """The prime of a size in products of sizes."""
        if name not in self.symbols:
            candidate = max(self.symbols.values(), default=1) + 1
            while any(candidate % prime == 0 for prime in self.symbols.values()):
                candidate += 1
            self.symbols[name] = candidate
        return self.symbols[name]

    def monomial(self, value: Fraction, exponents: Mapping[str, int]) -> Constant:
        """The constant `value * product of size^exponent`."""
        sizes = Fraction(1)
        for name, exponent in exponents.items():
            sizes *= Fraction(self.constants_symbol(name)) ** exponent
        return Constant(value, sizes if value else Fraction(1))

    def share(self, size: Size) -> Constant | None:
        """1 over a size; None where it is cut or no number or size that a constant names."""
        if len(size) != 1:
            return None
        (whole,) = size
        if whole.isdigit() and int(whole) > 0:
            return Constant(Fraction(1, int(whole)))
        prime = self.symbols.get(whole)
        return None if prime is None else Constant(Fraction(1), Fraction(1, prime))

    def _add(
        self, head: str, arguments: tuple[Argument, ...], shape: Shape, axes: frozenset[str]
    ) -> int:
        # An int among the arguments is a term or a dim by its place, so a key is not ambiguous.
        key = (head, arguments, shape, axes) if head == "in" else (head, arguments)
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.terms)
            self.terms.append(Term(head, arguments, shape, axes))
        return index

    def _size(self, a: int, dim: int) -> Size:
        shape = self.shape(a)
        if not 1 <= dim <= len(shape):
            raise IllShapedError(f"no such dim of {shape_text(shape)}")
        return shape[-dim]

    def _with_size(self, a: int, dim: int, size: Size) -> Shape:
        self._size(a, dim)
        shape = list(self.shape(a))
        shape[-dim] = size
        return tuple(shape)

    def _free(self, shape: Shape, axis: str) -> None:
        for size in shape:
            if axis in size[1:]:
                name = axis_text(axis)
                raise IllShapedError(
                    f"tiles {shape_text(shape)} are chunks along axis {name}, not summands over it"
                )

    @staticmethod
    def _same_rank(left: Shape, right: Shape, what: str) -> None:
        if len(left) != len(right):
            raise IllShapedError(f"{what} of {shape_text(left)} and {shape_text(right)}")


def axis_text(axis: str) -> str:
    """The name of an axis without the number of its graph."""
    return axis.rpartition(".")[2]


def size_text(size: Size) -> str:
    """`d / (x * i)` for a size cut by two axes."""
    whole, *axes = size
    if not axes:
        return whole
    whole = f"({whole})" if " " in whole else whole
    axes = [axis_text(axis) for axis in axes]
    return f"{whole} / {axes[0]}" if len(axes) == 1 else f"{whole} / ({' * '.join(axes)})"


def shape_text(shape: Shape) -> str:
    """`[n, d / i]`."""
    return f"[{', '.join(map(size_text, shape))}]"
