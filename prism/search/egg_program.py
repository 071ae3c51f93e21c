"""
The egglog program of the search: declarations, shape analysis and laws as text, terms and constants
as commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from prism.dialects.operators import OPERATORS, Kind
from prism.dialects.sym_expr import SymExpr, SymExprError
from prism.search.rules import NONNEGATIVE, Pattern, Rule, parse_pattern
from prism.search.terms import INPUT, TermTable, attribute_text, is_positive

Command = Any
"""A command of `egglog.bindings`, which keeps the name of their union to itself."""


def constructor(name: str) -> str:
    return name.title().replace("_", "")


_ARGUMENTS = {
    Kind.UNARY: "T",
    Kind.SCALAR: "String T",
    Kind.BINARY: "T T",
    Kind.MATMUL: "T T",
    Kind.SUM: "i64 T",
    Kind.MAX: "i64 T",
    Kind.TRANSPOSE: "String T",
    Kind.SLICE: "String T",
    Kind.BROADCAST: "String T",
    Kind.RESHAPE: "String T",
    Kind.CONCAT: "String T T",
}
ON_TERMS = {n: op for n, op in OPERATORS.items() if op.threadblock and op.kind in _ARGUMENTS}
"""The operators that terms of the e-graph are made of."""

NAMES = {constructor(name): name for name in (*ON_TERMS, INPUT)}
_VARIABLES = {
    Kind.UNARY: "a",
    Kind.SCALAR: "c a",
    Kind.BINARY: "a b",
    Kind.MATMUL: "a b",
    Kind.SUM: "d a",
    Kind.MAX: "d a",
}
_REDUCED_SIZES = (
    '(= s (size a d)) => (size t d) "1"',
    "(= s (size a i)) (!= i d) => (size t i) s",
    "(< d 2) (= s (batch a)) => (batch t) s",
)
_SHAPE_RULES: dict[Kind, tuple[str, ...]] = {
    # per kind: the facts from which a term's sizes and batch sizes follow, and what follows
    Kind.UNARY: ("(= s (size a i)) => (size t i) s", "(= s (batch a)) => (batch t) s"),
    Kind.SCALAR: ("(= s (size a i)) => (size t i) s", "(= s (batch a)) => (batch t) s"),
    Kind.BINARY: (
        "(= s (size a i)) (= s (size b i)) => (size t i) s",
        '(= "1" (size a i)) (= s (size b i)) => (size t i) s',
        '(= s (size a i)) (= "1" (size b i)) => (size t i) s',
        "(= s (batch a)) (= s (batch b)) => (batch t) s",
    ),
    Kind.MATMUL: (
        "(= s (size b 0)) => (size t 0) s",
        "(= s (size a 1)) => (size t 1) s",
        "(= s (size a i)) (>= i 2) => (size t i) s",
        "(= s (batch a)) => (batch t) s",
    ),
    Kind.SUM: _REDUCED_SIZES,
    Kind.MAX: _REDUCED_SIZES,
}
"""
No law builds terms of other kinds, so that their sizes are given with the terms, as of inputs.
"""

_CONDITIONS = {
    "one": '(= "1" (size {0} {1}))',
    "same": "(= (size {0} {2}) (size {1} {2}))",
    "batch": "(= (batch {0}) (batch {1}))",
    "nonneg": "(nonneg {0})",
    "positive": "(positive {0})",
    "product": "(= {2} (product {0} {1}))",
    "inverse": "(= {1} (inverse {0}))",
    "mean": "(= {0} (inverse (size {1} {2})))",
}


@lru_cache(maxsize=8)
def program(
    rules: tuple[Rule, ...],
) -> tuple[list[Command], list[Command], list[Command]]:
    """The parsed declarations and rules, one step of saturation, and the shape analysis alone."""
    from egglog import bindings as eb

    parser = eb.EGraph()
    step = "(run-schedule (saturate analysis) (run algebra))"
    analysis = "(run-schedule (saturate analysis))"
    declarations = parser.parse_program(program_text(rules))
    return declarations, parser.parse_program(step), parser.parse_program(analysis)


def program_text(rules: Iterable[Rule]) -> str:
    """The egglog program of a set of rules: declarations, shape analysis, laws."""
    constructors = " ".join(
        f"({constructor(name)} {_ARGUMENTS[op.kind]})" for name, op in ON_TERMS.items()
    )
    lines = [
        f"(datatype T (Input i64) {constructors})",
        "(ruleset algebra)",
        "(ruleset analysis)",
        # A conflict of sizes in one class would be an unsound rule: without :merge it is an error.
        "(function size (T i64) String :no-merge)",
        "(function batch (T) String :no-merge)",
        "(function product (String String) String :no-merge)",
        "(function inverse (String) String :no-merge)",
        "(relation positive (String))",
        "(relation nonneg (T))",
    ]
    for name, op in ON_TERMS.items():
        if op.kind not in _SHAPE_RULES:
            continue
        pattern = f"({constructor(name)} {_VARIABLES[op.kind]})"
        for rule in _SHAPE_RULES[op.kind]:
            facts, _, result = rule.partition(" => ")
            lines.append(f"(rule ((= t {pattern}) {facts}) ((set {result})) :ruleset analysis)")
    for pattern, conditions in NONNEGATIVE:
        facts = " ".join(map(_fact, conditions))
        left = _egglog(parse_pattern(pattern))
        lines.append(f"(rule ((= t {left}) {facts}) ((nonneg t)) :ruleset analysis)")
    for rule in rules:
        left, right = (_egglog(parse_pattern(side)) for side in (rule.left, rule.right))
        when = f":when ({' '.join(map(_fact, rule.conditions))})" if rule.conditions else ""
        lines.append(f"(rewrite {left} {right} {when} :ruleset algebra)")
        if rule.both:
            lines.append(f"(rewrite {right} {left} {when} :ruleset algebra)")
    return "\n".join(lines)


def _fact(condition: str) -> str:
    kind, *arguments = condition.split()
    return _CONDITIONS[kind].format(*arguments)


def _egglog(pattern: Pattern) -> str:
    if isinstance(pattern, str):
        return pattern
    head, *arguments = pattern
    if not isinstance(head, str):
        raise ValueError(f"pattern {pattern}: expected an operator first")
    return f"({constructor(head)} {' '.join(map(_egglog, arguments))})"


@lru_cache(maxsize=64)
def closure(constants: frozenset[SymExpr]) -> dict[str, SymExpr]:
    """
    The constants that rules may build from those of the terms: inverses, and products of two.

    Products beyond are not built, so that scaling cannot go on for ever; 1 and 2 are always there.
    """
    base = [SymExpr.constant(1), SymExpr.constant(2)]
    for constant in sorted(constants, key=str):
        inverse = _quotient(base[0], constant)
        base += [constant] if inverse is None else [constant, inverse]
    products = [_product(a, b) for i, a in enumerate(base) for b in base[i:]]
    closed = dict.fromkeys([*base, *(p for p in products if p is not None)])
    return {str(constant): constant for constant in closed}


def _product(a: SymExpr, b: SymExpr) -> SymExpr | None:
    """a b, or None where it is too large."""
    try:
        return a * b
    except SymExprError:
        return None


def _quotient(a: SymExpr, b: SymExpr) -> SymExpr | None:
    """a / b, or None where it is undefined or too large."""
    try:
        return a / b
    except SymExprError:
        return None


@lru_cache(maxsize=64)
def constant_facts(constants: frozenset[SymExpr]) -> list[Command]:
    """What the rules know of the constants of some terms: signs, inverses and products."""
    from egglog import bindings as eb

    span = eb.RustSpan(__name__, 0, 0)

    def text(value: str) -> eb.Lit:
        return eb.Lit(span, eb.String(value))

    commands: list[Command] = []

    def fact(function: str, arguments: list[str], value: str) -> None:
        action = eb.Set(span, function, [text(a) for a in arguments], text(value))
        commands.append(eb.ActionCommand(action))

    closed = closure(constants)
    for name, constant in closed.items():
        if is_positive(constant):
            call = eb.Call(span, "positive", [text(name)])
            commands.append(eb.ActionCommand(eb.Expr_(span, call)))
        inverse = str(_quotient(SymExpr.constant(1), constant))
        if inverse in closed:
            fact("inverse", [name], inverse)
        for other, factor in closed.items():
            product = str(_product(constant, factor))
            if product in closed:
                fact("product", [name, other], product)
    return commands


def term_commands(table: TermTable, order: Sequence[int]) -> list[Command]:
    """Defines every term once, by a global name, with the shapes of inputs."""
    from egglog import bindings as eb

    span = eb.RustSpan(__name__, 0, 0)
    commands: list[Command] = []

    def integer(value: int) -> eb.Lit:
        return eb.Lit(span, eb.Int(value))

    def text(value: str) -> eb.Lit:
        return eb.Lit(span, eb.String(value))

    for term in order:
        name, attribute, operands = table.nodes[term]
        arguments: list[Any] = []
        if name == INPUT and isinstance(attribute, int):
            arguments.append(integer(attribute))
        elif isinstance(attribute, int):
            arguments.append(integer(len(table.shapes[term]) - 1 - attribute))
        elif attribute is not None:
            arguments.append(text(attribute_text(attribute)))
        arguments += [eb.Var(span, f"$t{o}") for o in operands]
        call = eb.Call(span, constructor(name), arguments)
        commands.append(eb.ActionCommand(eb.Let(span, f"$t{term}", call)))
        if name == INPUT or ON_TERMS[name].kind not in _SHAPE_RULES:
            shape = table.shapes[term]
            for i, size in enumerate(reversed(shape)):
                arguments = [eb.Var(span, f"$t{term}"), integer(i)]
                commands.append(eb.ActionCommand(eb.Set(span, "size", arguments, text(str(size)))))
            batch = text(", ".join(map(str, shape[:-2])))
            action = eb.Set(span, "batch", [eb.Var(span, f"$t{term}")], batch)
            commands.append(eb.ActionCommand(action))
    return commands
