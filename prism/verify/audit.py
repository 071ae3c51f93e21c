"""
Instances of axioms at small shapes, and whether an axiom holds on one: what the audit consists of.

Every term variable stands for any term: of any shape, cut or not, that depends on axes or does
not, that may be undefined somewhere. `Model` judges, which does not know the axioms.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from prism.verify.axioms import Axiom
from prism.verify.denotation import Array, Index, Model
from prism.verify.language import BINARY, FUNCTION_FACTS, UNARY, Pattern, variables
from prism.verify.sign_facts import SignFact
from prism.verify.terms import UNIT, Constant, IllShapedError, Shape, TermTable

Binding = Mapping[str, int | str | Constant]
"""A value per variable of an axiom: a term or dim, an axis or function, a constant."""

Condition = tuple[Pattern, ...]

_AXES = ("a0", "a1")

_SIZES = ({"p": 2, "q": 3}, {"p": 3, "q": 1}, {"p": 2, "q": 2}, {"p": 1, "q": 4})
"""The sizes p and q also coincide and are 1 by accident."""

_COUNTS = ({"a0": 2, "a1": 3}, {"a0": 3, "a1": 2})

_NUMBERS = tuple(Fraction(n) for n in ("0", "1", "2", "-1", "-3", "1/2"))

_PALETTES = ((-2.0, -1.0, 0.0, 1.0, 2.0), (0.0, 1.0, 2.0, 3.0), (0.5, 1.0, 2.0), (-2.0, -0.5, 1.0))
"""What elements are drawn from: any, nonnegative, positive, nonzero."""

_UNDEFINED = float("nan")


@dataclass
class Instance:
    """Term variables bound to inputs of one table, all other variables to values."""

    table: TermTable
    binding: Binding
    palettes: Mapping[str, Sequence[float]]
    sizes: Mapping[str, int]
    counts: Mapping[str, int]
    seed: int

    def build(self, pattern: Pattern) -> int:
        """The term of a pattern under the binding. Raises IllShapedError."""
        return build_term(self.table, pattern, self.binding)

    def model(self) -> Model:
        """Seeded arrays for the inputs, other ones at every index of the axes they depend on."""
        entries = {str(term.arguments[0]): term for term in self.table.terms if term.head == "in"}

        def draw(name: str, index: Index) -> Array:
            entry = entries[name]
            at = tuple(sorted((axis, index[axis]) for axis in entry.axes))
            state = random.Random(repr((self.seed, name, at)))
            shape = [model.extent(size, index) for size in entry.shape]
            count = int(np.prod(shape))
            palette = self.palettes[name]
            drawn = [state.choice(palette) + _wiggle(state, palette) for _ in range(count)]
            return np.array(drawn, dtype=np.float64).reshape(shape)

        model = Model(self.table, self.sizes, self.counts, draw)
        return model

    def indices(self) -> Iterator[Index]:
        """Every index of the axes."""
        for values in product(*(range(self.counts[axis]) for axis in _AXES)):
            yield dict(zip(_AXES, values, strict=True))

    def agree(self, left: int, right: int) -> bool:
        """Whether two terms have one shape and one value at every index, undefined together."""
        if self.table.shape(left) != self.table.shape(right):
            return False
        model = self.model()
        return all(
            np.allclose(model.value(left, at), model.value(right, at), 1e-9, 1e-9, equal_nan=True)
            for at in self.indices()
        )

    def satisfies(self, condition: Condition) -> bool:
        """Whether a side condition holds; those on values are checked on the values."""
        name, *arguments = condition
        table, bound = self.table, self.binding
        match str(name), arguments:
            case "unit", (a, d):
                return table.shape(self.build(a))[-_dim(bound, d)] == UNIT
            case "uncut", (a, d):
                return len(table.shape(self.build(a))[-_dim(bound, d)]) == 1
            case "free", (a, d, axis):
                return bound[str(axis)] not in table.shape(self.build(a))[-_dim(bound, d)][1:]
            case "same", (a, b, d):
                dim = _dim(bound, d)
                return table.shape(self.build(a))[-dim] == table.shape(self.build(b))[-dim]
            case "same-shape", (a, b):
                return table.shape(self.build(a)) == table.shape(self.build(b))
            case "same-batch", (a, b):
                return table.shape(self.build(a))[:-2] == table.shape(self.build(b))[:-2]
            case "closed", (a, axis):
                return bound[str(axis)] not in table.axes(self.build(a))
            case (("ne-axis" | "ne-dim"), (a, b)):
                return bound[str(a)] != bound[str(b)]
            case "batch", (d,):
                return _dim(bound, d) >= 3
            case ("pos" | "nonneg" | "nonzero" | "total") as predicate, (a,):
                return self.has_sign(predicate, self.build(a))
            case ("nz" | "ge0" | "gt0") as test, (c,):
                value = _constant(self.table, c, bound).value
                return {"nz": value != 0, "ge0": value >= 0, "gt0": value > 0}[test]
            case "same-mono", (c, e):
                left, right = (_constant(self.table, x, bound) for x in (c, e))
                return left.sizes == right.sizes
            case predicate, (function,):
                return bound[str(function)] in FUNCTION_FACTS[predicate]
            case _:
                raise ValueError(f"unknown condition {condition}")

    def has_sign(self, predicate: str, term: int) -> bool:
        """Whether all defined values of a term have a sign, or all are defined for `total`."""
        model = self.model()
        values = [model.value(term, at) for at in self.indices()]
        if predicate == "total":
            return not any(np.isnan(value).any() for value in values)
        test = {"pos": np.greater, "nonneg": np.greater_equal, "nonzero": np.not_equal}[predicate]
        return all(bool(np.all(test(value[~np.isnan(value)], 0))) for value in values)


def _wiggle(state: random.Random, palette: Sequence[float]) -> float:
    """Makes elements differ, within the signs of the palette and not always without its zeros."""
    return state.choice((0.0, 0.125)) if min(palette) >= 0 else 0.0


def instances(
    rule: Axiom | SignFact, seed: int, number: int, skip: Condition | None = None
) -> Iterator[Instance]:
    """
    Up to `number` instances on which the left side (or term) is well-shaped and every condition
    holds but `skip`, drawn from all shapes, dims, axes and functions of a kind.
    """
    left = rule.left if isinstance(rule, Axiom) else rule.term
    state = random.Random(repr((seed, left, skip)))
    names = variables(left)
    conditions = [condition for condition in rule.when if condition != skip]
    batched = any(condition[0] in ("batch", "same-batch") for condition in rule.when)
    rank = 3 if batched else 2
    uses_axes = "axis" in names.values() or any(c[0] == "uncut" for c in rule.when)
    found = 0
    for _ in range(number * 400):
        if found == number:
            return
        instance = _draw(state, names, rank, uses_axes)
        try:
            instance.build(left)
            holds = all(instance.satisfies(condition) for condition in conditions)
        except IllShapedError:
            continue
        if holds:
            found += 1
            yield instance


def _draw(state: random.Random, names: Mapping[str, str], rank: int, uses_axes: bool) -> Instance:
    table = TermTable()
    for name in ("p", "q"):
        table.constants_symbol(name)
    binding: dict[str, int | str | Constant] = {}
    palettes: dict[str, Sequence[float]] = {}
    # Half of the instances have one palette of sizes only, or few would be well-shaped.
    pool = state.choice(([UNIT, ("p",)], [UNIT, ("p",), ("q",)], [("p",)]))
    cut = [("p", "a0")] if uses_axes and state.random() < 0.3 else []
    for name, sort in names.items():
        match sort:
            case "term":
                shape: Shape = tuple(state.choice([*pool, *cut]) for _ in range(rank))
                axes = frozenset(axis for size in shape for axis in size[1:])
                if uses_axes:
                    axes |= {axis for axis in _AXES if state.random() < 0.3}
                binding[name] = table.input(name, shape, axes)
                undefined = (_UNDEFINED,) if state.random() < 0.25 else ()
                palettes[name] = (*state.choice(_PALETTES), *undefined)
            case "dim":
                binding[name] = state.randint(1, rank)
            case "axis":
                binding[name] = state.choice(_AXES)
            case "unary":
                binding[name] = state.choice(UNARY)
            case "binary":
                binding[name] = state.choice(BINARY)
            case _:
                exponents = state.choice(({}, {}, {"p": 1}, {"q": -1}, {"p": 1, "q": -1}))
                binding[name] = table.monomial(state.choice(_NUMBERS), exponents)
    return Instance(
        table, binding, palettes, state.choice(_SIZES), state.choice(_COUNTS), state.getrandbits(32)
    )


def _dim(binding: Binding, dim: Pattern) -> int:
    value = binding[dim] if isinstance(dim, str) else dim
    if not isinstance(value, int):
        raise ValueError(f"no dim: {dim}")
    return value


def _constant(table: TermTable, pattern: Pattern, binding: Binding) -> Constant:
    match pattern:
        case int():
            return Constant(Fraction(pattern))
        case str():
            value = binding[pattern]
            if isinstance(value, Constant):
                return value
        case ("*", c, e):
            left, right = _constant(table, c, binding), _constant(table, e, binding)
            return _normal(left.value * right.value, left.sizes * right.sizes)
        case ("+", c, e):
            left, right = _constant(table, c, binding), _constant(table, e, binding)
            return _normal(left.value + right.value, left.sizes)
        case ("/", c):
            constant = _constant(table, c, binding)
            if constant.value == 0:
                raise IllShapedError("division by zero")
            return Constant(1 / constant.value, 1 / constant.sizes)
        case _:
            pass
    raise ValueError(f"no constant: {pattern}")


def _normal(value: Fraction, sizes: Fraction) -> Constant:
    return Constant(value, sizes if value else Fraction(1))


def build_term(table: TermTable, pattern: Pattern, binding: Binding) -> int:
    """The term of a pattern with its variables bound. Raises IllShapedError."""

    def term(part: Pattern) -> int:
        return build_term(table, part, binding)

    def name(part: Pattern) -> str:
        return str(binding.get(str(part), part))

    match pattern:
        case str():
            value = binding[pattern]
            if isinstance(value, int):
                return value
        case ("un", f, a):
            return table.unary(name(f), term(a))
        case ("bin", g, a, b):
            return table.binary(name(g), term(a), term(b))
        case ("scale", c, a):
            return table.scale(_constant(table, c, binding), term(a))
        case ("shift", c, a):
            return table.shift(_constant(table, c, binding), term(a))
        case ("matmul", a, b):
            return table.matmul(term(a), term(b))
        case ("sum", d, a):
            return table.sum(_dim(binding, d), term(a))
        case ("part", a, d, axis):
            return table.part(term(a), _dim(binding, d), name(axis))
        case ("comb", a, d, axis):
            return table.comb(term(a), _dim(binding, d), name(axis))
        case ("red", a, axis):
            return table.red(term(a), name(axis))
        case _:
            pass
    raise ValueError(f"no term: {pattern}")
