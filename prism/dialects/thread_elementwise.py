"""Elementwise maps and reductions of the `thread` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import IntAttr, f32
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from prism.dialects.bindings import parse_bindings, print_bindings
from prism.dialects.thread_ops import Window, fragment_of
from prism.dialects.thread_sums import folded_layout, is_lane_sums
from prism.dialects.thread_types import (
    FragmentType,
    MmaLayout,
    SharedType,
    WindowAttr,
    parse_window,
    window_text,
)
from prism.dialects.thread_yield import YieldOp


class _Elementwise(IRDLOperation):
    """
    What maps and reductions share: a region that computes one f32 of an element of each source.
    """

    sources = var_operand_def(SharedType | FragmentType)
    body = region_def("single_block")

    def verify_body(self, within: WindowAttr | None) -> None:
        """Checks that the region takes and yields f32, and that a part is one of a matrix."""
        if within is not None and len(within.data) != 2:
            raise VerifyException(f"within: expected 2 dims, found {len(within.data)}")
        arguments = self.body.block.arg_types
        if tuple(arguments) != (f32,) * len(self.sources):
            raise VerifyException(
                f"body arguments: expected {len(self.sources)} of f32, "
                f"found ({', '.join(map(str, arguments))})"
            )
        last = self.body.block.last_op
        if not isinstance(last, YieldOp) or tuple(last.operand_types) != (f32,):
            raise VerifyException("body: expected thread.yield of one f32 as its last op")


@irdl_op_definition
class MapOp(_Elementwise):
    """
    A fragment computed element by element. A source is a shared tile, whose dims of size 1 are
    broadcast and which is read as zero beyond its end, or a fragment of the result's type. With
    `within`, elements beyond the part are zero.

    Syntax: `%r = thread.map (%a = %f : !thread.fragment<..>, %b = %s : !thread.shared<..>) within
    [8, 4096 cut i by 64] -> !thread.fragment<..> { %c = arith.divf %a, %b : f32 thread.yield %c :
    f32 }`
    """

    name = "thread.map"

    within = opt_prop_def(WindowAttr)
    result = result_def(FragmentType)

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp))

    def __init__(
        self,
        sources: Sequence[SSAValue],
        result_type: Attribute,
        body: Region,
        within: Window | None = None,
    ) -> None:
        super().__init__(
            operands=[sources],
            result_types=[result_type],
            properties={"within": None if within is None else WindowAttr(within)},
            regions=[body],
        )

    def verify_(self) -> None:
        self.verify_body(self.within)
        result = fragment_of(self.result)
        if result.owed:
            raise VerifyException("result: expected a whole fragment, found a partial one")
        for index, source in enumerate(self.sources):
            if isinstance(source.type, FragmentType) and source.type != result:
                raise VerifyException(
                    f"source {index}: expected the result's type {result}, found {source.type}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        bindings = parse_bindings(parser, f32)
        within = parse_window(parser) if parser.parse_optional_keyword("within") else None
        parser.parse_punctuation("->")
        result_type = parser.parse_type()
        body = parser.parse_region([argument for argument, _ in bindings])
        return cls([source for _, source in bindings], result_type, body, within)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_bindings(printer, self.body.block.args, self.sources)
        if self.within is not None:
            printer.print_string(f" within {window_text(self.within.data)}")
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class ReduceOp(_Elementwise):
    """
    Adds to a fragment the sums over a dim of values computed element by element from shared tiles;
    only elements within the part count.

    dim 1: the fragment is [rows, lanes], each lane summing its share of the columns, `vector` at a
    time (`thread.sum_lanes` gives the rows' sums). dim 0: the fragment is [1, columns].

    Sources may be mma fragments if the sums are one too, of the same warps and one tile along the
    columns (`folded_layout`): each thread then adds up what it holds of a row.

    Syntax: `%r = thread.reduce dim 1 vector 8 (%a = %s : !thread.shared<..>) within [8, 64] into
    %f : !thread.fragment<..> { ... }`
    """

    name = "thread.reduce"

    dim = prop_def(IntAttr)
    vector = prop_def(IntAttr)
    within = prop_def(WindowAttr)
    acc = operand_def(FragmentType)
    result = result_def(FragmentType)

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp))

    def __init__(
        self,
        dim: int,
        vector: int,
        sources: Sequence[SSAValue],
        within: Window,
        acc: SSAValue,
        body: Region,
    ) -> None:
        super().__init__(
            operands=[acc, sources],
            result_types=[acc.type],
            properties={
                "dim": IntAttr(dim),
                "vector": IntAttr(vector),
                "within": WindowAttr(within),
            },
            regions=[body],
        )

    def verify_(self) -> None:
        self.verify_body(self.within)
        acc = fragment_of(self.acc)
        if self.result.type != acc:
            raise VerifyException(
                f"result: expected the type of acc {acc}, found {self.result.type}"
            )
        layout = acc.layout.data
        if isinstance(layout, MmaLayout):
            self._verify_folded(acc, layout)
            return
        for index, source in enumerate(self.sources):
            if not isinstance(source.type, SharedType):
                raise VerifyException(
                    f"source {index}: expected a !thread.shared, found {source.type}"
                )
        dim, vector = self.dim.data, self.vector.data
        if dim == 1 and not is_lane_sums(acc, layout):
            raise VerifyException(f"acc: expected one element per lane and row, found {acc}")
        if dim == 0 and (acc.sizes[0] != 1 or vector != 1 or layout.vector != 1):
            raise VerifyException(f"acc: expected one row of vector 1, found {acc}")
        if dim not in (0, 1):
            raise VerifyException(f"dim: expected 0 or 1, found {dim}")
        extent = self.within.data[1].extent
        if vector not in (1, 2, 4, 8) or extent % vector:
            raise VerifyException(
                f"vector: expected 1, 2, 4 or 8 that divides {extent} columns, found {vector}"
            )

    def _verify_folded(self, acc: FragmentType, layout: MmaLayout) -> None:
        fragments = {s.type for s in self.sources if isinstance(s.type, FragmentType)}
        if self.dim.data != 1 or self.vector.data != 1 or len(fragments) != 1:
            raise VerifyException("acc: expected dim 1, vector 1 and sources of one fragment type")
        source = next(iter(fragments)).layout.data
        if acc.owed or not isinstance(source, MmaLayout) or folded_layout(source) != layout:
            raise VerifyException(f"acc: expected the folded layout of {source}, found {acc}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        parser.parse_keyword("dim")
        dim = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("vector")
        vector = parser.parse_integer(allow_boolean=False)
        bindings = parse_bindings(parser, f32)
        parser.parse_keyword("within")
        within = parse_window(parser)
        parser.parse_keyword("into")
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        acc = parser.resolve_operand(operand, parser.parse_type())
        body = parser.parse_region([argument for argument, _ in bindings])
        return cls(dim, vector, [source for _, source in bindings], within, acc, body)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" dim {self.dim.data} vector {self.vector.data} ")
        print_bindings(printer, self.body.block.args, self.sources)
        printer.print_string(f" within {window_text(self.within.data)} into ")
        printer.print_ssa_value(self.acc)
        printer.print_string(" : ")
        printer.print_attribute(self.acc.type)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
