"""Asynchronous copies of the `cuda` dialect, and their groups."""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import IntAttr, i1, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from prism.dialects.cuda_memory_ops import (
    parse_address,
    parse_predicate,
    print_address,
    print_predicate,
)
from prism.dialects.cuda_types import GLOBAL, SHARED


@irdl_op_definition
class CopyAsyncOp(IRDLOperation):
    """
    Starts a copy of 4, 8 or 16 bytes from global to shared memory (`cp.async`, PTX ISA 9.7.9.25)
    where the predicate is true; with `size` only so many of them, zeros for the rest.

    Syntax: `cuda.copy_async 16 <global> %x[64] to <shared> %s[16] size %n if %p`
    """

    name = "cuda.copy_async"

    source = operand_def(GLOBAL)
    target = operand_def(SHARED)
    size = opt_operand_def(i32)
    predicate = opt_operand_def(i1)
    bytes = prop_def(IntAttr)
    source_offset = prop_def(IntAttr)
    target_offset = prop_def(IntAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        bytes: int,
        source: tuple[SSAValue, int],
        target: tuple[SSAValue, int],
        size: SSAValue | None = None,
        predicate: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[source[0], target[0], size, predicate],
            properties={
                "bytes": IntAttr(bytes),
                "source_offset": IntAttr(source[1]),
                "target_offset": IntAttr(target[1]),
            },
        )

    def verify_(self) -> None:
        size = self.bytes.data
        if size not in (4, 8, 16):
            raise VerifyException(f"expected 4, 8 or 16 bytes, found {size}")
        for name, offset in (
            ("source", self.source_offset.data),
            ("target", self.target_offset.data),
        ):
            if offset % size:
                raise VerifyException(
                    f"offset of the {name}: expected a multiple of {size} bytes, found {offset}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        bytes = parser.parse_integer(allow_boolean=False)
        source = parse_address(parser)
        parser.parse_keyword("to")
        target = parse_address(parser)
        size = parser.parse_operand(i32) if parser.parse_optional_keyword("size") else None
        return cls(bytes, source, target, size, parse_predicate(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.bytes.data}")
        print_address(printer, self.source, self.source_offset.data)
        printer.print_string(" to")
        print_address(printer, self.target, self.target_offset.data)
        if self.size is not None:
            printer.print_string(" size ")
            printer.print_ssa_value(self.size)
        print_predicate(printer, self.predicate)


@irdl_op_definition
class CommitOp(IRDLOperation):
    """Ends a group of asynchronous copies of the thread (`cp.async.commit_group`)."""

    name = "cuda.commit"

    assembly_format = "attr-dict"


@irdl_op_definition
class WaitOp(IRDLOperation):
    """
    Waits until at most `pending` groups of the thread's copies are incomplete
    (`cp.async.wait_group`).

    Syntax: `cuda.wait 2`
    """

    name = "cuda.wait"

    pending = prop_def(IntAttr)

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": IntAttr(pending)})

    def verify_(self) -> None:
        if self.pending.data < 0:
            raise VerifyException(f"pending: expected at least 0, found {self.pending.data}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls(parser.parse_integer(allow_boolean=False))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.pending.data}")
