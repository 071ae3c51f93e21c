"""PTX text to tokens (PTX ISA 4, Syntax)."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from prism.simulator.errors import PtxError

MAX_TEXT = 16 << 20
"""Longest PTX text accepted, in characters."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\f\v]+|//[^\n]*|/\*.*?\*/)
  | (?P<newline>\n)
  | (?P<number>(?:0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
        |[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+U?)(?![\w$]))
  | (?P<directive>\.[A-Za-z_]\w*(?:::\w+)*)
  | (?P<word>[A-Za-z_$%][\w$%]*(?:(?:\.|::)[\w$]+)*)
  | (?P<string>"[^"\n]*")
  | (?P<punct>[\[\]{}()<>,;:=+\-*|!@&~^?]|/(?!\*))
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the text; `kind` is the name of a group of the token pattern, or 'end'."""

    kind: str
    text: str
    line: int


def tokenize(text: str, file: str) -> list[Token]:
    """Splits a text into tokens without blanks and comments; raises PtxError on others."""
    if len(text) > MAX_TEXT:
        raise PtxError(file, 1, f"text of {len(text)} characters is over the limit of {MAX_TEXT}")
    tokens: list[Token] = []
    line, position = 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            what = text[position : position + 2]
            reason = (
                "unclosed comment" if what == "/*" else f"unexpected character {text[position]!r}"
            )
            raise PtxError(file, line, reason)
        kind = match.lastgroup or ""
        found = match.group()
        if kind not in ("space", "newline"):
            tokens.append(Token(kind, found, line))
        elif found == "\n" or found.startswith("/*"):
            line += found.count("\n")
        position = match.end()
    tokens.append(Token("end", "end of file", line))
    return tokens


class TokenStream:
    """A cursor over tokens with the helpers of a recursive-descent parser."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.tokens = tokenize(text, file)
        self.at = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    @property
    def line(self) -> int:
        return self.tokens[self.at].line

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def error(self, message: str, line: int | None = None) -> PtxError:
        return PtxError(self.file, self.line if line is None else line, message)

    def accept(self, text: str) -> bool:
        if self.tokens[self.at].text != text or self.tokens[self.at].kind in ("string", "end"):
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> Token:
        if not self.accept(text):
            raise self.error(f"expected '{text}', found '{self.now.text}'")
        return self.tokens[self.at - 1]

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.now.kind != kind:
            raise self.error(f"expected {what}, found '{self.now.text}'")
        return self.next()

    def integer(self, what: str, low: int, high: int) -> int:
        """An integer literal, with a sign, within [low, high]."""
        negative = self.accept("-")
        token = self.expect_kind("number", what)
        value = parse_number(token.text)
        if not isinstance(value, int):
            raise self.error(f"expected {what}, found '{token.text}'", token.line)
        value = -value if negative else value
        if not low <= value <= high:
            raise self.error(f"{what} {value} is not within {low} to {high}", token.line)
        return value

    def skip_line(self) -> None:
        """Drops the rest of the line (of `.loc` and `.file`, which have no closing semicolon)."""
        line = self.line
        while self.now.kind != "end" and self.line == line:
            self.at += 1

    def skip_braces(self) -> None:
        """Drops a balanced `{ ... }`."""
        start = self.line
        self.expect("{")
        depth = 1
        while depth:
            token = self.next()
            if token.kind == "end":
                raise self.error("unclosed '{'", start)
            if token.kind == "punct":
                depth += {"{": 1, "}": -1}.get(token.text, 0)


def parse_number(text: str) -> int | float:
    """The value of a number token; a `0f`/`0d` bit pattern gives the float it stands for."""
    digits = text.removesuffix("U")
    prefix = digits[:2].lower()
    if prefix in ("0f", "0d"):
        value: float = struct.unpack(">f" if prefix == "0f" else ">d", bytes.fromhex(text[2:]))[0]
        return value
    if prefix == "0x":
        return int(digits[2:], 16)
    if prefix == "0b":
        return int(digits[2:], 2)
    if any(c in digits for c in ".eE"):
        return float(digits)
    if len(digits) > 40:
        return 1 << 64  # over every limit; int() of a very long literal would be slow
    if len(digits) > 1 and digits[0] == "0" and all(c in "01234567" for c in digits):
        return int(digits, 8)
    return int(digits)
