"""
The language of terms and axioms that `prism-verify` reasons in.

A term denotes a tensor for each choice of the indices of the axes (grid and loop axes are free
variables). A whole tensor depends on no axis; replication is that case and needs no operator.

    (in NAME)        a workload input
    (un f A)         the unary function f on each element; `(exp A)` for `(un exp A)`
    (bin g A B)      the binary function g, broadcasting; `(mul A B)` for `(bin mul A B)`
    (scale c A)      c * A on each element; (shift c A) c + A
    (matmul A B)     [.., m, k] x [.., k, n]
    (sum d A)        the sum over dim d, which stays with size 1
    (max d A)        the largest over dim d, which stays with size 1
    (swap A d e)     A with dims d < e exchanged
    (slice A d w)    the elements of dim d, which no axis cuts, inside window w
    (part A d a)     the chunk of A along dim d that the index of axis a chooses
    (comb A d a)     the concatenation along dim d of A at every index of axis a
    (red A a)        the sum of A at every index of axis a
    (redmax A a)     the largest of A at every index of axis a; an empty chunk has no maximum
    (rescaled A B a) the sum of A exp(B - redmax B a) at every index of axis a where B has a maximum

Dims are counted from the end, from 1, so that 1 is the column, 2 the row, 3 and more the
batch dims of a matmul at any rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

Pattern = str | int | tuple["Pattern", ...]
"""A parsed expression: a variable or name, an integer, or a head with arguments."""

UNARY = ("neg exp log sqrt rsqrt square reciprocal sigmoid silu relu tanh gelu gelu_tanh").split()
"""Functions of one element."""

BINARY = "add sub mul div maximum".split()
"""Functions of two elements."""

SIGNATURES: dict[str, tuple[str, ...]] = {
    "in": ("input",),
    "un": ("unary", "term"),
    "bin": ("binary", "term", "term"),
    "scale": ("constant", "term"),
    "shift": ("constant", "term"),
    "matmul": ("term", "term"),
    "sum": ("dim", "term"),
    "max": ("dim", "term"),
    "swap": ("term", "dim", "dim"),
    "slice": ("term", "dim", "window"),
    "part": ("term", "dim", "axis"),
    "comb": ("term", "dim", "axis"),
    "red": ("term", "axis"),
    "redmax": ("term", "axis"),
    "rescaled": ("term", "term", "axis"),
}
"""The sorts of the arguments of each head."""

CONSTANT_OPERATORS = {"*": 2, "+": 2, "/": 1}
"""Arithmetic on constants: product, sum, reciprocal."""

CONDITIONS: dict[str, tuple[str, ...]] = {
    # on shapes
    "unit": ("term", "dim"),  # the size is 1 by declaration, not by accident
    "same": ("term", "term", "dim"),  # equal sizes in a dim, for all values of the sizes
    "same-shape": ("term", "term"),  # equal sizes in every dim
    "same-batch": ("term", "term"),  # equal sizes in every dim from 3 on
    "uncut": ("term", "dim"),  # not a chunk of a dim, so never empty
    "mean": ("constant", "term", "dim"),  # the constant is 1 over the size of an uncut dim
    "free": ("term", "dim", "axis"),  # the axis does not cut the dim
    # on axes
    "closed": ("term", "axis"),  # does not depend on the index of the axis
    "ne-axis": ("axis", "axis"),
    # on dims
    "ne-dim": ("dim", "dim"),
    "batch": ("dim",),  # 3 or more
    # on values, wherever they are defined
    "nonneg": ("term",),
    "pos": ("term",),
    "nonzero": ("term",),
    "total": ("term",),  # defined everywhere
    # on constants
    "nz": ("constant",),
    "ge0": ("constant",),
    "gt0": ("constant",),
    "same-mono": ("constant", "constant"),  # the same product of sizes, so that they add up
    # on functions
    "linear": ("unary",),
    "increasing": ("unary",),
    "linear-left": ("binary",),
    "linear-right": ("binary",),
    "additive": ("binary",),
}
"""The side conditions of axioms and the sorts of their arguments."""

FUNCTION_FACTS: dict[str, tuple[str, ...]] = {
    "linear": ("neg",),
    "increasing": ("exp", "sigmoid", "relu", "tanh"),
    "linear-left": ("mul", "div"),
    "linear-right": ("mul",),
    "additive": ("add", "sub"),
}
"""The functions of which each condition on functions holds."""

_TOKEN = re.compile(r"\s*([()]|[^\s()]+)")


def tokens(text: str) -> Iterator[str]:
    """Splits an expression into parentheses, names and integers."""
    return (match.group(1) for match in _TOKEN.finditer(text))


@cache
def parse(text: str) -> Pattern:
    """Parses a prefix expression; `(exp A)` becomes `(un exp A)`. ValueError if ill-formed."""
    stack: list[list[Pattern]] = [[]]
    for token in tokens(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise ValueError(f"unbalanced ')' in {text!r}")
            stack[-2].append(_expression(stack.pop(), text))
        else:
            stack[-1].append(int(token) if token.lstrip("-").isdigit() else token)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ValueError(f"expected one expression, found {text!r}")
    return stack[0][0]


def _expression(items: list[Pattern], text: str) -> Pattern:
    head, arguments = items[0], items[1:]
    if head in UNARY:
        head, arguments = "un", [head, *arguments]
    elif head in BINARY:
        head, arguments = "bin", [head, *arguments]
    if not isinstance(head, str) or len(arguments) != arity(head):
        raise ValueError(f"'{head}' takes other arguments in {text!r}")
    return (head, *arguments)


def arity(head: str) -> int:
    """The number of arguments of a head of a term, constant or condition; ValueError if unknown."""
    if head in CONSTANT_OPERATORS:
        return CONSTANT_OPERATORS[head]
    signature = SIGNATURES.get(head) or CONDITIONS.get(head)
    if signature is None:
        raise ValueError(f"unknown head '{head}'")
    return len(signature)


def sorts(head: str) -> tuple[str, ...]:
    """The sorts of the arguments of a head."""
    if head in CONSTANT_OPERATORS:
        return ("constant",) * CONSTANT_OPERATORS[head]
    return SIGNATURES.get(head) or CONDITIONS[head]


def argument_sorts(head: str) -> tuple[str, ...]:
    """The sorts of the arguments of a head's constructor, where a constant is two numbers."""
    return tuple(
        part
        for sort in sorts(head)
        for part in (("number", "number") if sort == "constant" else (sort,))
    )


def variables(pattern: Pattern, sort: str = "term") -> dict[str, str]:
    """The variables of a pattern in order of appearance, each with its sort."""
    found: dict[str, str] = {}

    def visit(part: Pattern, sort: str) -> None:
        if isinstance(part, tuple):
            head, *arguments = part
            for argument, argument_sort in zip(arguments, sorts(str(head)), strict=True):
                visit(argument, argument_sort)
        elif isinstance(part, str) and part not in UNARY and part not in BINARY:
            found.setdefault(part, sort)

    visit(pattern, sort)
    return found


def subterms(pattern: Pattern) -> Iterator[tuple[Pattern, ...]]:
    """The pattern and the compound terms inside it."""
    if isinstance(pattern, tuple) and pattern[0] in SIGNATURES:
        yield pattern
        for part in pattern[1:]:
            yield from subterms(part)
