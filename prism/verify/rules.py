"""
Compiles the axioms to egglog: sorts, analyses of shape, dependence on axes and sign, and rules.

A condition of an axiom becomes a premise over an analysis. Analyses only ever state what is
certain, so a term of which nothing is known enables no axiom. Algebra is applied to whole tensors
only, that is to terms without part, comb and red: movement brings every tile there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from prism.verify.axioms import AXIOMS, MOVEMENT, Axiom, AxiomClass
from prism.verify.language import (
    BINARY,
    FUNCTION_FACTS,
    SIGNATURES,
    UNARY,
    Pattern,
    argument_sorts,
    sorts,
    subterms,
    variables,
)
from prism.verify.sign_facts import SIGN_FACTS, SignFact

CONSTRUCTORS = {
    "in": "In",
    "un": "Un",
    "bin": "Bin",
    "scale": "Scale",
    "shift": "Shift",
    "matmul": "Matmul",
    "sum": "Sum",
    "max": "Max",
    "swap": "Swap",
    "slice": "Slice",
    "part": "Part",
    "comb": "Comb",
    "red": "Red",
    "redmax": "Redmax",
    "rescaled": "Rescaled",
}
"""The constructor of each head. A constant is two arguments: a rational and a product of sizes."""

_DECLARATIONS = """
(sort Size)
(constructor Whole (String) Size)
(constructor Cut (Size String) Size)
(sort Term)
(constructor In (String) Term)
(constructor Un (String Term) Term)
(constructor Bin (String Term Term) Term)
(constructor Scale (BigRat BigRat Term) Term)
(constructor Shift (BigRat BigRat Term) Term)
(constructor Matmul (Term Term) Term)
(constructor Sum (i64 Term) Term)
(constructor Max (i64 Term) Term)
(constructor Swap (Term i64 i64) Term)
(constructor Slice (Term i64 String) Term)
(constructor Part (Term i64 String) Term)
(constructor Comb (Term i64 String) Term)
(constructor Red (Term String) Term)
(constructor Redmax (Term String) Term)
(constructor Rescaled (Term Term String) Term)
(function Ref (i64) Term :merge old)
(function size (Term i64) Size :merge old)
(relation Dim (i64))
(relation Axis (String))
(relation free (Size String))
(relation share (Size BigRat BigRat))
(relation closed (Term String))
(relation whole (Term))
(relation erased (Term))
(relation pos (Term))
(relation nonneg (Term))
(relation nonzero (Term))
(relation total (Term))
(relation linear (String))
(relation increasing (String))
(relation linear-left (String))
(relation linear-right (String))
(relation additive (String))
(ruleset analysis)
(ruleset movement)
(ruleset simplification)
"""

_ANALYSES = """
(rule ((= t (Un f A)) (= s (size A d))) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Scale q m A)) (= s (size A d))) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Shift q m A)) (= s (size A d))) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Bin g A B)) (= s (size A d)) (= s (size B d))) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Bin g A B)) (= (Whole "1") (size A d)) (= s (size B d)))
      ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Bin g A B)) (= s (size A d)) (= (Whole "1") (size B d)))
      ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Matmul A B)) (= s (size B 1))) ((set (size t 1) s)) :ruleset analysis)
(rule ((= t (Matmul A B)) (= s (size A 2))) ((set (size t 2) s)) :ruleset analysis)
(rule ((= t (Matmul A B)) (= s (size A d)) (>= d 3)) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Sum d A))) ((set (size t d) (Whole "1"))) :ruleset analysis)
(rule ((= t (Sum d A)) (= s (size A e)) (!= d e)) ((set (size t e) s)) :ruleset analysis)
(rule ((= t (Max d A))) ((set (size t d) (Whole "1"))) :ruleset analysis)
(rule ((= t (Max d A)) (= s (size A e)) (!= d e)) ((set (size t e) s)) :ruleset analysis)
(rule ((= t (Swap A d e)) (= s (size A d))) ((set (size t e) s)) :ruleset analysis)
(rule ((= t (Swap A d e)) (= s (size A e))) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Swap A d e)) (= s (size A k)) (!= d k) (!= e k))
      ((set (size t k) s)) :ruleset analysis)
; Nothing is stated of the size of the dim that is sliced.
(rule ((= t (Slice A d w)) (= s (size A e)) (!= d e)) ((set (size t e) s)) :ruleset analysis)
(rule ((= t (Part A d a)) (= s (size A d))) ((set (size t d) (Cut s a))) :ruleset analysis)
(rule ((= t (Part A d a)) (= s (size A e)) (!= d e)) ((set (size t e) s)) :ruleset analysis)
(rule ((= t (Comb A d a)) (= (Cut s a) (size A d))) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Comb A d a)) (= s (size A e)) (!= d e)) ((set (size t e) s)) :ruleset analysis)
(rule ((= t (Red A a)) (= s (size A d))) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Redmax A a)) (= s (size A d))) ((set (size t d) s)) :ruleset analysis)
(rule ((= t (Rescaled A B a)) (= s (size A d))) ((set (size t d) s)) :ruleset analysis)

(rule ((= s (Whole w)) (Axis a)) ((free s a)) :ruleset analysis)
(rule ((= s (Cut r b)) (free r a) (!= a b)) ((free s a)) :ruleset analysis)

(rule ((= t (In n)) (Axis a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Un f A)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Scale q m A)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Shift q m A)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Bin g A B)) (closed A a) (closed B a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Matmul A B)) (closed A a) (closed B a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Sum d A)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Max d A)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Swap A d e)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Slice A d w)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Part A d b)) (closed A a) (!= a b)) ((closed t a)) :ruleset analysis)
(rule ((= t (Comb A d b)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Comb A d a))) ((closed t a)) :ruleset analysis)
(rule ((= t (Red A b)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Red A a))) ((closed t a)) :ruleset analysis)
(rule ((= t (Redmax A b)) (closed A a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Redmax A a))) ((closed t a)) :ruleset analysis)
(rule ((= t (Rescaled A B b)) (closed A a) (closed B a)) ((closed t a)) :ruleset analysis)
(rule ((= t (Rescaled A B a))) ((closed t a)) :ruleset analysis)

(rule ((= t (In n))) ((whole t)) :ruleset analysis)
(rule ((= t (Un f A)) (whole A)) ((whole t)) :ruleset analysis)
(rule ((= t (Scale q m A)) (whole A)) ((whole t)) :ruleset analysis)
(rule ((= t (Shift q m A)) (whole A)) ((whole t)) :ruleset analysis)
(rule ((= t (Bin g A B)) (whole A) (whole B)) ((whole t)) :ruleset analysis)
(rule ((= t (Matmul A B)) (whole A) (whole B)) ((whole t)) :ruleset analysis)
(rule ((= t (Sum d A)) (whole A)) ((whole t)) :ruleset analysis)
(rule ((= t (Max d A)) (whole A)) ((whole t)) :ruleset analysis)
(rule ((= t (Swap A d e)) (whole A)) ((whole t)) :ruleset analysis)
(rule ((= t (Slice A d w)) (whole A)) ((whole t)) :ruleset analysis)

; A product with an identity is not reassociated, or it would go on for ever.
(rule ((= A (Bin g A B))) ((subsume (Bin g A B))) :ruleset simplification)
(rule ((= B (Bin g A B))) ((subsume (Bin g A B))) :ruleset simplification)

(rule ((whole A)) ((erased A)) :ruleset analysis)
(rule ((= t (Part A d a)) (erased A)) ((erased t)) :ruleset analysis)

(rule ((= t (In n))) ((total t)) :ruleset analysis)
(rule ((pos A)) ((nonneg A) (nonzero A)) :ruleset analysis)
"""


@dataclass(frozen=True)
class DirectedAxiom:
    """An axiom used in one direction."""

    axiom: Axiom
    left: Pattern
    right: Pattern


DIRECTED: tuple[DirectedAxiom, ...] = tuple(
    directed
    for axiom in AXIOMS
    for directed in (
        DirectedAxiom(axiom, axiom.left, axiom.right),
        *((DirectedAxiom(axiom, axiom.right, axiom.left),) if axiom.both else ()),
    )
)
"""Every direction in which an axiom is used."""


GROUND = "G"
"""The prefix of the constructors of ground terms, which are never made equal to one another."""

USES = "use-"
"""The prefix of the relations that note the instances of axioms."""


def ground_declarations() -> str:
    """
    The sort of ground terms and the function that gives a term one of those equal to it.

    A rule that notes its instance notes the ground terms that its variables had when it applied:
    each was equal to the rest of its class by instances noted before, so all that the e-graph finds
    equal follows from the noted instances by congruence alone.
    """
    lines = ["(sort Ground)"]
    for head, constructor in CONSTRUCTORS.items():
        sorts_of = (_GROUND_SORTS[sort] for sort in argument_sorts(head))
        lines.append(f"(constructor {GROUND}{constructor} ({' '.join(sorts_of)}) Ground)")
    lines.append("(function ground (Term) Ground :merge old)")
    for axiom in AXIOMS:
        sorts_of = (
            part for sort in variables(axiom.left).values() for part in _GROUND_SORTS[sort].split()
        )
        lines.append(f"(relation {USES}{axiom.name} ({' '.join(sorts_of)}))")
    return "\n".join(lines)


_GROUND_SORTS = {
    "input": "String",
    "unary": "String",
    "binary": "String",
    "term": "Ground",
    "number": "BigRat",
    "constant": "BigRat BigRat",
    "dim": "i64",
    "axis": "String",
    "window": "String",
}


def program(rank: int, functions: frozenset[str], *, noting: bool = False) -> str:
    """
    The egglog program of sorts, analyses and those axioms that can apply.

    `rank` is the largest number of dims of a term, `functions` the heads and elementwise functions
    that occur in the terms. An axiom whose left side needs one that neither occurs nor comes from
    another axiom never applies, and leaving it out changes nothing but the time. With `noting` the
    rules note their instances.

    The phases `algebra` and `distribution` are made of one ruleset per axiom, `algebra-7`, so that
    the search can stop between two of them.
    """
    directed, reached = _applicable(functions)
    lines = [_DECLARATIONS, _ANALYSES, *([ground_declarations()] if noting else [])]
    lines += (f"(Dim {d})" for d in range(1, rank + 1))
    lines += (
        f'({predicate} "{name}")' for predicate, names in FUNCTION_FACTS.items() for name in names
    )
    lines += (_sign_rule(fact, rank) for fact in SIGN_FACTS if _uses(fact.term) <= reached)
    slices: dict[str, list[str]] = {"algebra": [], "distribution": []}
    for number, rule in enumerate(directed):
        ruleset = ruleset_of(rule.axiom)
        if ruleset in slices:
            slices[ruleset].append(f"{ruleset}-{number}")
            ruleset = slices[ruleset][-1]
            lines.append(f"(ruleset {ruleset})")
        lines.append(_rule(rule, rank, ruleset, noting=noting))
    for phase, names in slices.items():
        lines.append(f"(unstable-combined-ruleset {phase} {' '.join(names)})")
    return "\n".join(lines)


def _applicable(functions: frozenset[str]) -> tuple[list[DirectedAxiom], frozenset[str]]:
    """The axioms that can apply to terms with these functions, and all functions that arise."""
    reached = functions
    while True:
        directed = [rule for rule in DIRECTED if _uses(rule.left) <= reached]
        larger = reached.union(*(_uses(rule.right) for rule in directed))
        if larger == reached:
            return directed, reached
        reached = larger


@cache
def _uses(pattern: Pattern) -> frozenset[str]:
    """The heads and named functions of a pattern."""
    return frozenset(
        str(name)
        for term in subterms(pattern)
        for name in term[: 2 if term[0] in ("un", "bin") else 1]
        if name in SIGNATURES or name in UNARY or name in BINARY
    )


class _Compiler:
    """Collects the premises of one rule."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.premises: list[str] = []
        self._bound: dict[Pattern, str] = {}

    def match(self, pattern: Pattern) -> str:
        """Adds premises that match a term and bind every compound part; returns its variable."""
        if not isinstance(pattern, tuple):
            return f"{pattern}"
        if pattern in self._bound:
            return self._bound[pattern]
        head = str(pattern[0])
        arguments = [
            part
            for argument, sort in zip(pattern[1:], sorts(head), strict=True)
            for part in ([self.match(argument)] if sort == "term" else _parameter(argument, sort))
        ]
        variable = self._bound[pattern] = f"t{len(self._bound)}"
        self.premises.append(f"(= {variable} ({CONSTRUCTORS[head]} {' '.join(arguments)}))")
        return variable

    def condition(self, condition: tuple[Pattern, ...]) -> None:
        """Adds the premises of a side condition."""
        name, *arguments = condition
        match str(name), arguments:
            case "unit", (term, dim):
                self.premises.append(f'(= (Whole "1") (size {self.match(term)} {dim}))')
            case "uncut", (term, dim):
                # A name of its own: two uncut dims need not have the same size.
                whole = f"w{len(self.premises)}"
                self.premises.append(f"(= (Whole {whole}) (size {self.match(term)} {dim}))")
            case "mean", (constant, term, dim):
                size, (number, sizes) = f"s{len(self.premises)}", _constant(constant)
                self.premises.append(f"(= {size} (size {self.match(term)} {dim}))")
                self.premises.append(f"(share {size} {number} {sizes})")
            case "free", (term, dim, axis):
                size = f"s{len(self.premises)}"
                self.premises.append(f"(= {size} (size {self.match(term)} {dim}))")
                self.premises.append(f"(free {size} {axis})")
            case "same", (left, right, dim):
                self._same(left, right, dim)
            case "same-shape", (left, right):
                for dim in range(1, self.rank + 1):
                    self._same(left, right, dim)
            case "same-batch", (left, right):
                for dim in range(3, self.rank + 1):
                    self._same(left, right, dim)
            case "closed", (term, axis):
                self.premises.append(f"(closed {self.match(term)} {axis})")
            case (("ne-axis" | "ne-dim"), (left, right)):
                self.premises.append(f"(!= {left} {right})")
            case "batch", (dim,):
                self.premises.append(f"(>= {dim} 3)")
            case ("pos" | "nonneg" | "nonzero" | "total") as predicate, (term,):
                self.premises.append(f"({predicate} {self.match(term)})")
            case ("nz" | "ge0" | "gt0") as test, (constant,):
                operator = {"nz": "!=", "ge0": ">=", "gt0": ">"}[test]
                self.premises.append(f"({operator} {_constant(constant)[0]} {_rational(0)})")
            case "same-mono", (left, right):
                self.premises.append(f"(= {_constant(left)[1]} {_constant(right)[1]})")
            case predicate, (function,) if predicate in FUNCTION_FACTS:
                self.premises.append(f"({predicate} {function})")
            case unknown, _:
                raise ValueError(f"unknown condition '{unknown}'")

    def _same(self, left: Pattern, right: Pattern, dim: Pattern) -> None:
        size = f"s{len(self.premises)}"
        for term in (left, right):
            self.premises.append(f"(= {size} (size {self.match(term)} {dim}))")


def _rule(rule: DirectedAxiom, rank: int, ruleset: str, *, noting: bool) -> str:
    axiom = rule.axiom
    compiler = _Compiler(rank)
    root = compiler.match(rule.left)
    if axiom.kind not in MOVEMENT:
        compiler.premises.append(f"(whole {root})")
    for condition in axiom.when:
        compiler.condition(condition)
    if axiom.unless_same is not None:
        compiler.premises.append(f"(!= {' '.join(axiom.unless_same)})")
    actions = f"(union {root} {_build(rule.right)})"
    if noting:
        names = variables(axiom.left)
        compiler.premises += (
            f"(= g_{name} (ground {name}))" for name, sort in names.items() if sort == "term"
        )
        actions += "".join(
            f" (set (ground {_build(term)}) {_build(term, GROUND)})"
            for term in subterms(rule.right)
        )
        noted = [part for name, sort in names.items() for part in _noted(name, sort)]
        actions += f" ({USES}{axiom.name} {' '.join(noted)})"
    premises = " ".join(compiler.premises)
    if axiom.simplifies:
        actions += f" (subsume {_build(rule.left)})"
    return f"(rule ({premises}) ({actions}) :ruleset {ruleset})"


def ruleset_of(axiom: Axiom) -> str:
    """
    Which phase of the search uses an axiom: `movement`, `simplification`, `algebra`, or
    `distribution`, which makes terms larger, so that it is used a few times only.
    """
    if axiom.kind in MOVEMENT:
        return "movement"
    if axiom.simplifies:
        return "simplification"
    return "distribution" if axiom.kind is AxiomClass.DISTRIBUTION else "algebra"


def _sign_rule(fact: SignFact, rank: int) -> str:
    compiler = _Compiler(rank)
    root = compiler.match(fact.term)
    for condition in fact.when:
        compiler.condition(condition)
    premises = " ".join(compiler.premises)
    return f"(rule ({premises}) (({fact.predicate} {root})) :ruleset analysis)"


def _noted(name: str, sort: str) -> list[str]:
    return [f"g_{name}"] if sort == "term" else _parameter(name, sort)


def _build(pattern: Pattern, prefix: str = "") -> str:
    """
    The expression that builds a term from matched variables, with the prefix `GROUND` a ground one.
    """
    if not isinstance(pattern, tuple):
        return f"g_{pattern}" if prefix else f"{pattern}"
    head = str(pattern[0])
    arguments = [
        part
        for argument, sort in zip(pattern[1:], sorts(head), strict=True)
        for part in ([_build(argument, prefix)] if sort == "term" else _parameter(argument, sort))
    ]
    return f"({prefix}{CONSTRUCTORS[head]} {' '.join(arguments)})"


def _parameter(argument: Pattern, sort: str) -> list[str]:
    """An argument that is no term: a constant is two, a named function is a string."""
    if sort == "constant":
        return list(_constant(argument))
    if sort in ("unary", "binary") and argument in (*UNARY, *BINARY):
        return [f'"{argument}"']
    return [f"{argument}"]


def _constant(argument: Pattern) -> tuple[str, str]:
    """The rational and the product of sizes of a constant expression."""
    match argument:
        case int():
            return _rational(argument), _rational(1)
        case str():
            return f"{argument}_q", f"{argument}_m"
        case ("*", left, right):
            (a, m), (b, k) = _constant(left), _constant(right)
            return f"(* {a} {b})", f"(* {m} {k})"
        case ("+", left, right):
            (a, m), (b, _) = _constant(left), _constant(right)
            return f"(+ {a} {b})", m
        case ("/", value):
            a, m = _constant(value)
            return f"(/ {_rational(1)} {a})", f"(/ {_rational(1)} {m})"
        case _:
            raise ValueError(f"no constant: {argument}")


def _rational(value: int) -> str:
    return f"(bigrat (bigint {value}) (bigint 1))"
