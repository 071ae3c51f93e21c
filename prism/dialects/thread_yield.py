"""The op that ends the regions of the `thread` dialect."""

from __future__ import annotations

from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, lazy_traits_def
from xdsl.traits import HasParent, IsTerminator, OpTrait


def _yield_traits() -> tuple[OpTrait, ...]:
    from prism.dialects.thread_elementwise import MapOp, ReduceOp
    from prism.dialects.thread_kernel import ForOp

    return IsTerminator(), HasParent(ForOp, MapOp, ReduceOp)


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends the region of a loop, a map or a reduction with its values."""

    name = "thread.yield"

    traits = lazy_traits_def(_yield_traits)
