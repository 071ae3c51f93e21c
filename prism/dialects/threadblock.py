"""
The `threadblock` dialect: what one block does with tiles.

A tile's type shows its layout on every axis: `!threadblock.tile<[n, d / grid.x], f32, partial [i]>`
is cut in dim 1 by the grid axis x, its sum over the loop axis i is still owed, and every other axis
holds the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, Float32Type, StringAttr, f32
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from prism.dialects.kernel import GraphDefOp
from prism.dialects.layouts import PARTIAL, REPL, layout_name, result_layout
from prism.dialects.operator_op import OperatorOp, make_operator_op
from prism.dialects.operators import OPERATORS
from prism.dialects.shapes import ONE, OPERAND_NAMES, result_shape
from prism.dialects.sym import (
    GRID_AXES,
    LOOP_AXES,
    AxisMap,
    MapAttr,
    ShapeAttr,
    as_tensor,
    axis_parameter,
    is_axis_parameter,
    parse_map,
    shape_of,
    shape_text,
)
from prism.dialects.sym_expr import SymExpr
from prism.dialects.sym_syntax import parse_expr


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """
    A family of tiles, one per index of the axes: the shape of a tile, its element type, and the
    axes over which the sum of the tiles is still owed.

    Syntax: `!threadblock.tile<[n, d / grid.x], f32, partial [i]>`.
    """

    name = "threadblock.tile"

    shape: ShapeAttr
    element_type: Attribute
    owed: ArrayAttr[StringAttr]

    def __init__(
        self, shape: Sequence[SymExpr], element_type: Attribute = f32, partial: Sequence[str] = ()
    ) -> None:
        super().__init__(
            ShapeAttr(tuple(shape)), element_type, ArrayAttr([StringAttr(axis) for axis in partial])
        )

    @property
    def dims(self) -> tuple[SymExpr, ...]:
        """The size of a tile in each dim."""
        return self.shape.data

    @property
    def partial(self) -> tuple[str, ...]:
        """The axes over which a sum is owed, in order."""
        return tuple(axis.data for axis in self.owed)

    @property
    def symbolic(self) -> bool:
        """Whether the tile's shape depends on Boolean map variables."""
        return any("^" in name for dim in self.dims for name in dim.symbols())

    @property
    def whole(self) -> tuple[SymExpr, ...]:
        """The shape of the whole tensor that the tiles make up."""
        return tuple(dim.with_ones(is_axis_parameter) for dim in self.dims)

    def layout(self, axis: str) -> int:
        """The layout on one axis: the dim that it cuts, `REPL` or `PARTIAL`."""
        if axis in self.partial:
            return PARTIAL
        parameter = axis_parameter(axis)
        cut = [d for d, dim in enumerate(self.dims) if parameter in dim.symbols()]
        return cut[0] if cut else REPL

    def verify(self) -> None:
        parameters = [
            name for dim in self.dims for name in filter(is_axis_parameter, dim.symbols())
        ]
        for name in parameters:
            if parameters.count(name) > 1 and "^" not in name:
                raise VerifyException(
                    f"tile {shape_text(self.dims)}: expected {name} to cut at most one dim"
                )
        for axis in self.partial:
            if axis not in GRID_AXES and axis not in LOOP_AXES:
                raise VerifyException(f"partial: expected the name of an axis, found {axis}")
            if axis_parameter(axis) in parameters:
                raise VerifyException(f"axis {axis}: expected a cut or a sum owed, found both")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parse_expr(parser)
            )
            parser.parse_punctuation(",")
            element_type = parser.parse_type()
            partial: list[str] = []
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("partial")
                partial = parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, parser.parse_identifier
                )
        return (
            ShapeAttr(tuple(shape)),
            element_type,
            ArrayAttr([StringAttr(axis) for axis in partial]),
        )

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{shape_text(self.dims)}, ")
            printer.print_attribute(self.element_type)
            if self.partial:
                printer.print_string(f", partial [{', '.join(self.partial)}]")


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


def check_scopes(graph: GraphDefOp) -> None:
    """
    Checks that no op of a loop's body uses what exists only after that loop.

    The layout table alone would let a tile that a loop cuts meet an accumulated one, which would
    take a second pass over the loop. Raises VerifyException naming the operand.
    """
    after: dict[SSAValue, frozenset[str]] = {}
    for op in graph.body.block.ops:
        tiles = [(v, v.type) for v in op.operands if isinstance(v.type, TileType)]
        axes = frozenset[str]().union(*(after.get(value, ()) for value, _ in tiles))
        for value, tile in tiles:
            for axis in sorted(axes):
                if not tile.symbolic and tile.layout(axis) != REPL:
                    raise VerifyException(
                        f"operand %{value.name_hint or '?'} of {op.name}: expected a value from "
                        f"after the loop over {axis}, as another operand is; found layout "
                        f"{layout_name(tile.layout(axis))}"
                    )
        if isinstance(op, AccumOp):
            axes |= {op.axis.data}
        for result in op.results:
            after[result] = axes


def _check_axes(what: str, entries: AxisMap, axes: Sequence[str]) -> None:
    for axis, _ in entries.entries:
        if axis not in axes:
            raise VerifyException(
                f"{what}: expected axes of [{', '.join(axes)}] of the graph, found {axis}"
            )


class TileOperatorOp(OperatorOp):
    """An operator on tiles, typed on each axis by the layout table; it computes in f32."""

    def verify_types(self) -> None:
        names = [f"operand {name}" for name in OPERAND_NAMES[self.operator.arity]]
        tiles = [_tile(name, value) for name, value in zip(names, self.inputs, strict=True)]
        found = _tile("result", self.result)
        if not isinstance(found.element_type, Float32Type):
            raise VerifyException(f"result: expected element type f32, found {found.element_type}")
        if any(tile.symbolic for tile in (*tiles, found)):
            self._verify_symbolic(tiles, found)
            return
        whole = result_shape(self.operator, [tile.whole for tile in tiles], self.dim_value)
        if found.whole != whole:
            raise VerifyException(
                f"result: expected tiles of {shape_text(whole)}, found of {shape_text(found.whole)}"
            )
        ones = [[dim == ONE for dim in tile.whole] for tile in tiles]
        grid, loops = graph_axes(self)
        for axis in (*grid, *loops):
            layouts = [tile.layout(axis) for tile in tiles]
            expected = result_layout(self.operator, layouts, ones, self.dim_value)
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

    def _verify_symbolic(self, tiles: Sequence[TileType], found: TileType) -> None:
        """With symbolic maps the cuts are unknown: whole shapes must fit."""
        whole = result_shape(self.operator, [tile.whole for tile in tiles], self.dim_value)
        if found.whole != whole:
            raise VerifyException(
                f"result: expected tiles of {shape_text(whole)}, found of {shape_text(found.whole)}"
            )


def result_shape_of_tiles(
    whole: Sequence[SymExpr], layouts: Sequence[tuple[str, int]]
) -> tuple[SymExpr, ...]:
    """The shape of a tile of a whole shape under the layouts of the axes."""
    dims = list(whole)
    for axis, layout in layouts:
        if layout >= 0:
            dims[layout] /= SymExpr.symbol(axis_parameter(axis))
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
        _print_tail(printer, self, self.tensor.type, self.result.type)


@irdl_op_definition
class AccumOp(IRDLOperation):
    """
    Sums tiles over a loop axis; its result is whole on that axis and exists after the loop.

    Syntax: `%a = threadblock.accum %t over i : T -> T`.
    """

    name = "threadblock.accum"

    tile = operand_def(TileType)
    axis = prop_def(StringAttr)
    result = result_def(TileType)

    traits = lazy_traits_def(lambda: (Pure(), HasParent(GraphDefOp)))

    def __init__(
        self, tile: SSAValue | Operation, axis: str, result_type: Attribute | None = None
    ) -> None:
        tile = SSAValue.get(tile)
        if result_type is None:
            source = _tile("operand tile", tile)
            result_type = TileType(source.dims, f32, [a for a in source.partial if a != axis])
        super().__init__(
            operands=[tile], result_types=[result_type], properties={"axis": StringAttr(axis)}
        )

    def verify_(self) -> None:
        axis = self.axis.data
        _, loops = graph_axes(self)
        if axis not in loops:
            raise VerifyException(
                f"axis: expected a loop axis of [{', '.join(loops)}] of the graph, found {axis}"
            )
        tile = _tile("operand tile", self.tile)
        if tile.symbolic:
            return
        if tile.layout(axis) != PARTIAL:
            raise VerifyException(
                f"operand tile: expected layout partial on axis {axis}, "
                f"found {layout_name(tile.layout(axis))}"
            )
        expected = TileType(tile.dims, f32, [a for a in tile.partial if a != axis])
        _expect("result", expected, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("over")
        axis = parser.parse_identifier()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        tile = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        op = cls(tile, axis, parser.parse_type())
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tile)
        printer.print_string(f" over {self.axis.data}")
        _print_tail(printer, self, self.tile.type, self.result.type)


@irdl_op_definition
class OutputOp(IRDLOperation):
    """
    Writes tiles to a whole tensor: `omap` says which dim of it each grid axis cuts.

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
        if tile.whole != shape:
            raise VerifyException(
                f"operand tile: expected tiles of {shape_text(shape)}, "
                f"found of {shape_text(tile.whole)}"
            )
        if tile.symbolic:
            return
        cuts = self.omap.cuts
        for axis in (*grid, *loops):
            expected = cuts.get(axis, REPL)
            if tile.layout(axis) != expected:
                raise VerifyException(
                    f"operand tile: expected layout {layout_name(expected)} on axis {axis} by the "
                    f"omap, found {layout_name(tile.layout(axis))}"
                )

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
        _print_tail(printer, self, self.tile.type, self.result.type)


def _print_tail(printer: Printer, op: Operation, source: Attribute, result: Attribute) -> None:
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(source)
    printer.print_string(" -> ")
    printer.print_attribute(result)


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends a threadblock graph with the tensors that it outputs."""

    name = "threadblock.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(GraphDefOp), Pure()))


Threadblock = Dialect(
    "threadblock", [*OPS.values(), InputOp, AccumOp, OutputOp, YieldOp], [TileType]
)
