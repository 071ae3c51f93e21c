"""Kernels and loops of the `thread` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
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
    IsolatedFromAbove,
    IsTerminator,
    SingleBlockImplicitTerminator,
    SymbolOpInterface,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from prism.dialects.bindings import parse_bindings, print_bindings
from prism.dialects.sym import GRID_AXES, LOOP_AXES
from prism.dialects.thread_ops import CopyOp, tensor_of
from prism.dialects.thread_types import (
    ELEMENT_BYTES,
    MAX_TENSOR_BYTES,
    MAX_THREAD_REGISTERS,
    TENSOR_RANKS,
    FragmentType,
    WindowAttr,
)
from prism.dialects.thread_yield import YieldOp


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a kernel."""

    name = "thread.return"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(KernelOp)))

    assembly_format = "attr-dict"


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    What one block of a kernel does: the arguments are the input and then the output tensors.

    Syntax: `thread.kernel @k(%x: tensor<8x64xf16>, %o: tensor<8x64xf16>) grid [1, 1, 1] warps 4
    target "sm_80" { ... thread.return }`
    """

    name = "thread.kernel"

    sym_name = prop_def(StringAttr)
    grid = prop_def(ArrayAttr[IntAttr])
    warps = prop_def(IntAttr)
    target = prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self, name: str, grid: Sequence[int], warps: int, target: str, body: Region
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "grid": ArrayAttr([IntAttr(size) for size in grid]),
                "warps": IntAttr(warps),
                "target": StringAttr(target),
            },
            regions=[body],
        )

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.warps.data * 32

    def verify_(self) -> None:
        if len(self.grid) != 3 or any(size.data < 1 for size in self.grid):
            raise VerifyException("grid: expected 3 positive sizes")
        if not 1 <= self.warps.data <= 32:
            raise VerifyException(f"warps: expected 1 to 32, found {self.warps.data}")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("expected thread.return at the end of the body")
        for argument in self.body.block.args:
            _verify_tensor(argument)
        for op in self.body.walk():
            self._verify_fragments(op)
            _verify_axes(op)

    def _verify_fragments(self, op: Operation) -> None:
        for value in (*op.operands, *op.results):
            if not isinstance(value.type, FragmentType):
                continue
            threads, registers = value.type.layout.data.threads, value.type.registers
            if threads != self.threads:
                raise VerifyException(
                    f"{op.name}: expected a fragment over {self.threads} threads, found {threads}"
                )
            if registers > MAX_THREAD_REGISTERS:
                raise VerifyException(
                    f"{op.name}: expected a fragment of at most {MAX_THREAD_REGISTERS} registers "
                    f"of a thread, found {registers}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("grid")
        grid = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)
        )
        parser.parse_keyword("warps")
        warps = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("target")
        target = parser.parse_str_literal()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(name.data, grid, warps, target, parser.parse_region(arguments))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        grid = ", ".join(str(size.data) for size in self.grid)
        printer.print_string(f" grid [{grid}] warps {self.warps.data} target ")
        printer.print_string_literal(self.target.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _verify_tensor(argument: BlockArgument) -> None:
    type = tensor_of(argument)
    if (
        len(type.get_shape()) not in TENSOR_RANKS
        or not type.has_static_shape()
        or type.element_type not in ELEMENT_BYTES
    ):
        raise VerifyException(
            f"argument {argument.index}: expected a tensor of rank 2 or 3 of f16, bf16 or f32, "
            f"found {type}"
        )
    size = prod(type.get_shape()) * ELEMENT_BYTES[type.element_type]
    if size > MAX_TENSOR_BYTES:
        raise VerifyException(
            f"argument {argument.index}: expected at most {MAX_TENSOR_BYTES} bytes, found {size}"
        )


def _verify_axes(op: Operation) -> None:
    """Checks that the loop axes that a window is cut by are those of loops around the op."""
    windows = [value for value in op.properties.values() if isinstance(value, WindowAttr)]
    used = {axis for window in windows for dim in window.data for axis, _ in dim.cuts}
    missing = used - set(GRID_AXES)
    if isinstance(op, CopyOp) and op.axis is not None:
        missing.discard(op.axis.data)
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            missing.discard(parent.axis.data)
        parent = parent.parent_op()
    if missing:
        raise VerifyException(
            f"{op.name}: window: expected to be inside a thread.for over {min(missing)}"
        )


@irdl_op_definition
class ForOp(IRDLOperation):
    """
    Runs its body for each index of a loop axis, carrying fragments.

    Syntax: `%r = thread.for i < 64 carry (%a = %f : !thread.fragment<..>) { ... thread.yield %b :
    .. }`
    """

    name = "thread.for"

    axis = prop_def(StringAttr)
    count = prop_def(IntAttr)
    inits = var_operand_def(FragmentType)
    outs = var_result_def(FragmentType)
    body = region_def("single_block")

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp))

    def __init__(self, axis: str, count: int, inits: Sequence[SSAValue], body: Region) -> None:
        super().__init__(
            operands=[inits],
            result_types=[[value.type for value in inits]],
            properties={"axis": StringAttr(axis), "count": IntAttr(count)},
            regions=[body],
        )

    def verify_(self) -> None:
        if self.axis.data not in LOOP_AXES:
            raise VerifyException(
                f"axis: expected one of {', '.join(LOOP_AXES)}, found {self.axis.data}"
            )
        if self.count.data < 1:
            raise VerifyException(f"count: expected at least 1, found {self.count.data}")
        expected = tuple(value.type for value in self.inits)
        yielded = self.body.block.last_op
        for what, found in (
            ("body arguments", tuple(self.body.block.arg_types)),
            ("results", tuple(value.type for value in self.outs)),
            ("yielded values", tuple(yielded.operand_types if yielded else ())),
        ):
            if found != expected:
                raise VerifyException(
                    f"{what}: expected ({', '.join(map(str, expected))}), "
                    f"found ({', '.join(map(str, found))})"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        axis = parser.parse_identifier()
        parser.parse_punctuation("<")
        count = parser.parse_integer(allow_boolean=False)
        bindings: list[tuple[Parser.Argument, SSAValue]] = []
        if parser.parse_optional_keyword("carry"):
            bindings = parse_bindings(parser, None)
        body = parser.parse_region([argument for argument, _ in bindings])
        op = cls(axis, count, [init for _, init in bindings], body)
        if not bindings:
            ensure_terminator(op, SingleBlockImplicitTerminator(YieldOp))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.axis.data} < {self.count.data} ")
        if self.inits:
            printer.print_string("carry ")
            print_bindings(printer, self.body.block.args, self.inits)
            printer.print_string(" ")
        printer.print_region(
            self.body,
            print_entry_block_args=False,
            print_block_terminators=bool(self.inits),
        )
