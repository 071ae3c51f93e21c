"""Refuses what the lowering does not know yet, before it starts."""

from __future__ import annotations

from prism.codegen.errors import CannotLower
from prism.codegen.scalar_math import OPERATOR_RULES
from prism.dialects.kernel import GraphDefOp
from prism.dialects.operators import Kind
from prism.dialects.threadblock import AccumOp, OutputOp, TileOperatorOp


def check_known(graph: GraphDefOp) -> None:
    """Raises CannotLower at the first operator, accum or output without a lowering."""
    for op in graph.body.block.ops:
        match op:
            case TileOperatorOp():
                operator = op.operator
                known = operator.kind in (Kind.MATMUL, Kind.SUM) or operator.name in OPERATOR_RULES
                if not known:
                    raise CannotLower(f"{operator.name} is not lowered yet", op)
            case AccumOp() if op.kind_value != "sum":
                raise CannotLower(f"kind {op.kind_value} is not lowered yet", op)
            case OutputOp() if op.omap.new_axis is not None:
                raise CannotLower("a new dim is not lowered yet", op)
            case _:
                pass
