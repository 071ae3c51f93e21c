"""
The layout table by evaluation: families of tiles of every layout through every operator on tiles.

What the table types is right on random operands; what it refuses is right under no layout, but for
the operators of `CAUTIOUS`, where a typed meeting would need more than the layouts to be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from prism.dialects.layouts import (
    PARTIAL,
    PARTIAL_EXP,
    PARTIAL_MAX,
    REPL,
    cut_dim,
    is_scaled,
    is_shift,
    layout_name,
    result_layout,
    scaled,
    shift,
)
from prism.dialects.operators import OPERATORS, Attributes, Kind, Operator
from prism.dialects.shapes import Shape, result_shape
from prism.dialects.sym_expr import SymExpr
from prism.verify.operator_values import OPERATOR_VALUES, Values

PARTS = 2
C = SymExpr.constant
DRAWS = 4

Array = np.ndarray
Case = tuple[tuple[tuple[int, ...], ...], Attributes]

CAUTIOUS = {
    # of a negative number they are undefined, so the maximum does not pass
    "log", "sqrt", "rsqrt", "pow",
    # a cut part of a merged or split dim is a part of the result only for some sizes
    "reshape",
    # the maximum of a cut or whole operand with one of size 1 there, and other chances of few elements
    "maximum", "at_least", "at_most", "relu",
    # times a positive constant a maximum passes, but the sign is that of the constant
    "scale",
}  # fmt: skip


def cases(operator: Operator) -> Iterator[Case]:
    """Shapes and attributes: rank 2, for some operators 3, with and without size 1."""
    full = (4, 6)
    match operator.kind:
        case Kind.UNARY:
            yield ((full,), Attributes())
        case Kind.SCALAR:
            yield ((full,), Attributes(constant=C(1) / 2))
        case Kind.BINARY:
            for left, right in product([(4, 6), (1, 6), (4, 1)], repeat=2):
                yield ((left, right), Attributes())
        case Kind.MATMUL:
            yield ((full, (6, 8)), Attributes())
            yield (((2, 4, 6), (2, 6, 8)), Attributes())
        case Kind.SUM | Kind.MAX:
            for dim in range(2):
                yield ((full,), Attributes(dim=dim))
        case Kind.TRANSPOSE:
            yield ((full,), Attributes(permutation=(1, 0)))
            yield (((2, 4, 6),), Attributes(permutation=(2, 0, 1)))
        case Kind.SLICE:
            yield ((full,), Attributes(dim=1, bounds=(C(1), C(5))))
            yield ((full,), Attributes(dim=0, bounds=(C(0), C(2))))
        case Kind.CONCAT:
            yield ((full, (4, 2)), Attributes(dim=1))
            yield ((full, (2, 6), full), Attributes(dim=0))
        case Kind.BROADCAST:
            yield (((4, 1),), Attributes(shape=(C(4), C(6))))
            yield ((full,), Attributes(shape=(C(4), C(6))))
        case _:
            yield ((full,), Attributes(shape=(C(4), C(2), C(3))))
            yield (((4, 2, 6),), Attributes(shape=(C(8), C(6))))


def family(whole: Array, layout: int, maximum: Array, random: np.random.Generator) -> list[Array]:
    """
    The tiles of a tensor under a layout. `maximum` stacks what each index has seen of a maximum.
    """
    if layout == REPL:
        return [whole] * PARTS
    if layout == PARTIAL:
        first = whole * 0.5 + random.uniform(-1, 1, whole.shape)
        return [first, whole - first]
    if layout == PARTIAL_MAX:
        chosen = random.integers(0, PARTS, whole.shape)
        lower = whole - random.uniform(0, 1, whole.shape)
        return [np.where(chosen == k, whole, lower) for k in range(PARTS)]
    late = maximum.max(axis=0) - maximum
    if layout == PARTIAL_EXP:
        first = whole * 0.5 + random.uniform(-1, 1, whole.shape)
        return [first * np.exp(late[0]), (whole - first) * np.exp(late[1])]
    dim = cut_dim(layout)
    tiles = np.split(whole, PARTS, axis=dim)
    if is_shift(layout):
        return [tile + d for tile, d in zip(tiles, late, strict=True)]
    if is_scaled(layout):
        return [tile * np.exp(d) for tile, d in zip(tiles, late, strict=True)]
    return tiles


def combined(tiles: list[Array], layout: int, maximum: Array) -> Array | None:
    """The whole tensor that tiles stand for under a layout; None if they do not agree."""
    late = maximum.max(axis=0) - maximum
    try:
        if layout == PARTIAL:
            return tiles[0] + tiles[1]
        if layout == PARTIAL_MAX:
            return np.maximum(tiles[0], tiles[1])
        if layout == PARTIAL_EXP:
            return tiles[0] * np.exp(-late[0]) + tiles[1] * np.exp(-late[1])
        if layout == REPL:
            return tiles[0] if np.allclose(tiles[0], tiles[1], equal_nan=True) else None
        if is_shift(layout):
            tiles = [tile - d for tile, d in zip(tiles, late, strict=True)]
        elif is_scaled(layout):
            tiles = [tile * np.exp(-d) for tile, d in zip(tiles, late, strict=True)]
        return np.concatenate(tiles, axis=cut_dim(layout))
    except ValueError:
        return None


def symbolic(shape: tuple[int, ...]) -> Shape:
    return tuple(map(C, shape))


def apply(operator: Operator, tiles: list[Array], wholes: list[Shape], given: Attributes) -> Array:
    """The operator on tiles; a broadcast or reshape keeps the sizes of a tile's own cut dims."""
    shape: tuple[int, ...] = ()
    if given.shape is not None:
        shape = tuple(int(size.evaluate({})) for size in given.shape)
        tile = tiles[0].shape
        if operator.kind is Kind.BROADCAST:
            shape = tuple(
                s if w == C(1) else t for s, w, t in zip(shape, wholes[0], tile, strict=True)
            )
        elif tile[0] * 2 == wholes[0][0].evaluate({}):
            shape = (shape[0] // 2, *shape[1:])
        elif tile[-1] * 2 == wholes[0][-1].evaluate({}):
            shape = (*shape[:-1], shape[-1] // 2)
    bounds = given.bounds or (C(0), C(0))
    values = Values(
        dim=given.dim or 0,
        constant=0.5,
        bounds=(float(bounds[0].evaluate({})), float(bounds[1].evaluate({}))),
        permutation=given.permutation or (),
        shape=shape,
    )
    return OPERATOR_VALUES[operator.name](tiles, values)


def right_layouts(
    operator: Operator, case: Case, layouts: tuple[int, ...], random: np.random.Generator
) -> set[int]:
    """The layouts under which the results of tiles combine to the whole result in all draws."""
    shapes, given = case
    wholes = [symbolic(shape) for shape in shapes]
    rank = len(result_shape(operator, wholes, given))
    right = {REPL, PARTIAL, PARTIAL_MAX, *range(rank)}
    for _ in range(DRAWS):
        arrays = [random.uniform(-2, 2, shape) for shape in shapes]
        none = np.zeros((PARTS, *([1] * arrays[0].ndim)))
        expected = apply(operator, arrays, wholes, given)
        families = [family(a, la, none, random) for a, la in zip(arrays, layouts, strict=True)]
        try:
            results = [
                apply(operator, list(tiles), wholes, given) for tiles in zip(*families, strict=True)
            ]
        except ValueError:
            return set()
        for layout in tuple(right):
            whole = combined(results, layout, none)
            same = (
                whole is not None
                and whole.shape == expected.shape
                and np.allclose(whole, expected, equal_nan=True)
            )
            if not same:
                right.discard(layout)
    return right


ON_TILES = [operator for operator in OPERATORS.values() if operator.threadblock]


@pytest.mark.parametrize("operator", ON_TILES, ids=lambda operator: operator.name)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_meeting_is_typed_iff_tiles_combine_to_the_whole(operator: Operator) -> None:
    random = np.random.default_rng(3)
    typed = 0
    for shapes, given in cases(operator):
        wholes = [symbolic(shape) for shape in shapes]
        ones = [[size == 1 for size in shape] for shape in shapes]
        choices = [
            [REPL, PARTIAL, PARTIAL_MAX, *(d for d, size in enumerate(shape) if size != 1)]
            for shape in shapes
        ]
        for layouts in product(*choices):
            right = right_layouts(operator, (shapes, given), layouts, random)
            found = result_layout(operator, layouts, ones, given, wholes)
            message = f"{shapes} {given} {[layout_name(la) for la in layouts]}: {right}"
            if found is not None and is_shift(found):
                continue  # of which the tests below are
            if found is not None:
                assert found in right, message
                typed += 1
            elif operator.name not in CAUTIOUS:
                assert not right, message
    assert typed > 0


# The stable softmax: two operands that are corrected by one maximum, whose tiles have size 1 in the
# cut dim and vary in the others.


def stable_cases() -> Iterator[tuple[Operator, Case, tuple[int, ...]]]:
    """Every meeting of a shift, scaled or PARTIAL_EXP operand with any layout."""
    for operator in ON_TILES:
        for shapes, given in cases(operator):
            if operator.kind in (Kind.RESHAPE, Kind.BROADCAST) or 1 in shapes[0]:
                continue
            ranks = [len(shape) for shape in shapes]
            choices = [
                [
                    REPL,
                    PARTIAL,
                    PARTIAL_EXP,
                    *range(r),
                    *map(shift, range(r)),
                    *map(scaled, range(r)),
                ]
                for r in ranks
            ]
            for layouts in product(*choices):
                fits = all(
                    (dim := cut_dim(la)) is None or shape[dim] != 1
                    for la, shape in zip(layouts, shapes, strict=True)
                )
                if fits and any(la <= PARTIAL_EXP for la in layouts):
                    yield operator, (shapes, given), layouts


def maximum_shape(shape: tuple[int, ...], layout: int) -> tuple[int, ...]:
    """A maximum's shape for tiles of a layout: size 1 in the cut dim, for PARTIAL_EXP in the last."""
    dim = cut_dim(layout)
    dim = len(shape) - 1 if dim is None else dim
    return (*shape[:dim], 1, *shape[dim + 1 :])


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_what_the_stable_softmax_rules_type_is_right() -> None:
    random = np.random.default_rng(5)
    typed: set[str] = set()
    for operator, (shapes, given), layouts in stable_cases():
        wholes = [symbolic(shape) for shape in shapes]
        ones = [[size == 1 for size in shape] for shape in shapes]
        found = result_layout(operator, layouts, ones, given, wholes)
        if found is None:
            continue
        typed.add(operator.name)
        owed = [(shape, la) for shape, la in zip(shapes, layouts, strict=True) if la <= PARTIAL_EXP]
        arrays = [random.uniform(-2, 2, shape) for shape in shapes]
        maximum = random.uniform(-1, 1, (PARTS, *maximum_shape(*owed[0])))
        families = [family(a, la, maximum, random) for a, la in zip(arrays, layouts, strict=True)]
        results = [
            apply(operator, list(tiles), wholes, given) for tiles in zip(*families, strict=True)
        ]
        whole = combined(results, found, maximum)
        message = f"{operator.name} {shapes} {[layout_name(la) for la in layouts]}"
        assert whole is not None, message
        np.testing.assert_allclose(
            whole, apply(operator, arrays, wholes, given), err_msg=message, rtol=1e-9
        )
    assert typed == {"exp", "neg", "scale", "add", "sub", "mul", "div", "sum", "matmul"}


def test_a_score_less_a_partial_maximum_is_shifted() -> None:
    random = np.random.default_rng(7)
    whole = random.uniform(-2, 2, (4, 6))
    maximum = np.stack([t.max(axis=1, keepdims=True) for t in np.split(whole, PARTS, axis=1)])
    tiles = [t - m for t, m in zip(np.split(whole, PARTS, axis=1), maximum, strict=True)]
    sub = OPERATORS["sub"]
    layout = result_layout(sub, [1, PARTIAL_MAX], [[False, False], [False, True]])
    assert layout == shift(1)
    np.testing.assert_allclose(
        combined(tiles, layout, maximum), whole - whole.max(axis=1, keepdims=True)
    )
    assert result_layout(sub, [0, PARTIAL_MAX], [[False, False], [False, True]]) is None
    assert result_layout(sub, [1, PARTIAL_MAX], [[False, False], [False, False]]) is None
    assert result_layout(OPERATORS["add"], [1, PARTIAL_MAX], [[False] * 2, [False, True]]) is None


@pytest.mark.parametrize(
    ("name", "layouts", "dim"),
    [
        ("sum", [scaled(1)], 0),  # the maximum may vary in dim 0
        ("sum", [PARTIAL_EXP], 0),
        ("max", [scaled(1)], 1),
        ("exp", [scaled(1)], None),
        ("shift", [scaled(1)], None),
        ("relu", [PARTIAL_EXP], None),
        ("mul", [scaled(1), scaled(1)], None),
        ("mul", [scaled(1), PARTIAL], None),
        ("div", [REPL, scaled(1)], None),
        ("add", [scaled(1), REPL], None),
        ("add", [shift(1), shift(1)], None),
        ("matmul", [scaled(1), scaled(0)], None),
        ("matmul", [scaled(0), REPL], None),
        ("matmul", [PARTIAL_EXP, REPL], None),
        ("transpose", [scaled(1)], None),
    ],
)
def test_refused_with_a_correction_owed(name: str, layouts: list[int], dim: int | None) -> None:
    ones = [[False, False]] * len(layouts)
    given = Attributes(dim=dim, permutation=(1, 0) if name == "transpose" else None)
    assert result_layout(OPERATORS[name], layouts, ones, given) is None


def test_names() -> None:
    layouts = (2, REPL, PARTIAL, PARTIAL_MAX, PARTIAL_EXP, shift(1), scaled(0))
    assert [layout_name(layout) for layout in layouts] == [
        "shard(2)", "repl", "partial", "partial_max", "partial_exp", "shift(1)", "scaled(0)",
    ]  # fmt: skip
    assert [cut_dim(layout) for layout in layouts] == [2, None, None, None, None, 1, 0]
