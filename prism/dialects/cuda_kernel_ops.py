"""Kernels of the `cuda` dialect, as code and as PTX text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from prism.dialects.cuda_types import GLOBAL

MAX_THREADS = 1024
"""Threads of a block on every target."""

STATIC_SHARED_BYTES = 48 * 1024
"""The most shared memory that a kernel can declare; more must be dynamic (PTX ISA 5.1.7)."""

PTX_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$%][A-Za-z0-9_$]+")
"""What PTX accepts as a name (PTX ISA 4.4)."""


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a kernel."""

    name = "cuda.return"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(KernelOp)))

    assembly_format = "attr-dict"


class _Launched(IRDLOperation):
    """What a kernel's code and its binary share: the launch configuration."""

    sym_name = prop_def(StringAttr)
    grid = prop_def(ArrayAttr[IntAttr])
    block = prop_def(IntAttr)
    shared_bytes = prop_def(IntAttr)
    target = prop_def(StringAttr)
    ptx_version = prop_def(StringAttr)

    @property
    def grid_size(self) -> tuple[int, int, int]:
        """Blocks per grid dimension."""
        x, y, z = (size.data for size in self.grid)
        return x, y, z

    @property
    def static_shared(self) -> int:
        """Bytes of shared memory that the kernel declares itself."""
        return self.shared_bytes.data if self.shared_bytes.data <= STATIC_SHARED_BYTES else 0

    @property
    def dynamic_shared(self) -> int:
        """Bytes of shared memory that the launch must give."""
        return self.shared_bytes.data - self.static_shared

    def verify_launch(self) -> None:
        """Checks the name and the launch configuration against what every target allows."""
        if not PTX_IDENTIFIER.fullmatch(self.sym_name.data):
            raise VerifyException(
                f"name: expected letters, digits, _ and $, found {self.sym_name.data!r}"
            )
        if len(self.grid) != 3 or any(size.data < 1 for size in self.grid):
            found = ", ".join(str(size.data) for size in self.grid)
            raise VerifyException(f"grid: expected 3 positive sizes, found [{found}]")
        if not 0 < self.block.data <= MAX_THREADS:
            raise VerifyException(
                f"block: expected 1 to {MAX_THREADS} threads, found {self.block.data}"
            )
        if self.shared_bytes.data < 0:
            raise VerifyException(f"shared: expected bytes, found {self.shared_bytes.data}")

    def print_launch(self, printer: Printer) -> None:
        """Prints the launch configuration."""
        grid = ", ".join(str(size.data) for size in self.grid)
        printer.print_string(
            f" grid [{grid}] block {self.block.data} shared {self.shared_bytes.data} target "
        )
        printer.print_string_literal(self.target.data)
        printer.print_string(" version ")
        printer.print_string_literal(self.ptx_version.data)

    @staticmethod
    def parse_launch(parser: Parser) -> dict[str, Attribute]:
        """Parses what `print_launch` prints, as properties."""
        parser.parse_keyword("grid")
        grid = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: IntAttr(parser.parse_integer(allow_boolean=False))
        )
        properties: dict[str, Attribute] = {"grid": ArrayAttr(grid)}
        for keyword, name in (("block", "block"), ("shared", "shared_bytes")):
            parser.parse_keyword(keyword)
            properties[name] = IntAttr(parser.parse_integer(allow_boolean=False))
        for keyword, name in (("target", "target"), ("version", "ptx_version")):
            parser.parse_keyword(keyword)
            properties[name] = StringAttr(parser.parse_str_literal())
        return properties


def launch_properties(
    name: str, grid: Sequence[int], block: int, shared_bytes: int, target: str, ptx_version: str
) -> dict[str, Attribute]:
    """The properties that `cuda.kernel` and `cuda.binary` share."""
    return {
        "sym_name": StringAttr(name),
        "grid": ArrayAttr([IntAttr(size) for size in grid]),
        "block": IntAttr(block),
        "shared_bytes": IntAttr(shared_bytes),
        "target": StringAttr(target),
        "ptx_version": StringAttr(ptx_version),
    }


@irdl_op_definition
class KernelOp(_Launched):
    """
    A kernel: its parameters are pointers to global memory, aligned to 16 bytes.

    Syntax: `cuda.kernel @k(%x: !cuda.ptr<global>) grid [64, 1, 1] block 128 shared 4096
    target "sm_80" version "7.0" { ... cuda.return }`
    """

    name = "cuda.kernel"

    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, properties: dict[str, Attribute], body: Region) -> None:
        super().__init__(properties=properties, regions=[body])

    def verify_(self) -> None:
        self.verify_launch()
        for argument in self.body.block.args:
            if argument.type != GLOBAL:
                raise VerifyException(
                    f"parameter {argument.index}: expected {GLOBAL}, found {argument.type}"
                )
        if self.shared_bytes.data == 0:
            for op in self.body.walk():
                if op.name == "cuda.shared.base":
                    raise VerifyException("cuda.shared.base: the kernel has no shared memory")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("expected cuda.return at the end of the body")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        sym_name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        properties = cls.parse_launch(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls({"sym_name": sym_name, **properties}, parser.parse_region(arguments))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        self.print_launch(printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class BinaryOp(_Launched):
    """
    A kernel as PTX text, one string per line.

    Syntax: `cuda.binary @k grid [64, 1, 1] block 128 shared 0 target "sm_80" version "7.0" ptx {
    ".version 7.0" ".target sm_80" ... }`
    """

    name = "cuda.binary"

    ptx = prop_def(StringAttr)

    traits = traits_def(SymbolOpInterface())

    def __init__(self, properties: dict[str, Attribute], ptx: str) -> None:
        super().__init__(properties={**properties, "ptx": StringAttr(ptx)})

    def verify_(self) -> None:
        self.verify_launch()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        sym_name = parser.parse_symbol_name()
        properties = cls.parse_launch(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_keyword("ptx")
        lines: list[str] = []
        parser.parse_punctuation("{")
        while (line := parser.parse_optional_str_literal()) is not None:
            lines.append(line)
        parser.parse_punctuation("}")
        op = cls({"sym_name": sym_name, **properties}, "".join(f"{line}\n" for line in lines))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        self.print_launch(printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ptx {\n")
        for line in self.ptx.data.splitlines():
            printer.print_string("    ")
            printer.print_string_literal(line)
            printer.print_string("\n")
        printer.print_string("  }")
