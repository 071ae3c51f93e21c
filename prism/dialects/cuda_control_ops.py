"""Structured control flow of the `cuda` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import IntAttr, i1, i32
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from prism.dialects.cuda_memory_ops import BarrierOp, LdMatrixOp, MmaOp, ShuffleOp

CONVERGENT = (BarrierOp, LdMatrixOp, MmaOp, ShuffleOp)
"""Ops that all threads of a warp or block must reach together."""


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends the body of a `cuda.for` with the values of the next step, or that of a `cuda.if`."""

    name = "cuda.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ForOp, IfOp)))


@irdl_op_definition
class ForOp(IRDLOperation):
    """
    Runs its body for each step from `start` up to, not including, `stop`; the bounds are known and
    equal for all threads. The body's first argument is the step, the others the carried values.

    Syntax: `%r = cuda.for %i = 0 to 64 step 1 carry (%a = %x : f32) { ... cuda.yield %b : f32 }`
    """

    name = "cuda.for"

    start = prop_def(IntAttr)
    stop = prop_def(IntAttr)
    step = prop_def(IntAttr)
    inits = var_operand_def()
    outs = var_result_def()
    body = region_def("single_block")

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp))

    def __init__(
        self, start: int, stop: int, step: int, inits: Sequence[SSAValue], body: Region
    ) -> None:
        super().__init__(
            operands=[inits],
            result_types=[[value.type for value in inits]],
            properties={"start": IntAttr(start), "stop": IntAttr(stop), "step": IntAttr(step)},
            regions=[body],
        )

    def verify_(self) -> None:
        bounds = (self.start.data, self.stop.data, self.step.data)
        if any(abs(bound) >= 2**30 for bound in bounds):
            raise VerifyException(f"expected bounds of 30 bits, found {max(map(abs, bounds))}")
        if self.step.data < 1:
            raise VerifyException(f"step: expected at least 1, found {self.step.data}")
        if self.stop.data <= self.start.data:
            raise VerifyException(
                f"stop: expected more than start {self.start.data}, found {self.stop.data}"
            )
        expected = tuple(value.type for value in self.inits)
        yielded = self.body.block.last_op
        for what, found in (
            ("body arguments", tuple(self.body.block.arg_types)),
            ("results", (i32, *(value.type for value in self.outs))),
            ("yielded values", (i32, *(yielded.operand_types if yielded else ()))),
        ):
            if found != (i32, *expected):
                raise VerifyException(
                    f"{what}: expected ({', '.join(map(str, expected))}) after the step, "
                    f"found ({', '.join(map(str, found[1:]))})"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        step_argument = parser.parse_argument(expect_type=False).resolve(i32)
        parser.parse_punctuation("=")
        start = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("to")
        stop = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("step")
        step = parser.parse_integer(allow_boolean=False)

        def carried() -> tuple[Parser.Argument, SSAValue]:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            init = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            type = parser.parse_type()
            return argument.resolve(type), parser.resolve_operand(init, type)

        pairs: list[tuple[Parser.Argument, SSAValue]] = []
        if parser.parse_optional_keyword("carry"):
            pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, carried)
        body = parser.parse_region([step_argument, *(argument for argument, _ in pairs)])
        op = cls(start, stop, step, [init for _, init in pairs], body)
        if not pairs:
            ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    def print_header(self, printer: Printer) -> None:
        """Prints all but the body."""
        arguments = self.body.block.args
        printer.print_string(" ")
        printer.print_ssa_value(arguments[0])
        printer.print_string(f" = {self.start.data} to {self.stop.data} step {self.step.data} ")
        if not self.inits:
            return

        def carried(pair: tuple[SSAValue, SSAValue]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(" = ")
            printer.print_ssa_value(pair[1])
            printer.print_string(" : ")
            printer.print_attribute(pair[1].type)

        printer.print_string("carry ")
        with printer.in_parens():
            printer.print_list(list(zip(arguments[1:], self.inits, strict=True)), carried)
        printer.print_string(" ")

    def print(self, printer: Printer) -> None:
        self.print_header(printer)
        printer.print_region(
            self.body,
            print_entry_block_args=False,
            print_block_terminators=bool(self.inits),
        )


@irdl_op_definition
class IfOp(IRDLOperation):
    """
    Runs its body in the threads where the condition is true. Threads diverge, so nothing that a
    warp or block must reach together may be inside.

    Syntax: `cuda.if %p { ... }`
    """

    name = "cuda.if"

    condition = operand_def(i1)
    body = region_def("single_block")

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp))

    def __init__(self, condition: SSAValue, body: Region) -> None:
        super().__init__(operands=[condition], regions=[body])

    def verify_(self) -> None:
        for op in self.body.walk():
            if isinstance(op, CONVERGENT):
                raise VerifyException(
                    f"{op.name} under a divergent condition: all threads must reach it together"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        condition = parser.parse_operand(i1)
        op = cls(condition, parser.parse_region())
        ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    def print_header(self, printer: Printer) -> None:
        """Prints all but the body."""
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(" ")

    def print(self, printer: Printer) -> None:
        self.print_header(printer)
        printer.print_region(self.body, print_block_terminators=False)
