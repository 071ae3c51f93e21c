"""
The `sym` dialect: symbolic sizes, shapes, maps and constraints as attributes.

Workload tensors stay builtin: a symbolic shape is the encoding of a builtin tensor type,
`tensor<?x?xf16, #sym.shape<[n, d]>>`, so that `func`, `linalg` and their like connect without
casts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType
from xdsl.ir import Attribute, Data, Dialect
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from prism.dialects.sym_expr import SymExpr
from prism.dialects.sym_syntax import parse_expr

GRID_AXES = ("x", "y", "z")
"""Grid axes in order: one per dimension of a CUDA grid."""

LOOP_AXES = ("i", "j", "k")
"""Loop axes, the outermost first."""


def axis_parameter(axis: str) -> str:
    """The parameter that is the size of `axis`: `grid.x` for x, `loop.i` for i."""
    return f"grid.{axis}" if axis in GRID_AXES else f"loop.{axis}"


def is_axis_parameter(name: str) -> bool:
    """
    Whether a parameter is the size of an axis (or a Boolean power of it), not of the workload.
    """
    return name.startswith(("grid.", "loop."))


SPLIT = "split."
"""
How the names of sizes begin that are the block count of a grid axis over which an output has a new
dim: free parameters of a candidate, not of its workload.
"""


@irdl_attr_definition
class ExprAttr(Data[SymExpr]):
    """A symbolic size. Syntax: `#sym.expr<n / (grid.x * loop.i)>`."""

    name = "sym.expr"

    @classmethod
    def of(cls, value: SymExpr | int | Fraction | str) -> ExprAttr:
        """The attribute of a number, a parameter's name or an expression."""
        return cls(SymExpr.of(value))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SymExpr:
        with parser.in_angle_brackets():
            return parse_expr(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


@irdl_attr_definition
class ShapeAttr(Data[tuple[SymExpr, ...]]):
    """A symbolic shape, the encoding of a builtin tensor. Syntax: `#sym.shape<[n, d]>`."""

    name = "sym.shape"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[SymExpr, ...]:
        with parser.in_angle_brackets():
            return tuple(
                parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: parse_expr(parser)
                )
            )

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{shape_text(self.data)}>")


def shape_text(shape: Iterable[SymExpr]) -> str:
    """`[n, d / grid.x]`."""
    return f"[{', '.join(map(str, shape))}]"


def as_tensor(attribute: Attribute) -> TensorType[Attribute]:
    """The attribute as a ranked tensor type; VerifyException if it is something else."""
    if not isinstance(attribute, TensorType):
        raise VerifyException(f"expected a ranked tensor, found {attribute}")
    return cast("TensorType[Attribute]", attribute)


def shape_of(attribute: Attribute) -> tuple[SymExpr, ...]:
    """
    The symbolic shape of a builtin tensor type: its encoding, or its static sizes.

    Raises VerifyException if it is not a ranked tensor, if a dynamic size has no symbol, or if
    encoding and static sizes disagree.
    """
    tensor = as_tensor(attribute)
    sizes = tensor.get_shape()
    if isinstance(tensor.encoding, NoneAttr):
        if DYNAMIC_INDEX in sizes:
            raise VerifyException(
                f"dim {sizes.index(DYNAMIC_INDEX)} of {tensor} is dynamic and has no symbolic "
                "size: expected an encoding #sym.shape<[...]>"
            )
        shape = tuple(SymExpr.constant(size) for size in sizes)
    elif isinstance(tensor.encoding, ShapeAttr):
        shape = tensor.encoding.data
    else:
        raise VerifyException(
            f"encoding of {tensor}: expected #sym.shape<[...]>, found {tensor.encoding}"
        )
    if len(shape) != len(sizes):
        raise VerifyException(
            f"encoding of {tensor}: expected {len(sizes)} sizes, found {len(shape)}"
        )
    for dim, (size, expr) in enumerate(zip(sizes, shape, strict=True)):
        value = expr.as_constant()
        if value is not None and (value.denominator != 1 or value <= 0):
            raise VerifyException(f"dim {dim} of {tensor}: expected a positive size, found {value}")
        expected = DYNAMIC_INDEX if value is None else int(value)
        if size != expected:
            found = "?" if size == DYNAMIC_INDEX else str(size)
            raise VerifyException(
                f"dim {dim} of {tensor}: expected {'?' if value is None else expected} "
                f"for the size {expr}, found {found}"
            )
    return shape


def tensor_type(shape: Sequence[SymExpr], element_type: Attribute) -> TensorType[Attribute]:
    """The builtin tensor type of a symbolic shape; constant sizes are static in it."""
    constants = [expr.as_constant() for expr in shape]
    sizes = [DYNAMIC_INDEX if value is None else int(value) for value in constants]
    encoding = ShapeAttr(tuple(shape)) if DYNAMIC_INDEX in sizes else NoneAttr()
    return TensorType(element_type, sizes, encoding)


@dataclass(frozen=True, slots=True)
class AxisMap:
    """
    Which dim of a tensor each axis cuts; an axis without an entry replicates the tensor.

    An entry is a dim (concrete) or, per dim of the tensor, the name of the Boolean variable that
    says whether the axis cuts that dim (symbolic; the paper's m_{T,d,p}).

    `new_axis` is the axis of an omap whose index is a new leading dim of the output; it has no
    entry, and the dims of the other entries are those of the tile.
    """

    entries: tuple[tuple[str, int | tuple[str, ...]], ...]
    new_axis: str | None = None

    @property
    def concrete(self) -> bool:
        """Whether every entry is a dim."""
        return all(isinstance(entry, int) for _, entry in self.entries)

    @property
    def cuts(self) -> dict[str, int]:
        """The dim that each axis cuts, of a concrete map."""
        return {axis: entry for axis, entry in self.entries if isinstance(entry, int)}

    @property
    def variables(self) -> dict[str, tuple[str, ...]]:
        """The Boolean variables of each axis, one per dim, of a symbolic map."""
        return {axis: entry for axis, entry in self.entries if isinstance(entry, tuple)}

    def __str__(self) -> str:
        def text(entry: int | tuple[str, ...]) -> str:
            return str(entry) if isinstance(entry, int) else f"[{', '.join(entry)}]"

        new = [] if self.new_axis is None else [f"{self.new_axis} = new"]
        return "{" + ", ".join([*new, *(f"{axis} = {text(e)}" for axis, e in self.entries)]) + "}"


@irdl_attr_definition
class MapAttr(Data[AxisMap]):
    """
    An imap, fmap or omap.

    Syntax: `#sym.map<{x = 1, i = 0}>`, or with Boolean variables `#sym.map<{x = [m0, m1]}>`; in an
    omap `{x = new}` for an axis whose index is a new leading dim.
    """

    name = "sym.map"

    @classmethod
    def of(cls, entries: Mapping[str, int | Sequence[str]], new: str | None = None) -> MapAttr:
        """The map of a dictionary from axes to dims or to Boolean variables."""
        return cls(
            AxisMap(
                tuple(
                    (axis, entry if isinstance(entry, int) else tuple(entry))
                    for axis, entry in entries.items()
                ),
                new,
            )
        )

    @property
    def concrete(self) -> bool:
        """Whether every entry is a dim."""
        return self.data.concrete

    @property
    def cuts(self) -> dict[str, int]:
        """The dim that each axis cuts, of a concrete map."""
        return self.data.cuts

    @property
    def variables(self) -> dict[str, tuple[str, ...]]:
        """The Boolean variables of each axis, one per dim, of a symbolic map."""
        return self.data.variables

    @property
    def new_axis(self) -> str | None:
        """The axis whose index is a new leading dim, of an omap, else None."""
        return self.data.new_axis

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AxisMap:
        with parser.in_angle_brackets():
            return parse_map(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def parse_map(parser: AttrParser) -> AxisMap:
    """Parses `{x = 1, i = [m2, m3]}`, in which one entry may be `new`."""
    seen: set[str] = set()
    new: list[str] = []

    def entry() -> tuple[str, int | tuple[str, ...]] | None:
        start = parser.pos
        axis = parser.parse_identifier(context_msg=": the name of an axis")
        if axis not in GRID_AXES and axis not in LOOP_AXES:
            axes = ", ".join((*GRID_AXES, *LOOP_AXES))
            parser.raise_error(
                f"expected an axis, one of {axes}; found '{axis}'", start, parser.pos
            )
        if axis in seen:
            parser.raise_error(f"axis '{axis}' occurs twice in a map", start, parser.pos)
        seen.add(axis)
        parser.parse_punctuation("=")
        if parser.parse_optional_keyword("new"):
            if new:
                parser.raise_error("a map has at most one new dim", start, parser.pos)
            new.append(axis)
            return None
        dim = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        if dim is not None:
            return axis, dim
        return axis, tuple(
            parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
        )

    entries = parser.parse_comma_separated_list(parser.Delimiter.BRACES, entry)
    return AxisMap(tuple(e for e in entries if e is not None), new[0] if new else None)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on Boolean map variables; `KINDS` says what each kind means."""

    kind: str
    variables: tuple[str, ...]

    KINDS: ClassVar[dict[str, str]] = {
        "at_most_one": "at most one of the variables is true",
        "equal": "the variables are all true or all false",
        "never": "no variable is true",
        "some": "at least one variable is true",
    }

    def holds(self, values: Mapping[str, bool]) -> bool:
        """Whether an assignment of all variables satisfies the constraint."""
        true = sum(values[name] for name in self.variables)
        match self.kind:
            case "at_most_one":
                return true <= 1
            case "equal":
                return true in (0, len(self.variables))
            case "never":
                return true == 0
            case _:
                return true >= 1

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.variables)})"


@irdl_attr_definition
class ConstraintAttr(Data[Constraint]):
    """A condition on Boolean map variables. Syntax: `#sym.constraint<at_most_one(m0, m1)>`."""

    name = "sym.constraint"

    @classmethod
    def of(cls, kind: str, variables: Iterable[str]) -> ConstraintAttr:
        """The constraint of a kind of `Constraint.KINDS` on variables."""
        return cls(Constraint(kind, tuple(variables)))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Constraint:
        with parser.in_angle_brackets():
            return parse_constraint(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def parse_constraint(parser: AttrParser) -> Constraint:
    """Parses `at_most_one(m0, m1)`."""
    start = parser.pos
    kind = parser.parse_identifier(context_msg=": the kind of a constraint")
    if kind not in Constraint.KINDS:
        kinds = ", ".join(Constraint.KINDS)
        parser.raise_error(
            f"expected a constraint, one of {kinds}; found '{kind}'", start, parser.pos
        )
    names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
    return Constraint(kind, tuple(names))


Sym = Dialect("sym", [], [ExprAttr, ShapeAttr, MapAttr, ConstraintAttr])
