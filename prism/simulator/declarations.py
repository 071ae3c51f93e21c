"""PTX text to a syntax tree: variables, and what may stand anywhere (PTX ISA 5, 11.5)."""

from __future__ import annotations

import struct

from prism.simulator.lexer import TokenStream
from prism.simulator.syntax import Variable
from prism.simulator.types import TYPES, ScalarType

MAX_VARIABLE = 1 << 28
"""Largest size of one variable in bytes."""

SPACES = {".global", ".const", ".shared", ".local", ".param"}


def skip_debug(stream: TokenStream) -> bool:
    """Skips one debugging or pragma directive if there is one."""
    text = stream.now.text
    if stream.now.kind != "directive":
        return False
    if text in (".loc", ".file"):
        stream.skip_line()
    elif text == ".section":
        stream.next()
        while stream.now.text != "{":
            if stream.next().kind == "end":
                raise stream.error("expected '{' after .section")
        stream.skip_braces()
    elif text == ".pragma":
        stream.next()
        stream.expect_kind("string", "a string")
        stream.expect(";")
    else:
        return False
    return True


def parse_type(stream: TokenStream) -> ScalarType:
    """A type directive such as `.f32`."""
    token = stream.expect_kind("directive", "a type")
    scalar = TYPES.get(token.text[1:])
    if scalar is None:
        raise stream.error(f"unknown or unsupported type '{token.text}'", token.line)
    return scalar


def parse_prefix(stream: TokenStream) -> tuple[str, ScalarType, int]:
    """`.space .align n .type .ptr .space .align n`, in any order; gives space, type, alignment."""
    space = stream.next().text[1:]
    scalar: ScalarType | None = None
    align = 0
    pointer = False
    while stream.now.kind == "directive":
        token = stream.now
        if stream.accept(".align"):
            value = stream.integer("an alignment", 1, 1 << 16)
            if value & (value - 1):
                raise stream.error(f"alignment {value} is not a power of two", token.line)
            # After .ptr it is the alignment of what the pointer points to.
            align = align if pointer else value
        elif stream.accept(".ptr"):
            pointer = True
        elif pointer and token.text in SPACES:
            stream.next()
        elif token.text == ".attribute":
            _skip_attributes(stream)
        else:
            scalar = parse_type(stream)
    if scalar is None:
        raise stream.error("expected a type")
    return space, scalar, align


def _skip_attributes(stream: TokenStream) -> None:
    """`.attribute(.managed)` changes nothing here; `.unified` ids are not known."""
    line = stream.next().line
    stream.expect("(")
    if not stream.accept(".managed"):
        raise stream.error("unsupported '.attribute'", line)
    stream.expect(")")


def parse_declarator(stream: TokenStream, space: str, scalar: ScalarType, align: int) -> Variable:
    token = stream.expect_kind("word", "a name")
    if scalar.kind == "p":
        raise stream.error("a variable cannot have type .pred", token.line)
    count: int | None = 1
    while stream.accept("["):
        if stream.accept("]"):
            count = None
            continue
        extent = stream.integer("an array size", 0, MAX_VARIABLE)
        stream.expect("]")
        count = None if count is None else count * extent
    size = None if count is None else count * scalar.bytes
    if size is not None and size > MAX_VARIABLE:
        raise stream.error(
            f"'{token.text}' has {size} bytes, the limit is {MAX_VARIABLE}", token.line
        )
    initial: bytes | None = None
    if stream.accept("="):
        if space not in ("global", "const"):
            raise stream.error(f"a .{space} variable cannot have an initial value", token.line)
        initial = _parse_initializer(stream, scalar)
        size = len(initial) if size is None else size
        if len(initial) > size:
            raise stream.error(f"too many initial values for '{token.text}'", token.line)
        initial = initial.ljust(size, b"\0")
    return Variable(token.text, space, scalar, size, max(align, scalar.bytes), initial, token.line)


def _parse_initializer(stream: TokenStream, scalar: ScalarType, depth: int = 0) -> bytes:
    if depth > 8:
        raise stream.error("initial values are nested deeper than 8")
    if not stream.accept("{"):
        return _parse_initial_value(stream, scalar)
    parts: list[bytes] = []
    while not stream.accept("}"):
        parts.append(_parse_initializer(stream, scalar, depth + 1))
        if stream.now.text != "}":
            stream.expect(",")
    return b"".join(parts)


def _parse_initial_value(stream: TokenStream, scalar: ScalarType) -> bytes:
    text = stream.now.text
    if scalar.is_float:
        if scalar.name not in ("f32", "f64"):
            raise stream.error(f"unsupported initial value of type {scalar}")
        negative = stream.accept("-")
        text = stream.expect_kind("number", "a number").text
        if text[:2].lower() in ("0f", "0d"):
            raw = bytes.fromhex(text[2:])[::-1]
            if len(raw) != scalar.bytes:
                raise stream.error(f"'{text}' is not of type {scalar}")
            return raw
        value = float(text.removesuffix("U"))
        return struct.pack("<f" if scalar.bits == 32 else "<d", -value if negative else value)
    if stream.now.kind == "word":
        raise stream.error(f"unsupported initial value '{text}'")
    value = stream.integer("an initial value", -(1 << 63), (1 << 64) - 1)
    return (value & ((1 << scalar.bits) - 1)).to_bytes(scalar.bytes, "little")


def parse_variables(stream: TokenStream, *, extern: bool) -> list[Variable]:
    """A variable declaration statement, with its semicolon."""
    line = stream.line
    space, scalar, align = parse_prefix(stream)
    variables = [parse_declarator(stream, space, scalar, align)]
    while stream.accept(","):
        variables.append(parse_declarator(stream, space, scalar, align))
    stream.expect(";")
    for variable in variables:
        if variable.size is None and not (extern and space == "shared"):
            raise stream.error(f"'{variable.name}' needs a size", line)
        if extern and space != "shared":
            raise stream.error(f"'{variable.name}' is defined in no module here", line)
    return variables
