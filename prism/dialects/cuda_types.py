"""The types of the `cuda` dialect beside builtin scalars: pointers with an address space."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, bf16, f16, f32, i1, i32, i64
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

SPACES = ("global", "shared")
"""Address spaces: `global` addresses have 64 bits, `shared` ones 32."""


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute):
    """
    A byte address in an address space.

    Syntax: `!cuda.ptr<global>`
    """

    name = "cuda.ptr"

    space: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (StringAttr(parser.parse_identifier()),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.space.data)

    def verify(self) -> None:
        if self.space.data not in SPACES:
            raise VerifyException(
                f"address space: expected one of {', '.join(SPACES)}, found {self.space.data}"
            )


GLOBAL = PtrType(StringAttr("global"))
SHARED = PtrType(StringAttr("shared"))

REGISTER_BYTES: dict[Attribute, int] = {i32: 4, i64: 8, f16: 2, bf16: 2, f32: 4}
"""Bytes in memory of the scalar types that can be loaded and stored."""

REGISTER_CLASS: dict[Attribute, tuple[str, str]] = {
    i1: ("p", "pred"),
    i32: ("r", "b32"),
    SHARED: ("r", "b32"),
    i64: ("rd", "b64"),
    GLOBAL: ("rd", "b64"),
    f32: ("f", "f32"),
    f16: ("h", "b16"),
    bf16: ("h", "b16"),
}
"""Per type: the prefix of its PTX registers and their declared type."""

MEMORY_TYPE: dict[Attribute, str] = {
    i32: "b32",
    i64: "b64",
    f16: "b16",
    bf16: "b16",
    f32: "f32",
}
"""The PTX type of loads and stores of a scalar."""
