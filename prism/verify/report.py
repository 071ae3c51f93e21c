"""Prints terms for people: infix, inputs by their names, dims counted from the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from prism.verify.language import argument_sorts
from prism.verify.terms import TermTable, axis_text

Tree = str | int | Fraction | tuple["Tree", ...]
"""A head of `SIGNATURES` with its arguments; constants are two numbers as in `TermTable`."""

MAX_TEXT = 240
"""Longer texts are cut: a message is one line."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass(frozen=True)
class TermPrinter:
    """
    Prints trees of one function: `names` are those of its arguments, `symbols` the primes of sizes
    in constants, `rank` the number of dims.
    """

    names: Sequence[str]
    symbols: Mapping[str, int]
    rank: int

    def text(self, tree: Tree) -> str:
        """The text of a tree, cut at `MAX_TEXT` characters."""
        text = self._text(tree)
        if text.startswith("(") and text.endswith(")") and _closes_last(text):
            text = text[1:-1]
        return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."

    def _text(self, tree: Tree) -> str:
        if not isinstance(tree, tuple):
            return str(tree)
        head, *arguments = tree
        match str(head), arguments:
            case "in", (str() as index,):
                return f"%{self.names[int(index)]}"
            case "un", (function, a):
                return f"{function}({self._bare(a)})"
            case "bin", (str() as function, a, b) if function in _INFIX:
                left, right = self._text(a), self._text(b)
                return f"({left} {_INFIX[function]} {right})"
            case "bin", (function, a, b):
                return f"{function}({self._bare(a)}, {self._bare(b)})"
            case "matmul", (a, b):
                return f"({self._text(a)} @ {self._text(b)})"
            case "scale", (Fraction() as value, Fraction() as sizes, a):
                return f"({self._constant(value, sizes)} * {self._text(a)})"
            case "shift", (Fraction() as value, Fraction() as sizes, a):
                return f"({self._constant(value, sizes)} + {self._text(a)})"
            case "sum", (int() as dim, a):
                return f"sum({self._bare(a)}, dim {self.rank - dim})"
            case "max", (int() as dim, a):
                return f"max({self._bare(a)}, dim {self.rank - dim})"
            case "swap", (a, int() as dim, int() as other):
                return f"swap({self._bare(a)}, dims {self.rank - other}, {self.rank - dim})"
            case "slice", (a, int() as dim, window):
                return f"slice({self._bare(a)}, dim {self.rank - dim}, {window})"
            case "part", (a, int() as dim, axis):
                return f"part({self._bare(a)}, dim {self.rank - dim}, {axis_text(str(axis))})"
            case "comb", (a, int() as dim, axis):
                return f"comb({self._bare(a)}, dim {self.rank - dim}, {axis_text(str(axis))})"
            case "red", (a, axis):
                return f"red({self._bare(a)}, {axis_text(str(axis))})"
            case "redmax", (a, axis):
                return f"redmax({self._bare(a)}, {axis_text(str(axis))})"
            case "rescaled", (a, b, axis):
                return f"rescaled({self._bare(a)}, {self._bare(b)}, {axis_text(str(axis))})"
            case _:
                raise ValueError(f"no term: {tree}")

    def _bare(self, tree: Tree) -> str:
        """A text inside parentheses that are there already."""
        text = self._text(tree)
        return text[1:-1] if text.startswith("(") and _closes_last(text) else text

    def _constant(self, value: Fraction, sizes: Fraction) -> str:
        above = [str(value.numerator)] if value.numerator != 1 else []
        below = [str(value.denominator)] if value.denominator != 1 else []
        for name, prime in self.symbols.items():
            above += [name] * _multiplicity(sizes.numerator, prime)
            below += [name] * _multiplicity(sizes.denominator, prime)
        text = " * ".join(above) or "1"
        if not below:
            return text
        return f"{text} / {below[0]}" if len(below) == 1 else f"{text} / ({' * '.join(below)})"


class Budget:
    """The number of nodes left to print: a shared term has a tree of exponential size."""

    def __init__(self, nodes: int = MAX_TEXT) -> None:
        self._nodes = nodes

    def spend(self) -> bool:
        """Takes one node; False when none is left."""
        self._nodes -= 1
        return self._nodes >= 0


def tree_of(table: TermTable, term: int, budget: Budget | None = None) -> Tree:
    """The tree of a term of a table, `...` where the budget is spent."""
    budget = budget or Budget()
    if not budget.spend():
        return "..."
    entry = table.terms[term]
    return (
        entry.head,
        *(
            tree_of(table, argument, budget)
            if sort == "term" and isinstance(argument, int)
            else argument
            for sort, argument in zip(argument_sorts(entry.head), entry.arguments, strict=True)
        ),
    )


def _closes_last(text: str) -> bool:
    """Whether the parenthesis that opens a text is closed by its last character."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return index == len(text) - 1
    return False


def _multiplicity(number: int, prime: int) -> int:
    count = 0
    while number % prime == 0:
        number //= prime
        count += 1
    return count
