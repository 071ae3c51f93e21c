"""Maps, constraints, tensor and tile types: exact values, and text that parses back."""

import io
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import f16, f32
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from prism.dialects.layouts import PARTIAL, REPL, layout_name
from prism.dialects.sym import (
    GRID_AXES,
    LOOP_AXES,
    AxisMap,
    Constraint,
    MapAttr,
    Sym,
    shape_of,
    tensor_type,
)
from prism.dialects.sym_expr import SymExpr
from prism.dialects.threadblock import Threadblock, TileType, cut_shape

N, D, ONE = SymExpr.symbol("n"), SymExpr.symbol("d"), SymExpr.constant(1)
X, Y, I = (SymExpr.symbol(name) for name in ("grid.x", "grid.y", "loop.i"))  # noqa: E741


def roundtrip(attribute: Attribute) -> Attribute:
    context = Context()
    context.load_dialect(Sym)
    context.load_dialect(Threadblock)
    stream = io.StringIO()
    Printer(stream).print_attribute(attribute)
    return Parser(context, stream.getvalue()).parse_attribute()


axes = st.sampled_from((*GRID_AXES, *LOOP_AXES))
entries = st.one_of(
    st.integers(0, 3),
    st.lists(st.from_regex(r"m[0-9]{1,3}", fullmatch=True), min_size=1).map(tuple),
)
maps = st.dictionaries(axes, entries).map(lambda d: AxisMap(tuple(d.items())))


@settings(max_examples=50, deadline=None)
@given(maps)
def test_maps_parse_back(value: AxisMap) -> None:
    attribute = MapAttr(value)
    assert roundtrip(attribute) == attribute
    assert {**attribute.cuts, **attribute.variables} == dict(value.entries)
    assert attribute.concrete == (not attribute.variables)


sizes = st.sampled_from([ONE, SymExpr.constant(128), N, D, N * D, N + 1])


@settings(max_examples=50, deadline=None)
@given(st.lists(sizes, max_size=4))
def test_tensor_types_keep_their_shape(shape: list[SymExpr]) -> None:
    type_ = tensor_type(shape, f16)
    assert shape_of(type_) == tuple(shape)
    assert roundtrip(type_) == type_


@settings(max_examples=50, deadline=None)
@given(st.permutations(["x", "y", "i"]), st.booleans())
def test_tile_types_parse_back_and_show_their_layout(order: list[str], owed: bool) -> None:
    first, second, third = order
    cuts = AxisMap(((first, 0), (second, 1)))
    tile = TileType(cut_shape((N, D), cuts), f32, [third] if owed else [])
    assert roundtrip(tile) == tile
    assert tile.layout(first) == 0
    assert tile.layout(second) == 1
    assert tile.layout(third) == (PARTIAL if owed else REPL)
    assert tile.whole == (N, D)


def test_cut_shape() -> None:
    assert cut_shape((N, D), AxisMap((("x", 1), ("i", 1)))) == (N, D / (X * I))
    assert cut_shape((N, D), AxisMap(())) == (N, D)
    symbolic = cut_shape((N, ONE), AxisMap((("x", ("m0", "m1")),)))
    assert symbolic == (N / SymExpr.symbol("grid.x^m0"), ONE)


@pytest.mark.parametrize(
    ("shape", "entries", "message"),
    [
        ((N, D), (("x", 2),), "axis x: expected a dim of .n, d., found 2"),
        ((N, ONE), (("x", 1),), "axis x: expected a dim of size other than 1 of .n, 1., found 1"),
        ((N, D), (("x", ("m0",)),), "axis x: expected 2 Boolean variables"),
    ],
)
def test_maps_that_do_not_fit(
    shape: tuple[SymExpr, ...], entries: tuple[tuple[str, int]], message: str
) -> None:
    with pytest.raises(VerifyException, match=message):
        cut_shape(shape, AxisMap(entries))


@pytest.mark.parametrize(
    ("dims", "partial", "message"),
    [
        ((N / X, D / X), (), "expected grid.x to cut at most one dim"),
        ((N / X, D), ("x",), "axis x: expected a cut or a sum owed, found both"),
        ((N, D), ("w",), "expected the name of an axis, found w"),
    ],
)
def test_tiles_that_no_layout_has(
    dims: tuple[SymExpr, ...], partial: tuple[str, ...], message: str
) -> None:
    with pytest.raises(VerifyException, match=message):
        TileType(dims, f32, partial)


@pytest.mark.parametrize(
    ("kind", "true_rows"),
    [
        ("at_most_one", {(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)}),
        ("equal", {(0, 0, 0), (1, 1, 1)}),
        ("never", {(0, 0, 0)}),
        ("some", set(product((0, 1), repeat=3)) - {(0, 0, 0)}),
    ],
)
def test_constraints_by_truth_table(kind: str, true_rows: set[tuple[int, ...]]) -> None:
    constraint = Constraint(kind, ("a", "b", "c"))
    rows = {
        row
        for row in product((0, 1), repeat=3)
        if constraint.holds(dict(zip("abc", map(bool, row), strict=True)))
    }
    assert rows == true_rows


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(axes, st.sampled_from(["partial", "partial_max", "partial_exp"])),
    st.sampled_from(["shift", "scaled", None]),
)
def test_owed_kinds_parse_back_and_are_layouts(owed: dict[str, str], cut: str | None) -> None:
    owed.pop("z", None)
    kinds = {**owed, "z": cut} if cut is not None else owed
    tile = TileType((N, D / SymExpr.symbol("grid.z")), f32, owed=kinds)
    assert roundtrip(tile) == tile
    assert tile.owed_kinds == kinds
    names = {axis: layout_name(tile.layout(axis)) for axis in (*GRID_AXES, *LOOP_AXES)}
    assert names.pop("z") == f"{cut or 'shard'}(1)"
    assert names == {axis: owed.get(axis, "repl") for axis in names}
    assert tile.rescaled == any(kind not in ("partial", "partial_max") for kind in kinds.values())
    assert tile.without("z").owed_kinds == owed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!threadblock.tile<[n], f32, minimum [i]>", "expected one of partial"),
        ("!threadblock.tile<[n], f32, partial [i], partial_max [i]>", "axis 'i' occurs twice"),
        ("!threadblock.tile<[n / loop.i], f32, partial_max [i]>", "expected a cut or partial_max"),
        ("!threadblock.tile<[n], f32, scaled [i]>", "expected a cut for scaled, found none"),
        ("!threadblock.tile<[n], f32, partial_exp [w]>", "expected the name of an axis, found w"),
        ("#sym.map<{x = new, y = new}>", "a map has at most one new dim"),
    ],
)
def test_refused_text(text: str, message: str) -> None:
    context = Context()
    context.load_dialect(Sym)
    context.load_dialect(Threadblock)
    with pytest.raises((ParseError, VerifyException), match=message):
        Parser(context, text).parse_attribute()


def test_a_new_dim_parses_back() -> None:
    attribute = MapAttr.of({"x": 1}, new="y")
    assert str(attribute) == "#sym.map<{y = new, x = 1}>"
    assert roundtrip(attribute) == attribute
    assert attribute.new_axis == "y"
    assert attribute.cuts == {"x": 1}
    assert attribute != MapAttr.of({"x": 1})
