"""
The operator table: one entry per operator, from which the `kernel` and `threadblock` ops are made.

An entry says what the layout table, the search and the verifiers need to know of an operator;
shapes follow from its kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
    COMPOSITE = "composite"
    """A whole-tensor operator that the search expands: the operand's shape."""


@dataclass(frozen=True, slots=True)
class Operator:
    """
    One operator. `linear`: f(a + b) = f(a) + f(b) for a unary or scalar operator. For a binary one,
    `linear_left` and `linear_right` say that with the other operand fixed, `additive` that it is
    linear in both operands together, as addition is.
    """

    name: str
    kind: Kind
    linear: bool = False
    linear_left: bool = False
    linear_right: bool = False
    additive: bool = False
    threadblock: bool = True
    """Whether it is also an operator on tiles; composites are not."""

    @property
    def arity(self) -> int:
        """The number of operands."""
        return 2 if self.kind in (Kind.BINARY, Kind.MATMUL) else 1


_TABLE = (
    Operator("matmul", Kind.MATMUL),
    # elementwise, one operand
    Operator("neg", Kind.UNARY, linear=True),
    Operator("exp", Kind.UNARY),
    Operator("log", Kind.UNARY),
    Operator("sqrt", Kind.UNARY),
    Operator("rsqrt", Kind.UNARY),
    Operator("square", Kind.UNARY),
    Operator("reciprocal", Kind.UNARY),
    Operator("sigmoid", Kind.UNARY),
    Operator("silu", Kind.UNARY),
    Operator("relu", Kind.UNARY),
    Operator("tanh", Kind.UNARY),
    # elementwise, two operands
    Operator("add", Kind.BINARY, additive=True),
    Operator("sub", Kind.BINARY, additive=True),
    Operator("mul", Kind.BINARY, linear_left=True, linear_right=True),
    Operator("div", Kind.BINARY, linear_left=True),
    Operator("maximum", Kind.BINARY),
    # elementwise with a constant
    Operator("scale", Kind.SCALAR, linear=True),
    Operator("shift", Kind.SCALAR),
    # reductions
    Operator("sum", Kind.SUM),
    # whole tensors only: a mean over a cut dim would divide by the tile's size
    Operator("mean", Kind.SUM, threadblock=False),
    Operator("rms_norm", Kind.COMPOSITE, threadblock=False),
)

OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}
"""Every operator by name."""
