"""The type of a family of tiles, which shows its layout on every axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple, cast

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from prism.dialects.layouts import PARTIAL, PARTIAL_EXP, PARTIAL_MAX, REPL, scaled, shift
from prism.dialects.shapes import ONE
from prism.dialects.sym import (
    GRID_AXES,
    LOOP_AXES,
    AxisMap,
    ShapeAttr,
    axis_parameter,
    is_axis_parameter,
    shape_text,
)
from prism.dialects.sym_expr import SymExpr
from prism.dialects.sym_syntax import parse_expr

SUM = "partial"
"""The kind of an axis over which the sum of the tiles is owed."""

OWED_WHOLE = {SUM: PARTIAL, "partial_max": PARTIAL_MAX, "partial_exp": PARTIAL_EXP}
"""What may be owed over an axis that cuts no dim, and the layout."""

OWED_CUT = {"shift": shift, "scaled": scaled}
"""What may be owed over an axis that cuts a dim, and the layout of that dim."""


@irdl_attr_definition
class OwedAttr(Data[tuple[tuple[str, str], ...]]):
    """
    Pairs of an axis and what is owed over it; a part of a tile's type, printed there.

    Syntax alone: `#threadblock.owed<partial [i], partial_max [j]>`.
    """

    name = "threadblock.owed"

    KINDS: ClassVar[tuple[str, ...]] = (*OWED_WHOLE, *OWED_CUT)

    @classmethod
    def of(cls, owed: Mapping[str, str]) -> OwedAttr:
        """The attribute in its normal form: by kind, within a kind in the given order."""
        return cls(tuple((a, k) for kind in cls.KINDS for a, k in owed.items() if k == kind))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, str], ...]:
        with parser.in_angle_brackets():
            return parse_owed(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.text}>")

    @property
    def text(self) -> str:
        """`partial [i], partial_max [j]`."""
        lists = {kind: [a for a, k in self.data if k == kind] for kind in self.KINDS}
        return ", ".join(f"{kind} [{', '.join(axes)}]" for kind, axes in lists.items() if axes)


def parse_owed(parser: AttrParser) -> tuple[tuple[str, str], ...]:
    """Parses `partial [i], partial_max [j]`, at least one list."""
    owed: dict[str, str] = {}
    while True:
        start = parser.pos
        kind = parser.parse_identifier(context_msg=": what a tile owes")
        if kind not in OwedAttr.KINDS:
            kinds = ", ".join(OwedAttr.KINDS)
            parser.raise_error(f"expected one of {kinds}; found '{kind}'", start, parser.pos)
        axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
        for axis in axes:
            if axis in owed:
                parser.raise_error(f"axis '{axis}' occurs twice in a tile", start, parser.pos)
            owed[axis] = kind
        if parser.parse_optional_punctuation(",") is None:
            return OwedAttr.of(owed).data


class _Derived(NamedTuple):
    """What follows from a tile type."""

    symbolic: bool
    whole: tuple[SymExpr, ...]
    ones: tuple[bool, ...]
    layouts: dict[str, int]

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(dims: tuple[SymExpr, ...], pairs: tuple[tuple[str, str], ...]) -> _Derived:
        """For the candidates of a workload have few types between them."""
        owed = dict(pairs)
        cut = {name: d for d, dim in enumerate(dims) for name in dim.symbols()}
        layouts = {axis: OWED_WHOLE[kind] for axis, kind in owed.items() if kind in OWED_WHOLE}
        for axis in (*GRID_AXES, *LOOP_AXES):
            dim = cut.get(axis_parameter(axis))
            if dim is not None and axis not in layouts:
                layouts[axis] = OWED_CUT[owed[axis]](dim) if axis in owed else dim
        whole = tuple(dim.with_ones(is_axis_parameter) for dim in dims)
        ones = tuple(dim == ONE for dim in whole)
        return _Derived(any("^" in name for name in cut), whole, ones, layouts)


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """
    A family of tiles, one per index of the axes: the shape of a tile, its element type, and what is
    still owed over axes: the sum of the tiles (`partial`), their maximum (`partial_max`), or for
    the stable softmax a correction by a maximum (`shift`, `scaled`, `partial_exp`).

    Syntax: `!threadblock.tile<[n, d / grid.x], f32, partial [i]>`.
    """

    name = "threadblock.tile"

    shape: ShapeAttr
    element_type: Attribute
    owed: OwedAttr

    def __init__(
        self,
        shape: Sequence[SymExpr],
        element_type: Attribute = f32,
        partial: Sequence[str] = (),
        *,
        owed: Mapping[str, str] | None = None,
    ) -> None:
        """`partial` are axes over which a sum is owed; `owed` has axes with other kinds too."""
        kinds = dict.fromkeys(partial, SUM) | dict(owed or {})
        super().__init__(ShapeAttr(tuple(shape)), element_type, OwedAttr.of(kinds))

    @property
    def dims(self) -> tuple[SymExpr, ...]:
        """The size of a tile in each dim."""
        return self.shape.data

    @property
    def partial(self) -> tuple[str, ...]:
        """The axes over which a sum is owed, in order."""
        return tuple(axis for axis, kind in self.owed.data if kind == SUM)

    @property
    def owed_kinds(self) -> dict[str, str]:
        """What is owed over each axis over which something is."""
        return dict(self.owed.data)

    @property
    def _derived(self) -> _Derived:
        """Computed once: verifiers ask several times for the same type of an op's results."""
        memo = cast("dict[str, object]", self.__dict__)
        if "_memo" not in memo:
            memo["_memo"] = _Derived.of(self.dims, self.owed.data)
        return cast("_Derived", memo["_memo"])

    @property
    def symbolic(self) -> bool:
        """Whether the tile's shape depends on Boolean map variables."""
        return self._derived.symbolic

    @property
    def whole(self) -> tuple[SymExpr, ...]:
        """The shape of the whole tensor that the tiles make up."""
        return self._derived.whole

    @property
    def ones(self) -> tuple[bool, ...]:
        """Per dim whether the whole tensor has size 1."""
        return self._derived.ones

    @property
    def rescaled(self) -> bool:
        """Whether the tiles owe a correction by a maximum over some axis."""
        return any(kind not in (SUM, "partial_max") for _, kind in self.owed.data)

    def layout(self, axis: str) -> int:
        """The layout on one axis: see `prism.dialects.layouts`."""
        return self._derived.layouts.get(axis, REPL)

    def without(self, axis: str) -> TileType:
        """The type of f32 tiles that owe nothing over an axis and else the same."""
        owed = {a: kind for a, kind in self.owed.data if a != axis}
        return TileType(self.dims, f32, owed=owed)

    def verify(self) -> None:
        parameters = [
            name for dim in self.dims for name in filter(is_axis_parameter, dim.symbols())
        ]
        for name in parameters:
            if parameters.count(name) > 1 and "^" not in name:
                raise VerifyException(
                    f"tile {shape_text(self.dims)}: expected {name} to cut at most one dim"
                )
        for axis, kind in self.owed.data:
            if axis not in GRID_AXES and axis not in LOOP_AXES:
                raise VerifyException(f"{kind}: expected the name of an axis, found {axis}")
            if kind in OWED_WHOLE and axis_parameter(axis) in parameters:
                what = "a sum" if kind == SUM else kind
                raise VerifyException(f"axis {axis}: expected a cut or {what} owed, found both")
            if kind in OWED_CUT and axis_parameter(axis) not in parameters:
                raise VerifyException(f"axis {axis}: expected a cut for {kind}, found none")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parse_expr(parser)
            )
            parser.parse_punctuation(",")
            element_type = parser.parse_type()
            owed: tuple[tuple[str, str], ...] = ()
            if parser.parse_optional_punctuation(","):
                owed = parse_owed(parser)
        return (ShapeAttr(tuple(shape)), element_type, OwedAttr(owed))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{shape_text(self.dims)}, ")
            printer.print_attribute(self.element_type)
            if self.owed.data:
                printer.print_string(f", {self.owed.text}")


def cut_shape(shape: Sequence[SymExpr], cuts: AxisMap) -> tuple[SymExpr, ...]:
    """
    The shape of a tile of a tensor under a map: each dim divided by the axes that cut it, an axis
    with a Boolean variable to the power of that variable.

    Raises VerifyException if an entry does not fit the tensor's rank or cuts a dim of size 1.
    """
    dims = list(shape)
    for axis, entry in cuts.entries:
        parameter = axis_parameter(axis)
        if isinstance(entry, int):
            if entry >= len(dims):
                raise VerifyException(
                    f"axis {axis}: expected a dim of {shape_text(shape)}, found {entry}"
                )
            if shape[entry] == ONE:
                raise VerifyException(
                    f"axis {axis}: expected a dim of size other than 1 of {shape_text(shape)}, "
                    f"found {entry}"
                )
            dims[entry] /= SymExpr.symbol(parameter)
        elif len(entry) != len(dims):
            raise VerifyException(
                f"axis {axis}: expected {len(dims)} Boolean variables, one per dim of "
                f"{shape_text(shape)}, found {len(entry)}"
            )
        else:
            for dim, variable in enumerate(entry):
                if shape[dim] != ONE:
                    dims[dim] /= SymExpr.symbol(f"{parameter}^{variable}")
    return tuple(dims)
