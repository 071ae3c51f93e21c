"""Memory, matrix, shuffle and barrier ops of the `cuda` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import IntAttr, StringAttr, UnitAttr, f32, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from prism.dialects.cuda_types import REGISTER_BYTES, SHARED, PtrType

MAX_VECTOR_BYTES = 16
"""The widest load or store of one thread (PTX ISA 5.4.2)."""

MATRIX_ROW_BYTES = 16
"""The bytes of one row of an 8x8 matrix of `ldmatrix` (PTX ISA 9.7.14.5)."""


def _verify_access(types: Sequence[Attribute], offset: int) -> None:
    """Checks element types, vector width and the offset's alignment of a load or store."""
    if len(types) not in (1, 2, 4):
        raise VerifyException(f"expected a vector of 1, 2 or 4 registers, found {len(types)}")
    if len(set(types)) > 1:
        raise VerifyException(f"expected registers of one type, found {', '.join(map(str, types))}")
    if types[0] not in REGISTER_BYTES:
        raise VerifyException(f"expected registers that memory can hold, found {types[0]}")
    size = REGISTER_BYTES[types[0]] * len(types)
    if size > MAX_VECTOR_BYTES:
        raise VerifyException(f"expected at most {MAX_VECTOR_BYTES} bytes, found {size}")
    if offset % size:
        raise VerifyException(f"offset: expected a multiple of {size} bytes, found {offset}")


def parse_address(parser: Parser) -> tuple[SSAValue, int]:
    """`%pointer[bytes]`, the pointer's space named before it."""
    with parser.in_angle_brackets():
        pointer_type = PtrType(StringAttr(parser.parse_identifier()))
    pointer = parser.parse_unresolved_operand()
    offset = 0
    if parser.parse_optional_punctuation("["):
        offset = parser.parse_integer(allow_boolean=False)
        parser.parse_punctuation("]")
    return parser.resolve_operand(pointer, pointer_type), offset


def print_address(printer: Printer, pointer: SSAValue, offset: int) -> None:
    """Prints what `parse_address` parses."""
    printer.print_string(" ")
    if isinstance(pointer.type, PtrType):
        pointer.type.print_parameters(printer)
    printer.print_string(" ")
    printer.print_ssa_value(pointer)
    if offset:
        printer.print_string(f"[{offset}]")


def parse_predicate(parser: Parser) -> SSAValue | None:
    """`if %p`, if it is there."""
    return parser.parse_operand(i1) if parser.parse_optional_keyword("if") else None


def print_predicate(printer: Printer, predicate: SSAValue | None) -> None:
    """Prints what `parse_predicate` parses."""
    if predicate is not None:
        printer.print_string(" if ")
        printer.print_ssa_value(predicate)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """
    Loads 1, 2 or 4 registers from consecutive addresses; where the predicate is false they are
    zero.

    Syntax: `%a, %b = cuda.load <global> %p[16] if %in -> i32, i32`
    """

    name = "cuda.load"

    pointer = operand_def(PtrType)
    predicate = opt_operand_def(i1)
    offset = prop_def(IntAttr)
    outs = var_result_def()

    def __init__(
        self,
        pointer: SSAValue,
        types: Sequence[Attribute],
        offset: int = 0,
        predicate: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[pointer, predicate],
            result_types=[types],
            properties={"offset": IntAttr(offset)},
        )

    def verify_(self) -> None:
        _verify_access([value.type for value in self.outs], self.offset.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pointer, offset = parse_address(parser)
        predicate = parse_predicate(parser)
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(pointer, types, offset, predicate)

    def print(self, printer: Printer) -> None:
        print_address(printer, self.pointer, self.offset.data)
        print_predicate(printer, self.predicate)
        printer.print_string(" -> ")
        printer.print_list([value.type for value in self.outs], printer.print_attribute)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """
    Stores 1, 2 or 4 registers to consecutive addresses where the predicate is true.

    Syntax: `cuda.store %a, %b : f32 to <shared> %p[16] if %in`
    """

    name = "cuda.store"

    values = var_operand_def()
    pointer = operand_def(PtrType)
    predicate = opt_operand_def(i1)
    offset = prop_def(IntAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        values: Sequence[SSAValue],
        pointer: SSAValue,
        offset: int = 0,
        predicate: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[values, pointer, predicate], properties={"offset": IntAttr(offset)}
        )

    def verify_(self) -> None:
        _verify_access([value.type for value in self.values], self.offset.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(":")
        element = parser.parse_type()
        parser.parse_keyword("to")
        pointer, offset = parse_address(parser)
        predicate = parse_predicate(parser)
        resolved = [parser.resolve_operand(value, element) for value in values]
        return cls(resolved, pointer, offset, predicate)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.values[0].type)
        printer.print_string(" to")
        print_address(printer, self.pointer, self.offset.data)
        print_predicate(printer, self.predicate)


@irdl_op_definition
class LdMatrixOp(IRDLOperation):
    """
    Loads 1, 2 or 4 8x8 matrices of 16-bit elements from shared memory, one row address per lane
    (PTX ISA 9.7.14.5), each into one register of two elements; `trans` transposes them.

    Syntax: `%a, %b = cuda.ldmatrix trans <shared> %p[16] x 2`
    """

    name = "cuda.ldmatrix"

    pointer = operand_def(SHARED)
    offset = prop_def(IntAttr)
    trans = opt_prop_def(UnitAttr)
    outs = var_result_def(i32)

    def __init__(
        self, pointer: SSAValue, count: int, *, trans: bool = False, offset: int = 0
    ) -> None:
        super().__init__(
            operands=[pointer],
            result_types=[[i32] * count],
            properties={"offset": IntAttr(offset), "trans": UnitAttr() if trans else None},
        )

    def verify_(self) -> None:
        if len(self.outs) not in (1, 2, 4):
            raise VerifyException(f"expected 1, 2 or 4 matrices, found {len(self.outs)}")
        if self.offset.data % MATRIX_ROW_BYTES:
            raise VerifyException(
                f"offset: expected a multiple of {MATRIX_ROW_BYTES} bytes, found {self.offset.data}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        trans = parser.parse_optional_keyword("trans") is not None
        pointer, offset = parse_address(parser)
        parser.parse_keyword("x")
        count = parser.parse_integer(allow_boolean=False)
        return cls(pointer, count, trans=trans, offset=offset)

    def print(self, printer: Printer) -> None:
        printer.print_string(" trans" if self.trans is not None else "")
        print_address(printer, self.pointer, self.offset.data)
        printer.print_string(f" x {len(self.outs)}")


@irdl_op_definition
class MmaOp(IRDLOperation):
    """
    `mma.sync.m16n8k16`, f16 or with `bf16` bf16 operands and f32 accumulators (PTX ISA 9.7.14.5):
    d = a * b + c over the warp.

    `a` is 16x16 row-major in 4 registers, `b` 16x8 column-major in 2, `c` and `d` 16x8 in 4.

    Syntax: `%d0, %d1, %d2, %d3 = cuda.mma %a0, %a1, %a2, %a3 * %b0, %b1 + %c0, %c1, %c2, %c3`
    """

    name = "cuda.mma"

    bf16 = opt_prop_def(UnitAttr)
    a = var_operand_def(i32)
    b = var_operand_def(i32)
    c = var_operand_def(f32)
    d = var_result_def(f32)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        a: Sequence[SSAValue],
        b: Sequence[SSAValue],
        c: Sequence[SSAValue],
        *,
        bf16: bool = False,
    ) -> None:
        super().__init__(
            operands=[a, b, c],
            result_types=[[f32] * 4],
            properties={"bf16": UnitAttr() if bf16 else None},
        )

    def verify_(self) -> None:
        for name, values, expected in (
            ("a", self.a, 4),
            ("b", self.b, 2),
            ("c", self.c, 4),
            ("d", self.d, 4),
        ):
            if len(values) != expected:
                raise VerifyException(f"{name}: expected {expected} registers, found {len(values)}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        def registers(element: Attribute) -> list[SSAValue]:
            values = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_unresolved_operand
            )
            return [parser.resolve_operand(value, element) for value in values]

        bf16 = parser.parse_optional_keyword("bf16") is not None
        a = registers(i32)
        parser.parse_punctuation("*")
        b = registers(i32)
        parser.parse_punctuation("+")
        return cls(a, b, registers(f32), bf16=bf16)

    def print(self, printer: Printer) -> None:
        printer.print_string(" bf16" if self.bf16 is not None else "")
        for separator, values in ((" ", self.a), (" * ", self.b), (" + ", self.c)):
            printer.print_string(separator)
            printer.print_list(values, printer.print_ssa_value)


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """
    The value of the lane whose number differs in the bits of `mask` (`shfl.sync.bfly`, PTX ISA
    9.7.9).

    Syntax: `%d = cuda.shuffle %v xor 16`
    """

    name = "cuda.shuffle"

    value = operand_def(f32)
    mask = prop_def(IntAttr)
    result = result_def(f32)

    def __init__(self, value: SSAValue, mask: int) -> None:
        super().__init__(operands=[value], result_types=[f32], properties={"mask": IntAttr(mask)})

    def verify_(self) -> None:
        if not 0 < self.mask.data < 32:
            raise VerifyException(f"mask: expected 1 to 31, found {self.mask.data}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_operand(f32)
        parser.parse_keyword("xor")
        return cls(value, parser.parse_integer(allow_boolean=False))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(f" xor {self.mask.data}")


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Waits for all threads of the block and orders their shared memory accesses (`bar.sync 0`)."""

    name = "cuda.barrier"

    assembly_format = "attr-dict"
