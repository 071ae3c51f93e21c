"""`prism-lower-to-thread`: the graphs of proven and tuned candidates as thread kernels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter


@dataclass(frozen=True)
class LowerToThreadPass(ModulePass):
    """
    Replaces every `kernel.graph_def` of a candidate by a `kernel.launch` of a `thread.kernel`.

    Only candidates whose verdict is `equal`, with the digest of workload and graph as they stand,
    and that `prism-tune` gave sizes, a target and parameters; anything else is refused.
    """

    name = "prism-lower-to-thread"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.codegen.candidates import tuned_candidates
        from prism.codegen.limits import check_limits
        from prism.codegen.lower_graph import lower_graph
        from prism.dialects.kernel import LaunchOp
        from prism.tune.target import load_target

        for candidate in tuned_candidates(op):
            function = candidate.function
            target = load_target(candidate.target)
            for index, graph in enumerate(candidate.graphs()):
                name = f"{function.sym_name.data}_k{index}"
                params = candidate.params(graph)
                kernel = lower_graph(graph, name, candidate.sizes, params, target.name)
                check_limits(kernel, target, graph)
                op.body.block.insert_op_before(kernel, function)
                launch = LaunchOp(name, graph.inputs, [value.type for value in graph.results_])
                for old, new in zip(graph.results_, launch.results_, strict=True):
                    new.name_hint = old.name_hint
                Rewriter.replace_op(graph, launch)
