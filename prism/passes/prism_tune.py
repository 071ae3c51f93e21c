"""`prism-tune`: chooses one proven graph and its parameters, and binds the workload's sizes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException


@dataclass(frozen=True)
class TunePass(ModulePass):
    """
    Keeps of each workload's candidates the one that the cost model prefers at `shape` on `target`.

    `shape` is text like `n=8,d=4096`. `graph` names the candidate to keep; `set` fixes parameters,
    e.g. `grid.x=64,loop.i=64,warps=4`. Only candidates whose verdict is `equal`, with the digest of
    the graph as it stands, are considered; the pass fails if there is none.
    """

    name = "prism-tune"

    shape: str = ""
    target: str = "sm_80"
    graph: str = ""
    set: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.errors import PrismError
        from prism.tune.tune import tune_module

        try:
            tune_module(op, self.shape, self.target, self.graph, self.set)
        except PrismError as error:
            raise PassFailedException(str(error)) from error
