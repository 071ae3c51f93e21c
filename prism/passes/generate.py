"""
`prism-generate`: adds to each workload the candidates that the search finds, with symbolic maps.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class GeneratePass(ModulePass):
    """
    Adds after each workload every candidate of its e-graph, as `@W__s0`, `@W__s1`, ...

    A workload that the search cannot treat stays as it is, with a remark on standard error. With
    `dominated`, also candidates that do the same as another one with more work, which `prism-prune`
    drops.
    """

    name = "prism-generate"

    dominated: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.search.engine import generate
        from prism.search.from_ir import UnsupportedError, read_workload, workload_funcs
        from prism.search.names import fresh_names
        from prism.search.to_ir import symbolic_candidate

        for func in workload_funcs(op):
            name = func.sym_name.data
            try:
                workload = read_workload(func)
            except UnsupportedError as error:
                _remark(f"@{name}: nothing better found, input kept: {error}")
                continue
            generated = generate(workload, dominated=self.dominated)
            if not generated.complete:
                _remark(f"@{name}: a limit ended the search before it was complete")
            names = fresh_names(op, f"{name}__s")
            funcs = [symbolic_candidate(next(names), func, s) for s in generated.sgraphs]
            op.body.block.insert_ops_after(funcs, func)


def _remark(message: str) -> None:
    print(f"remark: {message}", file=sys.stderr)
