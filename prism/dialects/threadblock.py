"""
The `threadblock` dialect: what one block does with tiles.

A tile's type shows its layout on every axis: `!threadblock.tile<[n, d / grid.x], f32, partial [i]>`
is cut in dim 1 by the grid axis x, its sum over the loop axis i is still owed, and every other axis
holds the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import Float32Type, StringAttr
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from prism.dialects.kernel import GraphDefOp
from prism.dialects.layouts import (
    PARTIAL,
    PARTIAL_EXP,
    PARTIAL_MAX,
    REPL,
    cut_dim,
    layout_name,
    result_layout,
)
from prism.dialects.operator_op import OperatorOp, make_operator_op
from prism.dialects.operators import OPERATORS
from prism.dialects.shapes import result_shape
from prism.dialects.sym import (
    SPLIT,
    AxisMap,
    MapAttr,
    as_tensor,
    axis_parameter,
    parse_map,
    shape_of,
    shape_text,
)
from prism.dialects.sym_expr import SymExpr
from prism.dialects.tile_type import OwedAttr, TileType, cut_shape

_OWED = (PARTIAL, PARTIAL_MAX, PARTIAL_EXP)
"""The layouts of an axis that an output may write as a new dim."""


def _tile(name: str, value: SSAValue) -> TileType:
    if not isinstance(value.type, TileType):
        raise VerifyException(f"{name}: expected a !threadblock.tile, found {value.type}")
    return value.type


def _expect(name: str, expected: Attribute, found: Attribute) -> None:
    if expected != found:
        raise VerifyException(f"{name}: expected {expected}, found {found}")


def graph_axes(op: Operation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The grid and loop axes of the graph around an op."""
    graph = op.parent_op()
    if not isinstance(graph, GraphDefOp):
        raise VerifyException("expected to be inside a kernel.graph_def")
    return graph.grid_axes, graph.loop_axes


def _check_axes(what: str, entries: AxisMap, axes: Sequence[str]) -> None:
    for axis, _ in entries.entries:
        if axis not in axes:
            raise VerifyException(
                f"{what}: expected axes of [{', '.join(axes)}] of the graph, found {axis}"
            )


class TileOperatorOp(OperatorOp):
    """An operator on tiles, typed on each axis by the layout table; it computes in f32."""

    def verify_types(self) -> None:
        operator, given = self.operator, self.attribute_values
        names = [f"operand {operator.operand_name(i)}" for i in range(len(self.inputs))]
        tiles = [_tile(name, value) for name, value in zip(names, self.inputs, strict=True)]
        found = _tile("result", self.result)
        if not isinstance(found.element_type, Float32Type):
            raise VerifyException(f"result: expected element type f32, found {found.element_type}")
        shapes = [tile.whole for tile in tiles]
        whole = result_shape(operator, shapes, given)
        if found.whole != whole:
            raise VerifyException(
                f"result: expected tiles of {shape_text(whole)}, found of {shape_text(found.whole)}"
            )
        if any(tile.symbolic for tile in (*tiles, found)):
            return
        ones = [tile.ones for tile in tiles]
        grid, loops = graph_axes(self)
        for axis in (*grid, *loops):
            layouts = [tile.layout(axis) for tile in tiles]
            expected = result_layout(operator, layouts, ones, given, shapes)
            if expected is None:
                operands = ", ".join(
                    f"{name} {layout_name(layout)}"
                    for name, layout in zip(names, layouts, strict=True)
                )
                raise VerifyException(f"axis {axis}: no layout rule of {self.name} for {operands}")
            if found.layout(axis) != expected:
                raise VerifyException(
                    f"result: expected layout {layout_name(expected)} on axis {axis}, "
                    f"found {layout_name(found.layout(axis))}"
                )
        shape = result_shape_of_tiles(whole, [(a, found.layout(a)) for a in (*grid, *loops)])
        if found.dims != shape:
            raise VerifyException(
                f"result: expected tile {shape_text(shape)}, found {shape_text(found.dims)}"
            )


def result_shape_of_tiles(
    whole: Sequence[SymExpr], layouts: Sequence[tuple[str, int]]
) -> tuple[SymExpr, ...]:
    """The shape of a tile of a whole shape under the layouts of the axes."""
    dims = list(whole)
    for axis, layout in layouts:
        dim = cut_dim(layout)
        if dim is not None:
            dims[dim] /= SymExpr.symbol(axis_parameter(axis))
    return tuple(dims)


OPS: dict[str, type[TileOperatorOp]] = {
    name: make_operator_op(TileOperatorOp, "threadblock", operator)
    for name, operator in OPERATORS.items()
    if operator.threadblock
}
"""The op class of every operator on tiles, by the operator's name."""


@irdl_op_definition
class InputOp(IRDLOperation):
    """
    Reads tiles of a tensor: `imap` says which dim each grid axis cuts, `fmap` each loop axis.

    Syntax: `%t = threadblock.input %x imap {x = 1} fmap {i = 0} : T -> !threadblock.tile<..>`.
    """

    name = "threadblock.input"

    tensor = operand_def()
    imap = prop_def(MapAttr)
    fmap = prop_def(MapAttr)
    result = result_def(TileType)

    traits = lazy_traits_def(lambda: (Pure(), HasParent(GraphDefOp)))

    def __init__(
        self,
        tensor: SSAValue | Operation,
        imap: MapAttr,
        fmap: MapAttr,
        result_type: Attribute | None = None,
    ) -> None:
        tensor = SSAValue.get(tensor)
        if result_type is None:
            cuts = AxisMap((*imap.data.entries, *fmap.data.entries))
            result_type = TileType(
                cut_shape(shape_of(tensor.type), cuts), as_tensor(tensor.type).element_type
            )
        super().__init__(
            operands=[tensor], result_types=[result_type], properties={"imap": imap, "fmap": fmap}
        )

    def verify_(self) -> None:
        shape = shape_of(self.tensor.type)
        grid, loops = graph_axes(self)
        _check_axes("imap", self.imap.data, grid)
        _check_axes("fmap", self.fmap.data, loops)
        for what, entries in (("imap", self.imap), ("fmap", self.fmap)):
            if entries.new_axis is not None:
                raise VerifyException(f"{what}: expected dims of the tensor, found a new dim")
        cut_dims = list(self.imap.cuts.values())
        if len(set(cut_dims)) != len(cut_dims):
            raise VerifyException(
                "imap: expected each dim to be cut by at most one grid axis, "
                f"found {self.imap.data}"
            )
        cuts = AxisMap((*self.imap.data.entries, *self.fmap.data.entries))
        expected = TileType(cut_shape(shape, cuts), as_tensor(self.tensor.type).element_type)
        _expect("result", expected, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("imap")
        imap = MapAttr(parse_map(parser))
        parser.parse_keyword("fmap")
        fmap = MapAttr(parse_map(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        tensor = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        op = cls(tensor, imap, fmap, parser.parse_type())
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tensor)
        printer.print_string(f" imap {self.imap.data} fmap {self.fmap.data}")
        _print_tail(printer, self, [self.tensor.type], self.result.type)


@irdl_op_definition
class AccumOp(IRDLOperation):
    """
    Folds tiles over a loop axis; its result is whole on that axis and exists after the loop.

    Kinds: `sum`, the default; `max`; and `rescaled`, the sum of t_i exp(m_i - M) with M the maximum
    of the tiles m_i, where an iteration of m_i = -inf counts 0. So a quotient of two such sums is
    NaN where all keys are masked, as a softmax is, and what a masked block leaves to a later graph
    disturbs nothing.

    Syntax: `%a = threadblock.accum %t over i : T -> T`, `.. over i kind max : T -> T`,
    `.. over i rescaled %m : T, M -> T`.
    """

    name = "threadblock.accum"

    tile = operand_def(TileType)
    maximum = opt_operand_def(TileType)
    axis = prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    result = result_def(TileType)

    LAYOUTS: ClassVar[dict[str, int]] = {
        "sum": PARTIAL,
        "max": PARTIAL_MAX,
        "rescaled": PARTIAL_EXP,
    }
    """Per kind the layout of the tiles on the loop axis."""

    traits = lazy_traits_def(lambda: (Pure(), HasParent(GraphDefOp)))

    def __init__(
        self,
        tile: SSAValue | Operation,
        axis: str,
        result_type: Attribute | None = None,
        *,
        kind: str = "sum",
        maximum: SSAValue | Operation | None = None,
    ) -> None:
        tile = SSAValue.get(tile)
        kind = "rescaled" if maximum is not None else kind
        if result_type is None:
            result_type = _tile("operand tile", tile).without(axis)
        super().__init__(
            operands=[tile, [] if maximum is None else [SSAValue.get(maximum)]],
            result_types=[result_type],
            properties={
                "axis": StringAttr(axis),
                "kind": None if kind == "sum" else StringAttr(kind),
            },
        )

    @property
    def kind_value(self) -> str:
        """`sum`, `max` or `rescaled`."""
        return "sum" if self.kind is None else self.kind.data

    def verify_(self) -> None:
        axis, kind = self.axis.data, self.kind_value
        _, loops = graph_axes(self)
        if axis not in loops:
            raise VerifyException(
                f"axis: expected a loop axis of [{', '.join(loops)}] of the graph, found {axis}"
            )
        if kind not in self.LAYOUTS:
            raise VerifyException(f"kind: expected sum, max or rescaled, found {kind}")
        if (self.maximum is None) == (kind == "rescaled"):
            expected = "expected a" if self.maximum is None else "unexpected"
            raise VerifyException(f"{expected} maximum: `rescaled %m`")
        tile = _tile("operand tile", self.tile)
        if tile.symbolic:
            return
        if tile.layout(axis) != self.LAYOUTS[kind]:
            raise VerifyException(
                f"operand tile: expected layout {layout_name(self.LAYOUTS[kind])} on axis {axis}, "
                f"found {layout_name(tile.layout(axis))}"
            )
        if self.maximum is not None:
            self._verify_maximum(tile, _tile("operand maximum", self.maximum))
        _expect("result", tile.without(axis), self.result.type)

    def _verify_maximum(self, tile: TileType, maximum: TileType) -> None:
        """The maximum meets the tile on every axis as a factor does, or corrects it there too."""
        mul = OPERATORS["mul"]
        if result_shape(mul, [tile.whole, maximum.whole]) != tile.whole:
            raise VerifyException(
                f"operand maximum: expected to broadcast into {shape_text(tile.whole)}, "
                f"found {shape_text(maximum.whole)}"
            )
        grid, loops = graph_axes(self)
        for axis in (*grid, *loops):
            layouts = [tile.layout(axis), maximum.layout(axis)]
            if layouts == [PARTIAL_EXP, PARTIAL_MAX]:
                continue
            rescales = axis == self.axis.data
            if rescales or result_layout(mul, layouts, [tile.ones, maximum.ones]) != layouts[0]:
                raise VerifyException(
                    f"operand maximum: expected a maximum that fits layout "
                    f"{layout_name(layouts[0])} of the tile on axis {axis}, "
                    f"found layout {layout_name(layouts[1])}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("over")
        axis = parser.parse_identifier()
        kind, maximum = "sum", None
        if parser.parse_optional_keyword("kind"):
            kind = parser.parse_identifier(context_msg=": the kind of an accum")
        elif parser.parse_optional_keyword("rescaled"):
            kind, maximum = "rescaled", parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        tile = parser.resolve_operand(operand, parser.parse_type())
        resolved = None
        if maximum is not None:
            parser.parse_punctuation(",")
            resolved = parser.resolve_operand(maximum, parser.parse_type())
        parser.parse_punctuation("->")
        op = cls(tile, axis, parser.parse_type(), kind=kind, maximum=resolved)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tile)
        printer.print_string(f" over {self.axis.data}")
        if self.maximum is not None:
            printer.print_string(" rescaled ")
            printer.print_ssa_value(self.maximum)
        elif self.kind is not None:
            printer.print_string(f" kind {self.kind.data}")
        _print_tail(printer, self, list(self.operand_types), self.result.type)


@irdl_op_definition
class OutputOp(IRDLOperation):
    """
    Writes tiles to a whole tensor: `omap` says which dim of it each grid axis cuts.

    With an axis x of `new` the tensor has a new leading dim, as large as there are blocks along x,
    and the tiles that block k writes are its row k: what is owed over x is left to a later graph.
    The size of that dim is a parameter that begins with `split.`.

    Syntax: `%o = threadblock.output %t omap {x = 1} : !threadblock.tile<..> -> T`.
    """

    name = "threadblock.output"

    tile = operand_def(TileType)
    omap = prop_def(MapAttr)
    result = result_def()

    traits = lazy_traits_def(lambda: (Pure(), HasParent(GraphDefOp)))

    def __init__(self, tile: SSAValue | Operation, omap: MapAttr, result_type: Attribute) -> None:
        super().__init__(operands=[tile], result_types=[result_type], properties={"omap": omap})

    def verify_(self) -> None:
        shape = shape_of(self.result.type)
        tile = _tile("operand tile", self.tile)
        grid, loops = graph_axes(self)
        _check_axes("omap", self.omap.data, grid)
        new = self.omap.new_axis
        if new is not None:
            shape = self._without_new(new, grid, shape)
        if tile.whole != shape:
            raise VerifyException(
                f"operand tile: expected tiles of {shape_text(shape)}, "
                f"found of {shape_text(tile.whole)}"
            )
        if tile.symbolic:
            return
        cuts = self.omap.cuts
        for axis in (*grid, *loops):
            if axis == new:
                if tile.layout(axis) not in _OWED:
                    raise VerifyException(
                        f"operand tile: expected layout {', '.join(map(layout_name, _OWED))} on "
                        f"axis {axis} for a new dim, found {layout_name(tile.layout(axis))}"
                    )
                continue
            expected = cuts.get(axis, REPL)
            if tile.layout(axis) != expected:
                raise VerifyException(
                    f"operand tile: expected layout {layout_name(expected)} on axis {axis} by the "
                    f"omap, found {layout_name(tile.layout(axis))}"
                )

    def _without_new(
        self, new: str, grid: Sequence[str], shape: Sequence[SymExpr]
    ) -> tuple[SymExpr, ...]:
        """The result's shape without its new leading dim."""
        if new not in grid:
            raise VerifyException(
                f"omap: expected a grid axis of [{', '.join(grid)}] for a new dim, found {new}"
            )
        if new in dict(self.omap.data.entries):
            raise VerifyException(f"omap: axis {new} has a new dim, expected no other entry of it")
        name = shape[0].as_symbol() if shape else None
        if name is None or not name.startswith(SPLIT):
            raise VerifyException(
                f"result: expected a leading size that is a parameter {SPLIT}NAME, as large as "
                f"axis {new}, found {shape_text(shape)}"
            )
        return tuple(shape[1:])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("omap")
        omap = MapAttr(parse_map(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        tile = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        op = cls(tile, omap, parser.parse_type())
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tile)
        printer.print_string(f" omap {self.omap.data}")
        _print_tail(printer, self, [self.tile.type], self.result.type)


def _print_tail(
    printer: Printer, op: Operation, sources: Sequence[Attribute], result: Attribute
) -> None:
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_list(sources, printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(result)


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends a threadblock graph with the tensors that it outputs."""

    name = "threadblock.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(GraphDefOp), Pure()))


Threadblock = Dialect(
    "threadblock", [*OPS.values(), InputOp, AccumOp, OutputOp, YieldOp], [TileType, OwedAttr]
)
