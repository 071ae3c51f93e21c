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

MAX_SECONDS = 600.0
"""How long the enumerative engine takes at most, unless told otherwise."""


@dataclass(frozen=True)
class GeneratePass(ModulePass):
    """
    Adds after each workload every candidate of its e-graph, as `@W__s0`, `@W__s1`, ..., and of
    several kernels those that cover it most cheaply.

    A workload that the search cannot treat stays as it is, with a remark on standard error. With
    `dominated`, also candidates that do the same as another one with more work, which `prism-prune`
    drops. `sizes="n=8,d=4096"` are sizes to price covers with; others are assumed.

    `engine=enumerative` searches operator by operator instead, as the paper does, always with the
    dominated ones. It takes at most `max_seconds`, 600 if not said, adds at most `max_operators`
    operators to a graph, and enumerates the maps that `concrete` names (imap, fmap, omap) during
    the search: then the candidates have concrete maps, `@W__g0`, `@W__g1`, ...
    """

    name = "prism-generate"

    dominated: bool = False
    engine: str = DEFAULT
    concrete: tuple[str, ...] = ()
    max_seconds: float = MAX_SECONDS
    max_operators: int | None = None
    sizes: str = ""

    def _check(self) -> None:
        if self.engine not in ENGINES:
            expected = " or ".join(ENGINES)
            raise PassFailedException(f"engine: expected {expected}, found '{self.engine}'")
        unknown = [kind for kind in self.concrete if kind not in ("imap", "fmap", "omap")]
        if unknown:
            raise PassFailedException(f"concrete: expected imap, fmap or omap, found {unknown[0]}")
        bounded = self.concrete or self.max_seconds != MAX_SECONDS or self.max_operators is not None
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
            if not funcs:
                _remark(f"@{name}: nothing better found, input kept")
            op.body.block.insert_ops_after(funcs, func)

    def _generate(self, module: ModuleOp, workload: Workload) -> tuple[list[FuncOp], bool]:
        from prism.search.engine import generate
        from prism.search.names import fresh_names
        from prism.search.to_ir import program_candidate, symbolic_candidate
        from prism.tune.bindings import BindingError, parse_bindings

        try:
            sizes = parse_bindings(self.sizes, "sizes") if self.sizes else {}
        except BindingError as error:
            raise PassFailedException(str(error)) from error
        generated = generate(workload, dominated=self.dominated, sizes=sizes)
        names = fresh_names(module, f"{workload.name}__s")
        funcs = [symbolic_candidate(next(names), workload.func, s) for s in generated.sgraphs]
        funcs += [program_candidate(next(names), workload.func, p) for p in generated.programs]
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
