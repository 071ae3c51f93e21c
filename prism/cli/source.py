"""Reading MLIR files, with a located one-line diagnostic for everything that is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from prism.errors import PrismError, SourceLocation

MAX_SOURCE_BYTES = 16 * 1024 * 1024

T = TypeVar("T")

_SYMBOLIC = re.compile(r"#sym\.\w+\s*<|\b(?:by|eps)\s*<")
_UNDEFINED = re.compile(r"values used but not defined: \[(%[\w$.-]+)")
_UNREGISTERED = re.compile(r"Operation (\S+) is not registered")
_STRING = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"|"')
_COMMENT = re.compile(r"//[^\n]*")


class SourceError(PrismError):
    """A file that cannot be read, parsed or verified; always located."""


@dataclass(frozen=True)
class Source:
    """A file that parsed and verified; `module` is its IR, and every op has its location."""

    path: Path
    text: str
    module: ModuleOp

    def location_of(self, op: Operation) -> SourceLocation:
        """Where an op begins in the file; the file's beginning for an op made later."""
        return op_location(op) or SourceLocation(str(self.path), 1, 1)

    def location_of_symbol(self, name: str) -> SourceLocation | None:
        """Where a size symbol occurs first in a symbolic expression, or None."""
        text = _COMMENT.sub(lambda match: " " * len(match[0]), self.text)
        symbol = re.compile(rf"(?<![\w$.%@#!^]){re.escape(name)}(?![\w$.])")
        for start in _SYMBOLIC.finditer(text):
            end = text.find(">", start.end())
            if match := symbol.search(text, start.end(), end if end >= 0 else len(text)):
                return _location(str(self.path), self.text, match.start())
        return None


def op_location(op: Operation) -> SourceLocation | None:
    """The location that `LocatingParser` (or a `loc(...)` in the text) gave an op."""
    if not isinstance(op.location, FileLineColLoc):
        return None
    place = op.location
    return SourceLocation(place.filename.data, place.line.data, place.column.data)


class LocatingParser(Parser):
    """xDSL's parser, which also gives each op without `loc(...)` the place of its text."""

    def parse_operation(self) -> Operation:
        """Parse one op; its location is that of its first result or its name."""
        span = self._current_token.span
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            place = span.get_location()
            op.location = FileLineColLoc(
                StringAttr(place.file), IntAttr(place.line), IntAttr(place.col)
            )
        return op


def read_source(path: Path, context: Context) -> Source:
    """
    Read, parse and verify an MLIR file.

    Raises `SourceError` with file, line and column for a missing or empty file, bytes that are not
    UTF-8, text that does not parse, and IR that does not verify.
    """
    text = _read_text(path)
    module = parse_text(str(path), text, context)
    _verify(str(path), module)
    return Source(path, text, module)


def parse_text(name: str, text: str, context: Context) -> ModuleOp:
    """Parse MLIR text; raises `SourceError` at the place where the parser stopped."""
    _check_strings(name, text)
    parser: LocatingParser | None = None
    try:
        parser = LocatingParser(context, text, name)
        return parser.parse_module()
    except ParseError as error:
        position = _culprit(text, error.span.start, error.msg)
        raise SourceError(one_line(error.msg), _location(name, text, position)) from error
    except (VerifyException, UnicodeDecodeError, RecursionError) as error:
        # Attributes verify themselves while they are parsed: the parser stands behind them.
        position = 0 if parser is None else parser.pos
        message = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise SourceError(one_line(message), _location(name, text, position)) from error


def one_line(message: str) -> str:
    """A message of an exception as one line."""
    lines = [" ".join(line.split()) for line in message.splitlines()]
    return "; ".join(line for line in lines if line)


def located(location: SourceLocation, action: Callable[[], T]) -> T:
    """Run `action`, giving each diagnostic without a location this one."""
    try:
        return action()
    except PrismError as error:
        if error.location is None:
            error.location = location
        raise
    except DiagnosticException as error:
        raise PrismError(one_line(str(error)), location) from error


def decode(name: str, data: bytes) -> str:
    """The text of a file's bytes; raises `SourceError` at a byte that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        location = _location(name, before, len(before))
        raise SourceError(f"not UTF-8 text: byte 0x{data[error.start]:02x}", location) from error


def _read_text(path: Path) -> str:
    start = SourceLocation(str(path), 1, 1)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise SourceError(f"cannot read: {error.strerror}", start) from error
    if len(data) > MAX_SOURCE_BYTES:
        raise SourceError(f"larger than {MAX_SOURCE_BYTES} bytes", start)
    text = decode(str(path), data)
    if not _COMMENT.sub("", text).strip():
        raise SourceError("empty file: expected a workload function", start)
    return text


def _check_strings(name: str, text: str) -> None:
    """Refuse a string without an end, on which xDSL's lexer would backtrack for ever."""
    for match in _STRING.finditer(text):
        if match[0] == '"':
            message = "string literal without an end, or with a bad escape"
            raise SourceError(message, _location(name, text, match.start()))


def _culprit(text: str, position: int, message: str) -> int:
    """
    Where the cause of a parser's message stands, if it is before the place that xDSL names.

    xDSL reports an undefined value at the end of its region, and an unknown op behind its name.
    """
    if match := _UNDEFINED.match(message):
        use = re.search(rf"{re.escape(match[1])}(?![\w$.-])", text)
        return use.start() if use else position
    if match := _UNREGISTERED.match(message):
        start = text.rfind(match[1], 0, position)
        return start if start >= 0 else position
    return position


def _verify(name: str, module: ModuleOp) -> None:
    try:
        module.verify()
    except VerifyException as error:
        op = first_invalid(module)
        location = None if op is None else op_location(op)
        prefix = "" if op is None else f"{op.name}: "
        message = one_line(str(error)).removeprefix("Operation does not verify: ")
        if message.startswith(prefix):
            prefix = ""
        raise SourceError(prefix + message, location or SourceLocation(name, 1, 1)) from error


def first_invalid(module: ModuleOp) -> Operation | None:
    """The innermost op, in the order of the text, that does not verify by itself."""
    invalid: Operation | None = None
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            invalid = op
            break
    return invalid


def _location(name: str, text: str, position: int) -> SourceLocation:
    before = text[:position]
    return SourceLocation(name, before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)
