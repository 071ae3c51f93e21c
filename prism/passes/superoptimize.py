"""`prism-superoptimize`: the whole pipeline as one pass."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

SEARCH_PASSES = ("prism-generate", "prism-prune", "prism-instantiate-maps", "prism-verify")
"""What needs no shape: every graph that is found, with its verdict."""

LOWERING_PASSES = ("prism-lower-to-thread", "prism-lower-to-cuda", "prism-emit-ptx")
"""From tuned graphs to PTX in the IR."""


@dataclass(frozen=True)
class SuperoptimizePass(ModulePass):
    """
    Finds and proves the graphs of each workload, and for a shape lowers the best one to PTX.

    Without `shape` it stops after `prism-verify`. The other options are those of `prism-tune`.
    """

    name = "prism-superoptimize"

    shape: str = ""
    target: str = "sm_80"
    graph: str = ""
    set: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.passes.prism_tune import TunePass
        from prism.universe import PRISM_UNIVERSE

        def load(name: str) -> ModulePass:
            return PRISM_UNIVERSE.all_passes[name]()()

        passes = [load(name) for name in SEARCH_PASSES]
        if self.shape:
            passes.append(TunePass(self.shape, self.target, self.graph, self.set))
            passes += [load(name) for name in LOWERING_PASSES]
        for each in passes:
            each.apply(ctx, op)
            try:
                op.verify()
            except VerifyException as error:
                raise PassFailedException(f"after {each.name}: {error}") from error
