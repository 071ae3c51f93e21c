"""
The types of the `thread` dialect: tiles with a memory space, and how a fragment is spread over
threads.

A fragment is a 2-D tile of f32 in registers. Its layout says which elements each thread holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntAttr, bf16, f16, f32
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from prism.dialects.sym import GRID_AXES, LOOP_AXES

MMA_LONG, MMA_SHORT, MMA_DEPTH = 16, 8, 16
"""m16n8k16: the sizes of the long side, the short side and the contraction of one mma."""

WARP = 32
"""Threads of a warp."""

MAX_THREAD_REGISTERS = 255
"""The most registers of a thread on every target."""

TENSOR_RANKS = (2, 3)
"""Ranks of tensors: rows and columns, or a batch of them."""

UNIT_BYTES = 16
"""Bytes of the widest access, by which shared tiles are swizzled."""

SWIZZLED_UNITS = (2, 4)
"""Units of a row that a swizzle permutes: of wider rows a padded pitch frees the banks as well."""

MAX_STAGES = 6
"""The most tiles of a pipeline that are in flight or in use at a time."""

MAX_TENSOR_BYTES = 2**31 - 1
"""Offsets in a tensor are 32-bit integers."""


@dataclass(frozen=True, slots=True)
class MmaLayout:
    """
    The accumulators of m16n8k16 (PTX ISA 9.7.14.5) over `warps` = (long, short, k), each warp
    holding `tiles` = (long, short) products side by side.

    The long side is the tile's rows, or with `swap` its columns: the warp then computes the
    transposed product, so that few rows meet the 8-side.
    """

    warps: tuple[int, int, int]
    tiles: tuple[int, int]
    swap: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns that all warps together hold."""
        long = self.warps[0] * self.tiles[0] * MMA_LONG
        short = self.warps[1] * self.tiles[1] * MMA_SHORT
        return (short, long) if self.swap else (long, short)

    @property
    def threads(self) -> int:
        """The threads of the block."""
        return self.warps[0] * self.warps[1] * self.warps[2] * WARP

    @property
    def registers(self) -> int:
        """The elements that one thread holds."""
        return self.tiles[0] * self.tiles[1] * 4

    def __str__(self) -> str:
        warps = ", ".join(map(str, self.warps))
        tiles = ", ".join(map(str, self.tiles))
        return f"mma warps [{warps}] tiles [{tiles}]{' swap' if self.swap else ''}"


@dataclass(frozen=True, slots=True)
class RowsLayout:
    """
    Rows over groups of `lanes` threads: lane l of a group holds `vector` columns at l * vector,
    then those `lanes * vector` further on, and so on; the next group holds the next row.
    """

    threads: int
    lanes: int
    vector: int

    @property
    def rows_per_pass(self) -> int:
        """The rows that the block holds at a time."""
        return self.threads // self.lanes

    def passes(self, shape: tuple[int, int]) -> tuple[int, int]:
        """How often a thread goes to further rows and columns to cover a shape."""
        rows, columns = shape
        return -(-rows // self.rows_per_pass), -(-columns // (self.lanes * self.vector))

    def __str__(self) -> str:
        return f"rows threads {self.threads} lanes {self.lanes} vector {self.vector}"


Layout = MmaLayout | RowsLayout


@irdl_attr_definition
class LayoutAttr(Data[Layout]):
    """
    How a fragment is spread over threads.

    Syntax: `#thread.layout<mma warps [2, 2, 1] tiles [1, 4] swap>` or
    `#thread.layout<rows threads 128 lanes 16 vector 8>`
    """

    name = "thread.layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        with parser.in_angle_brackets():
            return parse_layout(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def _parse_keyed(parser: AttrParser, keyword: str) -> int:
    parser.parse_keyword(keyword)
    return parser.parse_integer(allow_boolean=False)


def _parse_sizes(parser: AttrParser) -> tuple[int, ...]:
    return tuple(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)
        )
    )


def parse_layout(parser: AttrParser) -> Layout:
    """Parses what a layout prints as."""
    pos = parser.pos
    if parser.parse_optional_keyword("rows"):
        threads = _parse_keyed(parser, "threads")
        lanes = _parse_keyed(parser, "lanes")
        layout = RowsLayout(threads, lanes, _parse_keyed(parser, "vector"))
        if min(layout.threads, layout.lanes, layout.vector) < 1 or threads % lanes:
            parser.raise_error("expected positive sizes and lanes that divide threads", pos)
        return layout
    parser.parse_keyword("mma")
    parser.parse_keyword("warps")
    warps = _parse_sizes(parser)
    parser.parse_keyword("tiles")
    tiles = _parse_sizes(parser)
    if len(warps) != 3 or len(tiles) != 2 or min(*warps, *tiles) < 1:
        parser.raise_error("expected 3 warp counts and 2 tile counts, all positive", pos)
    swap = parser.parse_optional_keyword("swap") is not None
    return MmaLayout((warps[0], warps[1], warps[2]), (tiles[0], tiles[1]), swap)


@irdl_attr_definition
class FragmentType(ParametrizedAttribute, TypeAttribute):
    """
    A tile of f32 in registers, spread over threads by a layout. `partial` says that the sum over
    the layout's k warps is owed; otherwise they hold equal values.

    Syntax: `!thread.fragment<[8, 64], mma warps [4, 1, 1] tiles [1, 1] swap, partial>`
    """

    name = "thread.fragment"

    shape: ArrayAttr[IntAttr]
    layout: LayoutAttr
    partial: IntAttr

    def __init__(self, shape: tuple[int, int], layout: Layout, *, partial: bool = False) -> None:
        super().__init__(
            ArrayAttr([IntAttr(size) for size in shape]), LayoutAttr(layout), IntAttr(int(partial))
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = (size.data for size in self.shape)
        return rows, columns

    @property
    def owed(self) -> bool:
        """Whether the sum over the k warps is owed."""
        return bool(self.partial.data)

    @property
    def registers(self) -> int:
        """The f32 registers that one thread needs."""
        layout = self.layout.data
        if isinstance(layout, MmaLayout):
            return layout.registers
        rows, columns = layout.passes(self.sizes)
        return rows * columns * layout.vector

    def verify(self) -> None:
        if len(self.shape) != 2 or any(size.data < 1 for size in self.shape):
            raise VerifyException("shape: expected 2 positive sizes")
        layout = self.layout.data
        if isinstance(layout, MmaLayout) and layout.shape != self.sizes:
            raise VerifyException(
                f"shape: expected {list(layout.shape)} by the layout, found {list(self.sizes)}"
            )
        if isinstance(layout, RowsLayout) and layout.vector not in (1, 2, 4, 8):
            raise VerifyException(f"vector: expected 1, 2, 4 or 8, found {layout.vector}")
        if self.owed and not isinstance(layout, MmaLayout):
            raise VerifyException("partial: expected an mma layout, found rows")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape = ArrayAttr([IntAttr(size) for size in _parse_sizes(parser)])
            parser.parse_punctuation(",")
            layout = LayoutAttr(parse_layout(parser))
            partial = 0
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("partial")
                partial = 1
        return shape, layout, IntAttr(partial)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{list(self.sizes)}, {self.layout.data}")
            if self.owed:
                printer.print_string(", partial")


@irdl_attr_definition
class SharedType(ParametrizedAttribute, TypeAttribute):
    """
    A row-major tile in shared memory; `pitch` is the distance of rows in elements.

    `swizzle`: the units of 16 bytes of a row are permuted, unit u of row r standing at
    `u ^ swizzle_phase(r)`, so that units of 8 consecutive rows lie in different banks although the
    rows are dense. `stages`: one tile for each of so many consecutive indices of the loop around
    its uses, a use meaning the tile of its own index.

    Syntax: `!thread.shared<[64, 32], f16, pitch 32, swizzle, stages 3>`
    """

    name = "thread.shared"

    shape: ArrayAttr[IntAttr]
    element_type: Attribute
    pitch: IntAttr
    swizzle: IntAttr
    stages: IntAttr

    def __init__(
        self,
        shape: tuple[int, int],
        element_type: Attribute,
        pitch: int,
        *,
        swizzle: bool = False,
        stages: int = 1,
    ) -> None:
        super().__init__(
            ArrayAttr([IntAttr(size) for size in shape]),
            element_type,
            IntAttr(pitch),
            IntAttr(int(swizzle)),
            IntAttr(stages),
        )

    @property
    def swizzled(self) -> bool:
        """Whether the units of a row are permuted."""
        return bool(self.swizzle.data)

    @property
    def row_units(self) -> int:
        """The units of 16 bytes of a row and its padding."""
        return self.pitch.data * self.element_bytes // UNIT_BYTES

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = (size.data for size in self.shape)
        return rows, columns

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return ELEMENT_BYTES[self.element_type]

    @property
    def bytes(self) -> int:
        """Bytes of the tile of one stage."""
        return self.sizes[0] * self.pitch.data * self.element_bytes

    def verify(self) -> None:
        if len(self.shape) != 2 or any(size.data < 1 for size in self.shape):
            raise VerifyException("shape: expected 2 positive sizes")
        if self.element_type not in ELEMENT_BYTES:
            raise VerifyException(
                f"element type: expected f16, bf16 or f32, found {self.element_type}"
            )
        if self.pitch.data < self.sizes[1]:
            raise VerifyException(
                f"pitch: expected at least {self.sizes[1]}, found {self.pitch.data}"
            )
        if self.swizzled and (
            self.pitch.data != self.sizes[1] or self.row_units not in SWIZZLED_UNITS
        ):
            raise VerifyException(
                f"swizzle: expected dense rows of {' or '.join(map(str, SWIZZLED_UNITS))} units of "
                f"{UNIT_BYTES} bytes, found {self.sizes[1]} elements, pitch {self.pitch.data}"
            )
        if not 1 <= self.stages.data <= MAX_STAGES:
            raise VerifyException(f"stages: expected 1 to {MAX_STAGES}, found {self.stages.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape = ArrayAttr([IntAttr(size) for size in _parse_sizes(parser)])
            parser.parse_punctuation(",")
            element_type = parser.parse_type()
            parser.parse_punctuation(",")
            pitch = IntAttr(_parse_keyed(parser, "pitch"))
            swizzle, stages = 0, 1
            while parser.parse_optional_punctuation(","):
                if parser.parse_optional_keyword("swizzle"):
                    swizzle = 1
                else:
                    stages = _parse_keyed(parser, "stages")
        return shape, element_type, pitch, IntAttr(swizzle), IntAttr(stages)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{list(self.sizes)}, ")
            printer.print_attribute(self.element_type)
            printer.print_string(f", pitch {self.pitch.data}")
            if self.swizzled:
                printer.print_string(", swizzle")
            if self.stages.data > 1:
                printer.print_string(f", stages {self.stages.data}")


ELEMENT_BYTES: dict[Attribute, int] = {f16: 2, bf16: 2, f32: 4}
"""Bytes of the element types that kernels read and write."""


@dataclass(frozen=True, slots=True)
class DimWindow:
    """
    The part of one dim of a tensor that a tile is: `size` elements, cut by each axis in turn into
    parts of an extent, the index of the axis choosing the part. The last part of a cut may be
    short.
    """

    size: int
    cuts: tuple[tuple[str, int], ...] = ()

    @property
    def extent(self) -> int:
        """The size of a whole part."""
        return self.cuts[-1][1] if self.cuts else self.size

    def __str__(self) -> str:
        return " ".join([str(self.size), *(f"cut {axis} by {tile}" for axis, tile in self.cuts)])


@irdl_attr_definition
class WindowAttr(Data[tuple[DimWindow, ...]]):
    """
    Which part of a tensor a tile is; of 3 dims the last two are the tile's. Indices of axes are
    those of the block (grid axes) or of the enclosing `thread.for` (loop axes).

    Syntax: `#thread.window<[8, 4096 cut x by 64 cut i by 16]>`
    """

    name = "thread.window"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[DimWindow, ...]:
        with parser.in_angle_brackets():
            return parse_window(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(window_text(self.data))


def window_text(window: tuple[DimWindow, ...]) -> str:
    """The window as it prints, in square brackets."""
    return f"[{', '.join(map(str, window))}]"


def parse_window(parser: AttrParser) -> tuple[DimWindow, ...]:
    """Parses what `window_text` gives."""

    def dim() -> DimWindow:
        size = parser.parse_integer(allow_boolean=False)
        cuts: list[tuple[str, int]] = []
        while parser.parse_optional_keyword("cut"):
            axis = parser.parse_identifier()
            if axis not in (*GRID_AXES, *LOOP_AXES):
                parser.raise_error(f"expected the name of an axis, found {axis}")
            cuts.append((axis, _parse_keyed(parser, "by")))
        if size < 1 or any(tile < 1 for _, tile in cuts):
            parser.raise_error("expected positive sizes")
        return DimWindow(size, tuple(cuts))

    pos = parser.pos
    dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, dim)
    if len(dims) not in TENSOR_RANKS:
        parser.raise_error(f"expected 2 or 3 dims, found {len(dims)}", pos, parser.pos)
    return tuple(dims)
