"""
The operator table: one entry per operator, from which the `kernel` and `threadblock` ops are made.

An entry says what the layout table, the search, the verifiers and the cost model need to know of an
operator; shapes follow from its kind (`shapes`), layouts from its kind and flags (`layouts`). What
a composite is in terms of other operators is in `expansions`; the meaning of all of them in numbers
is in `prism.verify.evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from prism.dialects.sym_expr import SymExpr


class Kind(Enum):
    """How an operator's result shape follows from its operands'."""

    UNARY = "unary"
    """Elementwise, one operand: the operand's shape."""
    SCALAR = "scalar"
    """Elementwise with a constant: the operand's shape."""
    BINARY = "binary"
    """
    Elementwise, two operands of one rank: each dim equal, or 1 in one operand, which broadcasts.
    """
    MATMUL = "matmul"
    """`[.., m, k] x [.., k, n] -> [.., m, n]`."""
    SUM = "sum"
    """A linear reduction over `dim`, which stays with size 1."""
    MAX = "max"
    """The maximum over `dim`, which stays with size 1."""
    TRANSPOSE = "transpose"
    """Dim i of the result is dim `permutation[i]` of the operand."""
    SLICE = "slice"
    """The elements of `dim` from the first of `bounds` up to before the second."""
    CONCAT = "concat"
    """Two operands or more, one after the other along `dim`; the other dims are equal."""
    BROADCAST = "broadcast"
    """Dims of size 1 repeated to what `shape` says."""
    RESHAPE = "reshape"
    """The elements in row-major order under another `shape`: dims are split or merged."""
    COMPOSITE = "composite"
    """A whole-tensor operator that the search expands: the first operand's shape."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """
    The attributes of an application of an operator; `Operator.takes` says which it has.

    `dim` counts from the first dim. `bounds` are the ends of a slice, or the least and the largest
    value of a clamp. `shape` is a whole shape, on tiles too.
    """

    dim: int | None = None
    constant: SymExpr | None = None
    bounds: tuple[SymExpr, SymExpr] | None = None
    permutation: tuple[int, ...] | None = None
    shape: tuple[SymExpr, ...] | None = None


_TAKES = {
    Kind.SCALAR: ("constant",),
    Kind.SUM: ("dim",),
    Kind.MAX: ("dim",),
    Kind.TRANSPOSE: ("permutation",),
    Kind.SLICE: ("dim", "bounds"),
    Kind.CONCAT: ("dim",),
    Kind.BROADCAST: ("shape",),
    Kind.RESHAPE: ("shape",),
}
"""The attributes that an operator takes by its kind, unless its entry says otherwise."""

_OPERANDS = {Kind.BINARY: ("lhs", "rhs"), Kind.MATMUL: ("lhs", "rhs"), Kind.CONCAT: None}
"""The names of operands by kind; `input` where not listed, None for two or more without names."""


@dataclass(frozen=True, slots=True)
class Operator:
    """
    One operator. `linear`: f(a + b) = f(a) + f(b) for an operator of one operand. For a binary one,
    `linear_left` and `linear_right` say that with the other operand fixed, `additive` that it is
    linear in both operands together, as addition is.
    """

    name: str
    kind: Kind
    linear: bool = False
    linear_left: bool = False
    linear_right: bool = False
    additive: bool = False
    monotone: bool = False
    """
    Defined for all numbers and increasing, so that f(max(a, b)) = max(f(a), f(b)); of a binary
    operator in its left operand, with the right one fixed.
    """
    monotone_right: bool = False
    threadblock: bool = True
    """Whether it is also an operator on tiles; composites are not."""
    attributes: tuple[str, ...] | None = None
    """The attributes of `Attributes` that it takes, where its kind does not say."""
    names: tuple[str, ...] | None = None
    """The names of its operands, where its kind does not say."""
    number: bool = False
    """Whether its constant is a number, not a size."""
    casts: bool = False
    """Whether the result's element type may differ from the operands'."""
    flops: int = 1
    """
    Arithmetic operations per element of the result: of a product or a reduction per element of the
    result and index of the reduced dim. A special function (exp, log, sqrt, a division) counts 4.
    """

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of the attributes that it takes, each of which must be given."""
        return _TAKES.get(self.kind, ()) if self.attributes is None else self.attributes

    @property
    def operands(self) -> tuple[str, ...] | None:
        """The names of its operands, or None for two or more."""
        return _OPERANDS.get(self.kind, ("input",)) if self.names is None else self.names

    def operand_name(self, index: int) -> str:
        """How messages name an operand."""
        names = self.operands
        return f"input{index}" if names is None else names[index]

    @property
    def arity(self) -> int | None:
        """The number of operands, or None for two or more."""
        return None if self.operands is None else len(self.operands)


_TABLE = (
    Operator("matmul", Kind.MATMUL, flops=2),
    # elementwise, one operand
    Operator("neg", Kind.UNARY, linear=True),
    Operator("exp", Kind.UNARY, monotone=True, flops=4),
    Operator("log", Kind.UNARY, flops=4),
    Operator("sqrt", Kind.UNARY, flops=4),
    Operator("rsqrt", Kind.UNARY, flops=4),
    Operator("square", Kind.UNARY),
    Operator("reciprocal", Kind.UNARY, flops=4),
    Operator("sigmoid", Kind.UNARY, monotone=True, flops=9),
    Operator("silu", Kind.UNARY, flops=10),
    Operator("relu", Kind.UNARY, monotone=True),
    Operator("tanh", Kind.UNARY, monotone=True, flops=10),
    Operator("gelu", Kind.UNARY, flops=20),
    Operator("gelu_tanh", Kind.UNARY, flops=15),
    # elementwise, two operands
    Operator("add", Kind.BINARY, additive=True, monotone=True, monotone_right=True),
    Operator("sub", Kind.BINARY, additive=True, monotone=True),
    Operator("mul", Kind.BINARY, linear_left=True, linear_right=True),
    Operator("div", Kind.BINARY, linear_left=True, flops=4),
    Operator("maximum", Kind.BINARY, monotone=True, monotone_right=True),
    # elementwise with a constant
    Operator("scale", Kind.SCALAR, linear=True),
    Operator("shift", Kind.SCALAR, monotone=True),
    Operator("pow", Kind.SCALAR, number=True, flops=9),
    Operator("at_least", Kind.SCALAR, monotone=True),
    Operator("at_most", Kind.SCALAR, monotone=True),
    # reductions
    Operator("sum", Kind.SUM),
    Operator("max", Kind.MAX),
    # the same elements elsewhere
    Operator("transpose", Kind.TRANSPOSE, linear=True, monotone=True, flops=0),
    Operator("slice", Kind.SLICE, linear=True, monotone=True, flops=0),
    Operator("concat", Kind.CONCAT, linear=True, monotone=True, flops=0),
    Operator("broadcast", Kind.BROADCAST, linear=True, monotone=True, flops=0),
    Operator("reshape", Kind.RESHAPE, linear=True, monotone=True, flops=0),
    # whole tensors only: a mean over a cut dim would divide by the tile's size
    Operator("mean", Kind.SUM, threadblock=False),
    Operator("cast", Kind.COMPOSITE, threadblock=False, casts=True, flops=0),
    Operator("clamp", Kind.COMPOSITE, threadblock=False, attributes=("bounds",), flops=2),
    Operator("softmax", Kind.COMPOSITE, threadblock=False, attributes=("dim",), flops=11),
    Operator("log_softmax", Kind.COMPOSITE, threadblock=False, attributes=("dim",), flops=8),
    Operator(
        "rms_norm",
        Kind.COMPOSITE,
        threadblock=False,
        attributes=("constant",),
        number=True,
        flops=6,
    ),
    Operator(
        "layer_norm",
        Kind.COMPOSITE,
        threadblock=False,
        attributes=("constant",),
        names=("input", "weight", "bias"),
        number=True,
        flops=10,
    ),
)

OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}
"""Every operator by name."""
