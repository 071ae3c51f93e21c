"""What ops of the `thread` dialect with a region share: bound operands, and the yield."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, lazy_traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, OpTrait


def _yield_traits() -> tuple[OpTrait, ...]:
    from prism.dialects.thread_elementwise import MapOp, ReduceOp
    from prism.dialects.thread_kernel import ForOp

    return IsTerminator(), HasParent(ForOp, MapOp, ReduceOp)


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends the region of a loop, a map or a reduction with its values."""

    name = "thread.yield"

    traits = lazy_traits_def(_yield_traits)


def parse_bindings(
    parser: Parser, element: Attribute | None
) -> list[tuple[Parser.Argument, SSAValue]]:
    """`(%a = %x : T, ..)`; the arguments have the operands' types, or all of them `element`."""

    def binding() -> tuple[Parser.Argument, SSAValue]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        return argument.resolve(element or type), parser.resolve_operand(operand, type)

    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, binding)


def print_bindings(
    printer: Printer, arguments: Sequence[SSAValue], operands: Sequence[SSAValue]
) -> None:
    """Prints what `parse_bindings` parses."""

    def binding(pair: tuple[SSAValue, SSAValue]) -> None:
        printer.print_ssa_value(pair[0])
        printer.print_string(" = ")
        printer.print_ssa_value(pair[1])
        printer.print_string(" : ")
        printer.print_attribute(pair[1].type)

    with printer.in_parens():
        printer.print_list(list(zip(arguments, operands, strict=True)), binding)
