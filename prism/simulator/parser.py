"""PTX text to a syntax tree: declarations (PTX ISA 5 and 11). Bodies are in `body`."""

from __future__ import annotations

from prism.simulator.body import parse_body
from prism.simulator.declarations import (
    SPACES,
    parse_declarator,
    parse_prefix,
    parse_type,
    parse_variables,
    skip_debug,
)
from prism.simulator.lexer import TokenStream
from prism.simulator.scope import Scope
from prism.simulator.syntax import Function, Module, Register, Variable

_LINKAGE = (".visible", ".extern", ".weak", ".common")
_SHAPE_DIRECTIVES = {".maxntid": 1024, ".reqntid": 1024, ".reqnctapercluster": 1}
_COUNT_DIRECTIVES = (".minnctapersm", ".maxnctapersm", ".maxnreg", ".maxclusterrank")


def parse(text: str, file: str) -> Module:
    """Parses a PTX text. Raises PtxError, with the line, on the first thing that is wrong."""
    stream = TokenStream(text, file)
    module = _parse_header(stream)
    scope = Scope(stream, None)
    while stream.now.kind != "end":
        _parse_top_level(stream, module, scope)
    return module


def _parse_header(stream: TokenStream) -> Module:
    stream.expect(".version")
    version = stream.expect_kind("number", "a version").text.split(".")
    if len(version) != 2 or not all(part.isdigit() for part in version):
        raise stream.error("expected a version such as 7.0")
    stream.expect(".target")
    target = stream.expect_kind("word", "a target such as sm_80").text
    while stream.accept(","):
        stream.expect_kind("word", "a target option")
    if stream.accept(".address_size"):
        stream.integer("the address size", 64, 64)
    return Module(stream.file, (int(version[0]), int(version[1])), target)


def _parse_top_level(stream: TokenStream, module: Module, scope: Scope) -> None:
    token = stream.now
    if skip_debug(stream):
        return
    extern = False
    while stream.now.text in _LINKAGE:
        extern |= stream.next().text == ".extern"
    if stream.now.text in (".entry", ".func"):
        function = _parse_function(stream, module, scope)
        known = module.functions.get(function.name)
        if known not in (None, function) and known.has_body and function.has_body:
            raise stream.error(f"'{function.name}' is defined twice", function.line)
        if known is None or function.has_body:
            module.functions[function.name] = function
    elif stream.now.text in SPACES:
        for variable in parse_variables(stream, extern=extern):
            scope.declare_variable(variable)
            module.variables[variable.name] = variable
    else:
        raise stream.error(f"unexpected '{token.text}'", token.line)


def _parse_function(stream: TokenStream, module: Module, outer: Scope) -> Function:
    line = stream.line
    is_entry = stream.next().text == ".entry"
    scope = Scope(stream, outer)
    scope.functions = module.functions
    results: list[Variable | Register] = []
    if not is_entry and stream.now.text == "(":
        results = _parse_parameters(stream, scope)
    name = stream.expect_kind("word", "a function name").text
    function = Function(name, is_entry, line, results=results)
    if stream.now.text == "(":
        function.parameters = _parse_parameters(stream, scope)
    while stream.now.text not in ("{", ";"):
        _parse_performance_directive(stream, function)
    # The name must be known inside the body, where a function may call itself (and be refused).
    module.functions.setdefault(name, function)
    if not stream.accept(";"):
        function.has_body = True
        parse_body(stream, function, scope)
    function.register_count = len(scope.registers)
    return function


def _parse_performance_directive(stream: TokenStream, function: Function) -> None:
    token = stream.next()
    if token.text in _SHAPE_DIRECTIVES:
        limit = _SHAPE_DIRECTIVES[token.text]
        sizes = [stream.integer(token.text, 1, limit)]
        while stream.accept(","):
            sizes.append(stream.integer(token.text, 1, limit))
        if len(sizes) > 3:
            raise stream.error(f"{token.text} takes at most 3 sizes", token.line)
        x, y, z = (*sizes, 1, 1)[:3]
        if token.text == ".maxntid":
            function.maxntid = (x, y, z)
        elif token.text == ".reqntid":
            function.reqntid = (x, y, z)
    elif token.text in _COUNT_DIRECTIVES:
        stream.integer(token.text, 0, 1 << 16)
    elif token.text != ".noreturn":
        raise stream.error(f"unknown directive '{token.text}'", token.line)


def _parse_parameters(stream: TokenStream, scope: Scope) -> list[Variable | Register]:
    stream.expect("(")
    parameters: list[Variable | Register] = []
    if stream.accept(")"):
        return parameters
    while True:
        if stream.accept(".reg"):
            scalar = parse_type(stream)
            name = stream.expect_kind("word", "a register name").text
            parameters.append(scope.declare_register(name, scalar))
        else:
            if stream.now.text != ".param":
                raise stream.error(f"expected '.param', found '{stream.now.text}'")
            variable = parse_declarator(stream, *parse_prefix(stream))
            scope.declare_variable(variable)
            parameters.append(variable)
        if not stream.accept(","):
            break
    stream.expect(")")
    return parameters
