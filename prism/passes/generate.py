"""
`prism-generate`: adds to each workload the candidates that the search finds, with symbolic maps.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

if TYPE_CHECKING:
    from prism.search.from_ir import Workload

DEFAULT, ENUMERATIVE = ENGINES = ("egraph", "enumerative")
"""The engines: choices of e-nodes of one e-graph, or the paper's enumeration."""


@dataclass(frozen=True)
class GeneratePass(ModulePass):
    """
    Adds after each workload every candidate of its e-graph, as `@W__s0`, `@W__s1`, ...

    A workload that the search cannot treat stays as it is, with a remark on standard error. With
    `dominated`, also candidates that do the same as another one with more work, which `prism-prune`
    drops.

    `engine=enumerative` searches operator by operator instead, as the paper does, always with the
    dominated ones. It takes at most `max_seconds`, adds at most `max_operators` operators to a
    graph, and enumerates the maps that `concrete` names (imap, fmap, omap) during the search: then
    the candidates have concrete maps, `@W__g0`, `@W__g1`, ...
    """

    name = "prism-generate"

    dominated: bool = False
    engine: str = DEFAULT
    concrete: tuple[str, ...] = ()
    max_seconds: float | None = None
    max_operators: int | None = None

    def _check(self) -> None:
        if self.engine not in ENGINES:
            expected = " or ".join(ENGINES)
            raise PassFailedException(f"engine: expected {expected}, found '{self.engine}'")
        unknown = [kind for kind in self.concrete if kind not in ("imap", "fmap", "omap")]
        if unknown:
            raise PassFailedException(f"concrete: expected imap, fmap or omap, found {unknown[0]}")
        bounded = self.concrete or self.max_seconds is not None or self.max_operators is not None
        if self.engine == DEFAULT and bounded:
            raise PassFailedException(f"bounds and concrete maps need engine={ENUMERATIVE}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.search.from_ir import UnsupportedError, read_workload, workload_funcs

        self._check()
        search = self._enumerate if self.engine == ENUMERATIVE else self._generate
        for func in workload_funcs(op):
            name = func.sym_name.data
            try:
                funcs, complete = search(op, read_workload(func))
            except UnsupportedError as error:
                _remark(f"@{name}: nothing better found, input kept: {error}")
                continue
            if not complete:
                _remark(f"@{name}: a limit ended the search before it was complete")
            op.body.block.insert_ops_after(funcs, func)

    def _generate(self, module: ModuleOp, workload: Workload) -> tuple[list[FuncOp], bool]:
        from prism.search.engine import generate
        from prism.search.names import fresh_names
        from prism.search.to_ir import symbolic_candidate

        generated = generate(workload, dominated=self.dominated)
        names = fresh_names(module, f"{workload.name}__s")
        funcs = [symbolic_candidate(next(names), workload.func, s) for s in generated.sgraphs]
        return funcs, generated.complete

    def _enumerate(self, module: ModuleOp, workload: Workload) -> tuple[list[FuncOp], bool]:
        from prism.search.enumerative.engine import enumerate_graphs
        from prism.search.enumerative.problem import Bounds
        from prism.search.names import fresh_names
        from prism.search.to_ir import concrete_candidate, symbolic_candidate

        func = workload.func
        bounds = Bounds(self.max_operators, self.max_seconds)
        found = enumerate_graphs(workload, self.concrete, bounds)
        names = fresh_names(module, f"{workload.name}__{'g' if self.concrete else 's'}")
        funcs = [
            concrete_candidate(next(names), func, one.graph, maps)
            for one in found.graphs
            for maps in one.maps
            if self.concrete
        ]
        if not self.concrete:
            funcs = [symbolic_candidate(next(names), func, one.sgraphs[0]) for one in found.graphs]
        return funcs, found.complete


def _remark(message: str) -> None:
    print(f"remark: {message}", file=sys.stderr)
