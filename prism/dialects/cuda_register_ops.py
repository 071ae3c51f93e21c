"""
Register ops of the `cuda` dialect: one op class per entry of the instruction table, and constants.
"""

from __future__ import annotations

from typing import Self, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from prism.dialects.cuda_instructions import INSTRUCTIONS, Instruction


class InstructionOp(IRDLOperation):
    """
    An instruction of the table; the entry gives the types.

    Syntax: `%d = cuda.fma.rn.f32 %a, %b, %c`
    """

    inputs = var_operand_def()
    outs = var_result_def()

    traits = traits_def(Pure())

    def __init__(self, *inputs: SSAValue) -> None:
        super().__init__(operands=[inputs], result_types=[self.entry().results])

    @classmethod
    def entry(cls) -> Instruction:
        """The table entry of this op class."""
        return INSTRUCTIONS[cls.name.partition(".")[2]]

    def verify_(self) -> None:
        entry = self.entry()
        for what, values, expected in (
            ("operand", self.inputs, entry.operands),
            ("result", self.outs, entry.results),
        ):
            if len(values) != len(expected):
                raise VerifyException(f"expected {len(expected)} {what}(s), found {len(values)}")
            for index, (value, wanted) in enumerate(zip(values, expected, strict=True)):
                if value.type != wanted:
                    raise VerifyException(f"{what} {index}: expected {wanted}, found {value.type}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands: list[SSAValue] = []
        for type in cls.entry().operands:
            if operands:
                parser.parse_punctuation(",")
            operands.append(parser.parse_operand(type))
        attributes = parser.parse_optional_attr_dict()
        op = cls(*operands)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        if self.inputs:
            printer.print_string(" ")
        printer.print_list(self.inputs, printer.print_ssa_value)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


def _instruction_op(entry: Instruction) -> type[InstructionOp]:
    """The op class of a table entry."""
    class_name = "".join(part.title() for part in entry.name.replace("_", ".").split(".")) + "Op"
    namespace = {
        "__module__": __name__,
        "__doc__": f"The PTX instruction `{entry.template}`",
        "name": f"cuda.{entry.name}",
    }
    return cast(
        "type[InstructionOp]", irdl_op_definition(type(class_name, (InstructionOp,), namespace))
    )


INSTRUCTION_OPS: dict[str, type[InstructionOp]] = {
    entry.name: _instruction_op(entry) for entry in INSTRUCTIONS.values()
}
"""The op class of each table entry, by the entry's name."""

CONSTANT_TYPES = (i32, i64, f32)


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """
    A constant in a register.

    Syntax: `%c = cuda.constant 5 : i32`
    """

    name = "cuda.constant"

    value = prop_def(IntegerAttr | FloatAttr)
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, value: float, type: Attribute) -> None:
        constant = (
            FloatAttr(float(value), f32)
            if type == f32
            else IntegerAttr(int(value), 64 if type == i64 else 32)
        )
        super().__init__(result_types=[type], properties={"value": constant})

    def verify_(self) -> None:
        if self.result.type not in CONSTANT_TYPES:
            raise VerifyException(f"result: expected i32, i64 or f32, found {self.result.type}")
        if self.value.type != self.result.type:
            raise VerifyException(
                f"value: expected the result's type {self.result.type}, found {self.value.type}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pos = parser.pos
        value = parser.parse_attribute()
        if not isinstance(value, IntegerAttr | FloatAttr):
            parser.raise_error("expected a typed number", pos, parser.pos)
        attributes = parser.parse_optional_attr_dict()
        type = cast("Attribute", value.type)
        op = cls.create(result_types=[type], properties={"value": cast("Attribute", value)})
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.value)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


def constant_value(value: SSAValue) -> int | None:
    """The integer that `value` is, if it is a constant."""
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
