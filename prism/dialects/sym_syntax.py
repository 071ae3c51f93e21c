"""Parsing symbolic sizes out of MLIR text: precedence climbing with a bounded depth."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

from xdsl.parser import AttrParser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from prism.dialects.sym_expr import MAX_DIGITS, MAX_EXPONENT, SymExpr, SymExprError

MAX_DEPTH = 64
"""How deep parentheses and signs may nest; deeper text is refused, not recursed into."""

MAX_OPERATIONS = 512
"""How many operators one expression may have."""


def parse_expr(parser: AttrParser) -> SymExpr:
    """
    Parses an expression; a located ParseError says what is wrong with it.

        expr    ::= term ((`+` | `-`) term)*
        term    ::= power ((`*` | `/`) power)*
        power   ::= primary (`^` (integer | identifier))?
        primary ::= number | identifier | `-` primary | `(` expr `)`
    """
    return _Reader(parser).sum(0)


class _Reader:
    def __init__(self, parser: AttrParser) -> None:
        self.parser = parser
        self.operations = 0

    def sum(self, depth: int) -> SymExpr:
        start = self.parser.pos
        value = self.product(depth)
        while True:
            if self.parser.parse_optional_punctuation("+"):
                right = self.product(depth)
                value = self.apply(start, lambda a=value, b=right: a + b)
            elif self.parser.parse_optional_punctuation("-"):
                right = self.product(depth)
                value = self.apply(start, lambda a=value, b=right: a - b)
            else:
                return value

    def product(self, depth: int) -> SymExpr:
        start = self.parser.pos
        value = self.power(depth)
        while True:
            if self.parser.parse_optional_punctuation("*"):
                right = self.power(depth)
                value = self.apply(start, lambda a=value, b=right: a * b)
            elif self.parser.parse_optional_punctuation("/"):
                right = self.power(depth)
                value = self.apply(start, lambda a=value, b=right: a / b)
            else:
                return value

    def power(self, depth: int) -> SymExpr:
        start = self.parser.pos
        base = self.primary(depth)
        token = self.parser._parse_optional_token(MLIRTokenKind.CARET_IDENT)  # pyright: ignore[reportPrivateUsage]
        if token is None:
            return base
        exponent = token.text[1:]
        if not exponent.isdecimal():
            name = base.as_symbol()
            if name is None:
                self.fail(start, "a Boolean power is one of a parameter")
            return self.apply(start, lambda: SymExpr.symbol(f"{name}^{exponent}"))
        if len(exponent) > 4 or int(exponent) > MAX_EXPONENT:
            self.fail(start, f"exponent larger than {MAX_EXPONENT}")
        value = SymExpr.constant(1)
        for _ in range(int(exponent)):
            value = self.apply(start, lambda a=value: a * base)
        return value

    def primary(self, depth: int) -> SymExpr:
        parser, start = self.parser, self.parser.pos
        if depth > MAX_DEPTH:
            self.fail(start, f"symbolic expression nested deeper than {MAX_DEPTH}")
        if parser.parse_optional_punctuation("-"):
            return -self.primary(depth + 1)
        if parser.parse_optional_punctuation("("):
            value = self.sum(depth + 1)
            parser.parse_punctuation(")")
            return value
        if (name := parser.parse_optional_identifier()) is not None:
            return self.apply(start, lambda: SymExpr.symbol(name))
        for kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.FLOAT_LIT):
            token = parser._parse_optional_token(kind)  # pyright: ignore[reportPrivateUsage]
            if token is not None:
                return SymExpr.constant(self.number(start, token.text))
        self.fail(start, "expected a symbolic expression: a number, a parameter, `-` or `(`")

    def number(self, start: int, text: str) -> Fraction:
        """The exact value of a literal: `1.0e-5` is 1/100000."""
        _, _, exponent = text.lower().partition("e")
        too_large = len(text) > MAX_DIGITS or (
            not text.startswith("0x") and exponent and abs(int(exponent)) > MAX_DIGITS // 2
        )
        if too_large:
            self.fail(start, f"number of more than {MAX_DIGITS} digits")
        return Fraction(int(text, 16)) if text.startswith("0x") else Fraction(text)

    def apply(self, start: int, compute: Callable[[], SymExpr]) -> SymExpr:
        self.operations += 1
        if self.operations > MAX_OPERATIONS:
            self.fail(start, f"symbolic expression of more than {MAX_OPERATIONS} operations")
        try:
            return compute()
        except SymExprError as error:
            self.fail(start, str(error))

    def fail(self, start: int, message: str) -> NoReturn:
        self.parser.raise_error(message, start, max(start, self.parser.pos))
