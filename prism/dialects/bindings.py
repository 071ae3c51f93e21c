"""Operands bound to the arguments of a region, `(%a = %x : T, ..)`, for ops of every dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer


def parse_bindings(
    parser: Parser, element: Attribute | None = None
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
