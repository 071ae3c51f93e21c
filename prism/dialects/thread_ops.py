"""Ops of the `thread` dialect that move tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from prism.dialects.thread_types import (
    DimWindow,
    FragmentType,
    SharedType,
    WindowAttr,
    parse_window,
    window_text,
)

Window = tuple[DimWindow, ...]
"""The part of a tensor: of its rows and columns, or one of its batch and of rows and columns."""


def matrix_window(window: Window) -> tuple[DimWindow, DimWindow]:
    """The rows and columns of a part."""
    return window[-2], window[-1]


def tensor_of(value: SSAValue) -> TensorType[Attribute]:
    """The tensor type of a kernel argument."""
    if not isinstance(value.type, TensorType):
        raise VerifyException(f"tensor: expected a builtin tensor, found {value.type}")
    return cast("TensorType[Attribute]", value.type)


def shared_of(value: SSAValue) -> SharedType:
    """The type of a shared tile."""
    if not isinstance(value.type, SharedType):
        raise VerifyException(f"expected a !thread.shared, found {value.type}")
    return value.type


def fragment_of(value: SSAValue) -> FragmentType:
    """The type of a fragment."""
    if not isinstance(value.type, FragmentType):
        raise VerifyException(f"expected a !thread.fragment, found {value.type}")
    return value.type


def _verify_window(window: Window, tensor: TensorType[Attribute]) -> None:
    sizes = tuple(dim.size for dim in window)
    if tensor.get_shape() != sizes:
        raise VerifyException(
            f"window: expected sizes {list(tensor.get_shape())} of the tensor, found {list(sizes)}"
        )
    for dim in window[:-2]:
        if dim.extent != 1:
            raise VerifyException(
                f"window: expected parts of extent 1 in a batch's dim, found {dim.extent}"
            )


@irdl_op_definition
class AllocOp(IRDLOperation):
    """
    A tile of shared memory for the whole kernel, its contents undefined.

    Syntax: `%s = thread.alloc : !thread.shared<[8, 64], f16, pitch 72>`
    """

    name = "thread.alloc"

    result = result_def(SharedType)

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: SharedType) -> None:
        super().__init__(result_types=[type])


@irdl_op_definition
class CopyOp(IRDLOperation):
    """
    Copies a part of a tensor to a shared tile, zeros where the tile is larger or the tensor ends.

    `async` copies are complete for their thread after a `thread.wait`, for others after a barrier
    behind it. A tile with stages is filled ahead: `ahead 2` copies the part of the second next
    index of the loop around the copy, `at i = 1` that of a given index before the loop; nothing
    where the loop has no such index.

    Syntax: `thread.copy async %x [8, 4096 cut i by 64] ahead 2 to %s : tensor<8x4096xf16>,
    !thread.shared<..>`
    """

    name = "thread.copy"

    tensor = operand_def(TensorType)
    tile = operand_def(SharedType)
    window = prop_def(WindowAttr)
    asynchronous = opt_prop_def(UnitAttr)
    ahead = opt_prop_def(IntAttr)
    axis = opt_prop_def(StringAttr)
    index = opt_prop_def(IntAttr)

    def __init__(
        self,
        tensor: SSAValue,
        window: Window,
        tile: SSAValue,
        *,
        asynchronous: bool = False,
        ahead: int | None = None,
        at: tuple[str, int] | None = None,
    ) -> None:
        super().__init__(
            operands=[tensor, tile],
            properties={
                "window": WindowAttr(window),
                "asynchronous": UnitAttr() if asynchronous else None,
                "ahead": None if ahead is None else IntAttr(ahead),
                "axis": None if at is None else StringAttr(at[0]),
                "index": None if at is None else IntAttr(at[1]),
            },
        )

    def verify_(self) -> None:
        tensor, tile = tensor_of(self.tensor), shared_of(self.tile)
        _verify_window(self.window.data, tensor)
        if tensor.element_type != tile.element_type:
            raise VerifyException(
                f"tile: expected element type {tensor.element_type} of the tensor, "
                f"found {tile.element_type}"
            )
        for dim, (part, size) in enumerate(
            zip(matrix_window(self.window.data), tile.sizes, strict=True)
        ):
            if size < part.extent:
                raise VerifyException(
                    f"tile: expected at least {part.extent} elements in dim {dim}, found {size}"
                )
        self._verify_stage(tile.stages.data)

    def _verify_stage(self, stages: int) -> None:
        if (self.axis is None) != (self.index is None) or (self.axis and self.ahead):
            raise VerifyException("expected either ahead or at with an axis and an index")
        if stages > 1 and self.ahead is None and self.index is None:
            raise VerifyException("expected ahead or at, since the tile has stages")
        if self.ahead is not None and self.ahead.data != stages - 1:
            raise VerifyException(
                f"ahead: expected {stages - 1}, one less than the stages of the tile, "
                f"found {self.ahead.data}"
            )
        if self.index is not None and not 0 <= self.index.data < stages:
            raise VerifyException(f"at: expected an index below {stages}, found {self.index.data}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        asynchronous = parser.parse_optional_keyword("async") is not None
        tensor = parser.parse_unresolved_operand()
        window = parse_window(parser)
        ahead: int | None = None
        at: tuple[str, int] | None = None
        if parser.parse_optional_keyword("ahead"):
            ahead = parser.parse_integer(allow_boolean=False)
        elif parser.parse_optional_keyword("at"):
            axis = parser.parse_identifier()
            parser.parse_punctuation("=")
            at = axis, parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("to")
        tile = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        source = parser.resolve_operand(tensor, parser.parse_type())
        parser.parse_punctuation(",")
        target = parser.resolve_operand(tile, parser.parse_type())
        return cls(source, window, target, asynchronous=asynchronous, ahead=ahead, at=at)

    def print(self, printer: Printer) -> None:
        printer.print_string(" async " if self.asynchronous is not None else " ")
        printer.print_ssa_value(self.tensor)
        printer.print_string(f" {window_text(self.window.data)}")
        if self.ahead is not None:
            printer.print_string(f" ahead {self.ahead.data}")
        if self.axis is not None and self.index is not None:
            printer.print_string(f" at {self.axis.data} = {self.index.data}")
        printer.print_string(" to ")
        printer.print_ssa_value(self.tile)
        printer.print_string(" : ")
        printer.print_list([self.tensor.type, self.tile.type], printer.print_attribute)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """
    Stores a fragment, rounded to the tensor's element type, to a part of a tensor; nothing beyond
    the part or the tensor's end. Of the blocks that differ only on the axes of `once`, the first
    stores.

    Syntax: `thread.store %f to %o [8, 4096 cut x by 64] once [y] : !thread.fragment<..>,
    tensor<8x4096xf16>`
    """

    name = "thread.store"

    value = operand_def(FragmentType)
    tensor = operand_def(TensorType)
    window = prop_def(WindowAttr)
    once = prop_def(ArrayAttr[StringAttr])

    def __init__(
        self, value: SSAValue, tensor: SSAValue, window: Window, once: Sequence[str] = ()
    ) -> None:
        super().__init__(
            operands=[value, tensor],
            properties={
                "window": WindowAttr(window),
                "once": ArrayAttr([StringAttr(axis) for axis in once]),
            },
        )

    def verify_(self) -> None:
        fragment = fragment_of(self.value)
        _verify_window(self.window.data, tensor_of(self.tensor))
        if fragment.owed:
            raise VerifyException("value: expected a whole fragment, found a partial one")
        for dim, (part, size) in enumerate(
            zip(matrix_window(self.window.data), fragment.sizes, strict=True)
        ):
            if size < part.extent:
                raise VerifyException(
                    f"value: expected at least {part.extent} elements in dim {dim}, found {size}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        tensor = parser.parse_unresolved_operand()
        window = parse_window(parser)
        once: list[str] = []
        if parser.parse_optional_keyword("once"):
            once = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_identifier
            )
        parser.parse_punctuation(":")
        source = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation(",")
        return cls(source, parser.resolve_operand(tensor, parser.parse_type()), window, once)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" to ")
        printer.print_ssa_value(self.tensor)
        printer.print_string(f" {window_text(self.window.data)}")
        if self.once:
            printer.print_string(f" once [{', '.join(axis.data for axis in self.once)}]")
        printer.print_string(" : ")
        printer.print_list([self.value.type, self.tensor.type], printer.print_attribute)


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Waits for all threads of the block and orders their accesses to shared tiles."""

    name = "thread.barrier"

    assembly_format = "attr-dict"


@irdl_op_definition
class CommitOp(IRDLOperation):
    """Ends a group of the asynchronous copies that the thread started since the last one."""

    name = "thread.commit"

    assembly_format = "attr-dict"


@irdl_op_definition
class WaitOp(IRDLOperation):
    """
    Waits until at most `pending` of the thread's groups of asynchronous copies are incomplete.

    Syntax: `thread.wait 2`
    """

    name = "thread.wait"

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


@irdl_op_definition
class ZeroOp(IRDLOperation):
    """
    A fragment of zeros.

    Syntax: `%f = thread.zero : !thread.fragment<..>`
    """

    name = "thread.zero"

    result = result_def(FragmentType)

    traits = traits_def(Pure())

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: FragmentType) -> None:
        super().__init__(result_types=[type])


@irdl_op_definition
class SpillOp(IRDLOperation):
    """
    Stores a fragment to a shared tile that it covers, rounded to the tile's element type.

    Syntax: `thread.spill %f to %s : !thread.fragment<..>, !thread.shared<..>`
    """

    name = "thread.spill"

    value = operand_def(FragmentType)
    tile = operand_def(SharedType)

    assembly_format = "$value `to` $tile attr-dict `:` type($value) `,` type($tile)"

    def __init__(self, value: SSAValue, tile: SSAValue) -> None:
        super().__init__(operands=[value, tile])

    def verify_(self) -> None:
        fragment, tile = fragment_of(self.value), shared_of(self.tile)
        if fragment.owed:
            raise VerifyException("value: expected a whole fragment, found a partial one")
        if any(size < wanted for size, wanted in zip(fragment.sizes, tile.sizes, strict=True)):
            raise VerifyException(
                f"value: expected a fragment that covers {list(tile.sizes)}, "
                f"found {list(fragment.sizes)}"
            )
