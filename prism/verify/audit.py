"""
The audit of axioms and sign facts: both sides evaluated exactly at all small shapes, dims and axes.

Every term variable stands for any term: of any shape, cut or not, that depends on axes or does
not, that may be undefined somewhere. `Model` judges, which does not know the axioms.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, product

import numpy as np

from prism.dialects.sym_expr import SymExpr
from prism.verify.axioms import Axiom
from prism.verify.denotation import Index, Model
from prism.verify.exact import UNDEFINED, ExactArray, UndecidedError, exact, numbers, same
from prism.verify.instantiate import (
    VALUE_CONDITIONS,
    Binding,
    Condition,
    build_term,
    satisfies,
)
from prism.verify.language import BINARY, UNARY, Pattern, variables
from prism.verify.sign_facts import SignFact
from prism.verify.terms import UNIT, Constant, IllShapedError, Shape, Size, TermTable

Rule = Axiom | SignFact

_AXES = ("a0", "a1")

_CUT: Size = ("p", "a0")

_SIZES = ({"p": 2, "q": 3}, {"p": 3, "q": 1}, {"p": 2, "q": 2}, {"p": 1, "q": 4})
"""The sizes p and q also coincide and are 1 by accident."""

_COUNTS = ({"a0": 2, "a1": 3}, {"a0": 3, "a1": 2})

_NUMBERS = tuple(Fraction(n) for n in ("0", "1", "2", "-1", "-3", "1/2"))

_MONOMIALS: tuple[Mapping[str, int], ...] = ({}, {}, {"p": 1}, {"q": -1}, {"p": 1, "q": -1})

_WINDOWS = {
    f"{first}:{last}": (first, last)
    for first, last in (
        (SymExpr.constant(0), SymExpr.constant(1)),
        (SymExpr.constant(0), SymExpr.symbol("p")),
        (SymExpr.constant(1), SymExpr.symbol("q")),
    )
}
"""Slices, also of fewer elements than they say: both sides of an axiom then have as few."""

_PALETTES = {
    "any": ("-2", "-1", "0", "1", "2", "-1/3"),
    "nonneg": ("0", "1", "2", "3", "1/3"),
    "pos": ("1/2", "1", "2", "3"),
    "nonzero": ("-2", "-1/2", "1", "3"),
}
"""What the elements of an input are drawn from."""


@dataclass
class Instance:
    """Term variables bound to inputs of one table, all other variables to values."""

    table: TermTable
    binding: Binding
    palettes: Mapping[str, Sequence[str | None]]
    sizes: Mapping[str, int]
    counts: Mapping[str, int]
    seed: int

    def build(self, pattern: Pattern) -> int:
        """The term of a pattern under the binding. Raises IllShapedError."""
        return build_term(self.table, pattern, self.binding)

    @cached_property
    def model(self) -> Model:
        """Seeded arrays for the inputs, other ones at every index of the axes they depend on."""
        entries = {str(term.arguments[0]): term for term in self.table.terms if term.head == "in"}

        def draw(name: str, index: Index) -> ExactArray:
            entry = entries[name]
            at = tuple(sorted((axis, index[axis]) for axis in entry.axes))
            state = random.Random(repr((self.seed, name, at)))
            shape = tuple(model.extent(size, index) for size in entry.shape)
            array = np.empty(shape, dtype=object)
            for place in np.ndindex(shape):
                drawn = state.choice(self.palettes[name])
                array[place] = UNDEFINED if drawn is None else exact(Fraction(drawn))
            return array

        model = Model(self.table, self.sizes, self.counts, draw)
        return model

    def indices(self, *terms: int) -> Iterator[Index]:
        """Every index of the axes that terms depend on."""
        axes = sorted(frozenset[str]().union(*(self.table.axes(term) for term in terms)))
        for values in product(*(range(self.counts[axis]) for axis in axes)):
            yield dict(zip(axes, values, strict=True))

    def agree(self, left: int, right: int) -> bool:
        """
        Whether two terms have one shape and one value at every index, undefined together.

        Raises UndecidedError.
        """
        if self.table.shape(left) != self.table.shape(right):
            return False
        model = self.model
        return all(
            same(model.value(left, at), model.value(right, at)) for at in self.indices(left, right)
        )

    def satisfies(self, condition: Condition) -> bool:
        """
        Whether a side condition holds; those on values are checked on the values.

        Raises IllShapedError and UndecidedError.
        """
        if condition[0] in VALUE_CONDITIONS:
            return self.has_sign(str(condition[0]), self.build(condition[1]))
        return satisfies(self.table, condition, self.binding)

    def has_sign(self, predicate: str, term: int) -> bool:
        """
        Whether all defined values of a term have a sign, or all are defined for `total`.

        Raises UndecidedError.
        """
        model = self.model
        found = [n for at in self.indices(term) for n in numbers(model.value(term, at))]
        if predicate == "total":
            return all(number.defined for number in found)
        signs = (number.sign() for number in found if number.defined)
        allowed = {"pos": (1,), "nonneg": (0, 1), "nonzero": (-1, 1)}[predicate]
        return all(sign in allowed for sign in signs)


def holds(rule: Rule, instance: Instance) -> bool:
    """
    Whether a rule holds on an instance that meets its conditions: a side without a meaning is as
    wrong as another value. Raises UndecidedError.
    """
    if isinstance(rule, SignFact):
        return instance.has_sign(rule.predicate, instance.build(rule.term))
    try:
        right = instance.build(rule.right)
    except IllShapedError:
        return False
    return instance.agree(instance.build(rule.left), right)


@dataclass(frozen=True)
class Outcome:
    """How many instances were decided and left undecided, and the first on which a rule fails."""

    decided: int
    undecided: int
    failure: Instance | None

    @property
    def text(self) -> str:
        """The failure for people."""
        if self.failure is None:
            return ""
        table, bound = self.failure.table, self.failure.binding
        inputs = {str(term.arguments[0]): term for term in table.terms if term.head == "in"}
        shown = {
            name: f"{inputs[name].shape} over {sorted(inputs[name].axes)}"
            if name in inputs
            else str(value)
            for name, value in bound.items()
        }
        return f"{shown} at {dict(self.failure.sizes)}, {dict(self.failure.counts)}"


LEAST = 100
"""The instances of a rule with few shapes, dims and axes: these are visited again."""


def check(rule: Rule, seed: int, most: int | None = None, skip: Condition | None = None) -> Outcome:
    """
    Evaluates a rule at every assignment of small shapes, dims, axes and functions (or at random
    ones until `most` are decided), until it fails. `skip` is a condition of it to leave out.
    """
    when = [condition for condition in rule.when if condition != skip]
    decided = undecided = 0
    least = LEAST if most is None else min(LEAST, most)
    for instance in _instances(rule, when, seed, least, most):
        try:
            if not all(instance.satisfies(condition) for condition in when):
                continue
            if not holds(rule, instance):
                return Outcome(decided + 1, undecided, instance)
            decided += 1
        except UndecidedError:
            undecided += 1
        if decided >= least and decided == most:
            break
    return Outcome(decided, undecided, None)


def converse(axiom: Axiom) -> Axiom | None:
    """An axiom from right to left, or None if the right side does not bind all variables."""
    if not variables(axiom.left).keys() <= variables(axiom.right).keys():
        return None
    return replace(axiom, left_text=axiom.right_text, right_text=axiom.left_text)


def _instances(
    rule: Rule, when: Sequence[Condition], seed: int, least: int, most: int | None
) -> Iterator[Instance]:
    """
    An instance of every assignment on which the left side (or term) is well-shaped and all
    conditions but those on values hold, again and again while fewer than `least` were drawn.
    """
    left = rule.left if isinstance(rule, Axiom) else rule.term
    state = random.Random(repr((seed, left, when)))
    space = _Space(left, rule.when, when)
    drawn = 0
    for _ in range(_PASSES):
        for assignment in space.assignments(state, None if most is None else 40 * least):
            instance = space.draw(assignment, state)
            try:
                instance.build(left)
                possible = all(
                    satisfies(instance.table, condition, instance.binding)
                    for condition in when
                    if condition[0] not in VALUE_CONDITIONS
                )
            except IllShapedError:
                continue
            if possible:
                drawn += 1
                yield instance
            if most is not None and drawn >= _TRIES * most:
                return
        if drawn >= 2 * least:
            return


_PASSES = 60

_TRIES = 40
"""Instances that may be drawn for one that meets the conditions on values."""

Assignment = Mapping[str, tuple[Shape, frozenset[str]] | int | str | None]
"""Per variable: shape and axes of a term, a dim, an axis or function, nothing for a constant."""


@dataclass
class _Space:
    """The assignments of the variables of a pattern."""

    left: Pattern
    when: Sequence[Condition]
    kept: Sequence[Condition]
    """Those of `when` that elements should meet."""
    names: dict[str, str] = field(init=False)
    rank: int = field(init=False)
    cuts: bool = field(init=False)
    axes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.names = variables(self.left)
        for condition in self.when:
            for name, sort in variables(condition).items():
                self.names.setdefault(name, sort)
        batched = any(condition[0] in ("batch", "same-batch") for condition in self.when)
        dims = sum(sort == "dim" for sort in self.names.values())
        self.rank = 3 if batched or dims > 2 else 2
        self.cuts = "axis" in self.names.values() or self.rank == 2
        self.axes = _AXES if "axis" in self.names.values() else ()

    def assignments(self, state: random.Random, most: int | None) -> list[Assignment]:
        """All assignments in random order, or so many random ones."""
        choices = [self._choices(sort) for sort in self.names.values()]
        if most is not None:
            random_ones: list[Assignment] = [
                {name: state.choice(c) for name, c in zip(self.names, choices, strict=True)}
                for _ in range(most)
            ]
            return random_ones
        found: list[Assignment] = [
            dict(zip(self.names, values, strict=True))
            for values in product(*choices)
            if _canonical(values)
        ]
        state.shuffle(found)
        return found

    def _choices(self, sort: str) -> Sequence[tuple[Shape, frozenset[str]] | int | str | None]:
        match sort:
            case "term":
                return self._terms()
            case "dim":
                return range(1, self.rank + 1)
            case "axis":
                return self.axes
            case "window":
                return tuple(_WINDOWS)
            case "unary":
                return UNARY
            case "binary":
                return BINARY
            case _:
                return (None,)

    def _terms(self) -> list[tuple[Shape, frozenset[str]]]:
        """Shapes with a cut dim or none, each with the sets of axes it may depend on."""
        pool: list[Size] = [UNIT, ("p",), ("q",), *([_CUT] if self.cuts else [])]
        found: list[tuple[Shape, frozenset[str]]] = []
        for shape in product(pool, repeat=self.rank):
            if shape.count(_CUT) > 1:
                continue
            forced = frozenset(axis for size in shape for axis in size[1:])
            found += (
                (shape, forced | frozenset(more))
                for more in _subsets([axis for axis in self.axes if axis not in forced])
            )
        return found

    def draw(self, assignment: Assignment, state: random.Random) -> Instance:
        """An instance of an assignment with random constants, sizes and elements."""
        table = TermTable(windows=dict(_WINDOWS))
        for name in ("p", "q"):
            table.constants_symbol(name)
        binding: dict[str, int | str | Constant] = {}
        palettes: dict[str, Sequence[str | None]] = {}
        monomial = state.choice(_MONOMIALS)
        for name, value in assignment.items():
            match value:
                case (shape, axes):
                    binding[name] = table.input(name, shape, axes)
                    palettes[name] = self._palette(name, state)
                case None:
                    exponents = monomial if state.random() < 0.6 else state.choice(_MONOMIALS)
                    binding[name] = table.monomial(state.choice(_NUMBERS), exponents)
                case _:
                    binding[name] = value
        sizes, counts = state.choice(_SIZES), state.choice(_COUNTS)
        return Instance(table, binding, palettes, sizes, counts, state.getrandbits(32))

    def _palette(self, name: str, state: random.Random) -> tuple[str | None, ...]:
        """Elements that meet the conditions on a variable itself, or few instances would."""
        wanted = {str(c[0]) for c in self.kept if c[1:] == (name,)} & VALUE_CONDITIONS
        fitting = next((p for p in ("pos", "nonneg", "nonzero") if p in wanted), None)
        palette = _PALETTES[fitting or state.choice(tuple(_PALETTES))]
        undefined = "total" not in wanted and state.random() < 0.25
        return (*palette, None) if undefined else palette


def _subsets(items: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))


def _canonical(values: Sequence[tuple[Shape, frozenset[str]] | int | str | None]) -> bool:
    """Whether p comes before q, where no cut makes them differ: their names do not matter."""
    sizes = [
        size for value in values if isinstance(value, tuple) for size in value[0] if size != UNIT
    ]
    return _CUT in sizes or not sizes or sizes[0] == ("p",)
