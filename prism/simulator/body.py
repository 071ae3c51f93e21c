"""PTX text to a syntax tree: statements and operands of a function body (PTX ISA 4.3, 4.5, 6)."""

from __future__ import annotations

from prism.simulator.declarations import parse_type, parse_variables, skip_debug
from prism.simulator.lexer import TokenStream, parse_number
from prism.simulator.scope import Scope
from prism.simulator.syntax import (
    Address,
    Arguments,
    Function,
    FunctionName,
    Immediate,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Scalar,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)

MAX_DEPTH = 32
"""Deepest nesting of `{ ... }` in a body."""


def parse_body(stream: TokenStream, function: Function, scope: Scope, depth: int = 0) -> None:
    """Parses `{ statements }` into `function.instructions`; nested scopes are flattened."""
    if depth > MAX_DEPTH:
        raise stream.error(f"scopes are nested deeper than {MAX_DEPTH}")
    start = stream.line
    stream.expect("{")
    _declare_labels(stream, function, scope)
    while not stream.accept("}"):
        if stream.now.kind == "end":
            raise stream.error("unclosed '{'", start)
        _parse_statement(stream, function, scope, depth)


def _declare_labels(stream: TokenStream, function: Function, scope: Scope) -> None:
    """Declares the labels of this scope beforehand, as branches forward may name them."""
    depth = 0
    tokens = stream.tokens
    for at in range(stream.at, len(tokens)):
        text = tokens[at].text
        if tokens[at].kind == "punct" and text in "{}":
            depth += 1 if text == "{" else -1
            if depth < 0:
                return
        elif text == ":" and depth == 0 and tokens[at - 1].kind == "word":
            name = tokens[at - 1].text
            unique = name if name not in function.labels else f"{name}#{at}"
            function.labels[unique] = -1
            scope.declare_label(name, unique, tokens[at].line)


def _parse_statement(stream: TokenStream, function: Function, scope: Scope, depth: int) -> None:
    token = stream.now
    if token.text == "{":
        parse_body(stream, function, Scope(stream, scope), depth + 1)
    elif token.kind == "word" and stream.peek().text == ":":
        stream.at += 2
        label = scope.resolve(token.text)
        if not isinstance(label, Label):
            raise stream.error(f"'{token.text}' is declared twice", token.line)
        function.labels[label.name] = len(function.instructions)
        if stream.now.text == ".branchtargets":
            stream.next()
            function.branch_targets[label.name] = _parse_branch_targets(stream, scope)
        elif stream.now.text in (".calltargets", ".callprototype"):
            raise stream.error(f"unsupported '{stream.now.text}'")
    elif token.text == ".reg":
        _parse_registers(stream, scope)
    elif token.text in (".shared", ".local", ".param", ".global", ".const"):
        for variable in parse_variables(stream, extern=False):
            scope.declare_variable(variable)
            function.variables.append(variable)
    elif token.text == ".extern":
        stream.next()
        for variable in parse_variables(stream, extern=True):
            scope.declare_variable(variable)
            function.variables.append(variable)
    elif not stream.accept(";") and not skip_debug(stream):
        function.instructions.append(_parse_instruction(stream, scope))


def _parse_branch_targets(stream: TokenStream, scope: Scope) -> list[Label]:
    targets: list[Label] = []
    while True:
        token = stream.expect_kind("word", "a label")
        label = scope.resolve(token.text)
        if not isinstance(label, Label):
            raise stream.error(f"'{token.text}' is not a label", token.line)
        targets.append(label)
        if not stream.accept(","):
            break
    stream.expect(";")
    return targets


def _parse_registers(stream: TokenStream, scope: Scope) -> None:
    stream.expect(".reg")
    if stream.now.text in (".v2", ".v4"):
        raise stream.error(f"unsupported vector register '{stream.now.text}'")
    scalar = parse_type(stream)
    while True:
        name = stream.expect_kind("word", "a register name").text
        if stream.accept("<"):
            scope.declare_range(name, stream.integer("a register count", 0, 1 << 31), scalar)
            stream.expect(">")
        else:
            scope.declare_register(name, scalar)
        if not stream.accept(","):
            break
    stream.expect(";")


def _parse_instruction(stream: TokenStream, scope: Scope) -> Instruction:
    guard: Register | None = None
    negated = False
    line = stream.line
    if stream.accept("@"):
        negated = stream.accept("!")
        guard = _register(stream, scope)
        if guard.type.kind != "p":
            raise stream.error(f"the guard '{guard.name}' is not a predicate", line)
    token = stream.expect_kind("word", "an instruction")
    opcode, *modifiers = token.text.split(".")
    if opcode == "bar" and modifiers[:1] == ["warp"]:
        # A barrier of a warp has nothing in common with one of the block but half its name.
        opcode, modifiers = "bar.warp", modifiers[1:]
    operands: list[Operand] = []
    if stream.now.text != ";":
        operands.append(_parse_operand(stream, scope))
        while stream.accept(","):
            operands.append(_parse_operand(stream, scope))
    stream.expect(";")
    return Instruction(token.line, opcode, tuple(modifiers), tuple(operands), guard, negated)


def _register(stream: TokenStream, scope: Scope) -> Register:
    token = stream.expect_kind("word", "a register")
    found = scope.resolve(token.text)
    if not isinstance(found, Register):
        raise stream.error(f"'{token.text}' is not a register", token.line)
    return found


def _parse_operand(stream: TokenStream, scope: Scope) -> Operand:
    if stream.accept("["):
        return _parse_address(stream, scope)
    if stream.accept("{"):
        return Vector(_parse_list(stream, scope, "}"))
    if stream.accept("("):
        return Arguments(_parse_list(stream, scope, ")"))
    if stream.accept("!"):
        return Negated(_register(stream, scope))
    token = stream.now
    if token.kind == "word":
        found = scope.resolve(token.text)
        if isinstance(found, Label):
            stream.next()
            return found
        if found is None and token.text in scope.functions:
            stream.next()
            return FunctionName(token.text)
    value = _parse_scalar(stream, scope)
    if stream.now.text != "|":
        return value
    stream.next()
    other = _parse_scalar(stream, scope)
    if not isinstance(value, Register | Sink) or not isinstance(other, Register | Sink):
        raise stream.error("expected two registers around '|'", token.line)
    return Pair(value, other)


def _parse_list(stream: TokenStream, scope: Scope, close: str) -> tuple[Scalar, ...]:
    items: list[Scalar] = []
    while not stream.accept(close):
        items.append(_parse_scalar(stream, scope))
        if stream.now.text != close:
            stream.expect(",")
    return tuple(items)


def _parse_scalar(stream: TokenStream, scope: Scope) -> Scalar:
    token = stream.now
    if token.kind == "number" or token.text in ("-", "+"):
        return _parse_immediate(stream)
    token = stream.expect_kind("word", "an operand")
    if token.text == "_":
        return Sink()
    found = scope.resolve(token.text)
    if isinstance(found, Register):
        return found
    if isinstance(found, Variable):
        return Symbol(found, _parse_offset(stream))
    if token.text == "WARP_SZ":
        return Immediate(32)
    if found is None and token.text.startswith("%"):
        # Which special registers there are is the decoder's business; it knows the values.
        return Special(token.text)
    raise stream.error(f"unknown name '{token.text}'", token.line)


def _parse_immediate(stream: TokenStream) -> Immediate:
    sign = -1 if stream.accept("-") else 1
    if sign == 1:
        stream.accept("+")
    token = stream.expect_kind("number", "a number")
    prefix = token.text[:2].lower()
    if prefix in ("0f", "0d"):
        raw = bytes.fromhex(token.text[2:])
        # NaN payloads do not survive a Python float, so the raw bits are what is kept.
        pattern = int.from_bytes(raw, "big") ^ (0 if sign > 0 else 1 << (8 * len(raw) - 1))
        return Immediate(pattern, 8 * len(raw))
    number = parse_number(token.text)
    if isinstance(number, int) and number >= 1 << 64:
        raise stream.error(f"integer '{token.text}' does not fit in 64 bits", token.line)
    return Immediate(sign * number)


def _parse_offset(stream: TokenStream) -> int:
    if stream.accept("+"):
        return stream.integer("an offset", -(1 << 31), (1 << 32) - 1)
    return 0


def _parse_address(stream: TokenStream, scope: Scope) -> Address:
    token = stream.now
    if token.kind == "number":
        offset = stream.integer("an address", 0, (1 << 64) - 1)
        stream.expect("]")
        return Address(None, offset)
    token = stream.expect_kind("word", "an address")
    found = scope.resolve(token.text)
    if not isinstance(found, Register | Variable):
        raise stream.error(f"unknown name '{token.text}'", token.line)
    offset = _parse_offset(stream)
    stream.expect("]")
    return Address(found, offset)
