"""Elementwise chains of a threadblock graph as scalar regions of `thread` maps and reductions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Region, SSAValue

from prism.codegen.graph_point import GraphPoint
from prism.codegen.scalar_math import OPERATOR_RULES, ScalarBuilder
from prism.dialects.operators import Kind
from prism.dialects.thread import YieldOp
from prism.dialects.threadblock import TileOperatorOp

ELEMENTWISE = (Kind.UNARY, Kind.BINARY, Kind.SCALAR)


def is_elementwise(value: SSAValue) -> bool:
    """Whether a value is computed element by element from its operands."""
    owner = value.owner
    return isinstance(owner, TileOperatorOp) and owner.operator.kind in ELEMENTWISE


@dataclass(frozen=True)
class Expression:
    """A value as elementwise operators, in order, over leaves that are no elementwise results."""

    value: SSAValue
    leaves: tuple[SSAValue, ...]
    operators: tuple[TileOperatorOp, ...]


def expression_of(value: SSAValue) -> Expression:
    """
    The elementwise operators between a value and the inputs, products and sums that it is made of.
    """
    needed: set[SSAValue] = set()
    leaves: dict[SSAValue, None] = {}
    pending = [value]
    while pending:
        current = pending.pop()
        if current in needed or current in leaves:
            continue
        if not is_elementwise(current):
            leaves[current] = None
            continue
        needed.add(current)
        assert isinstance(current.owner, TileOperatorOp)  # by is_elementwise
        # the last operand is looked at last, so that leaves come in reading order
        pending.extend(reversed(current.owner.inputs))
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    assert block is not None
    operators = tuple(
        op for op in block.ops if isinstance(op, TileOperatorOp) and op.result in needed
    )
    return Expression(value, tuple(leaves), operators)


def scalar_region(expression: Expression, point: GraphPoint, *, accumulate: bool = False) -> Region:
    """
    The region that computes one element of an expression from one of each leaf.

    With `accumulate` it takes one more argument, to which it adds the element.
    """
    count = len(expression.leaves) + accumulate
    block = Block(arg_types=[f32] * count)
    values: dict[SSAValue, SSAValue] = dict(
        zip(expression.leaves, block.args[: len(expression.leaves)], strict=True)
    )
    build = ScalarBuilder(block)
    for op in expression.operators:
        constant = op.constant_value
        number = 0.0 if constant is None else point.constant(constant, op)
        operands = [values[operand] for operand in op.inputs]
        values[op.result] = OPERATOR_RULES[op.operator.name](build, operands, number)
    result = values[expression.value]
    if accumulate:
        result = build.op(arith.AddfOp(block.args[-1], result))
    block.add_op(YieldOp(result))
    return Region(block)
