"""
`prism-prune`: drops candidates that are ill-typed, not equal to their workload, the same or
dominated.
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
    from prism.search.sgraph import SGraph


@dataclass(frozen=True)
class PrunePass(ModulePass):
    """
    Drops the candidates that need not be looked at further; others stay as they are.

    Of a candidate of several kernels only the maps are looked at; `prism-verify` decides the rest.

    With `report`, prints each dropped candidate and why, and the counts, on standard error.
    """

    name = "prism-prune"

    report: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.search.engine import prune
        from prism.search.from_ir import (
            UnsupportedError,
            read_candidate,
            read_program,
            read_workload,
        )
        from prism.search.names import candidates_by_workload
        from prism.search.program import Program
        from prism.search.programs import choices

        for func, candidates in candidates_by_workload(op):
            sgraphs: dict[str, SGraph] = {}
            programs: dict[str, Program] = {}
            try:
                workload = read_workload(func)
                for candidate in candidates:
                    program = read_program(candidate)
                    if len(program.kernels) > 1:
                        programs[candidate.sym_name.data] = program
                    else:
                        sgraphs[candidate.sym_name.data] = read_candidate(candidate)
            except UnsupportedError as error:
                raise PassFailedException(str(error)) from error
            dropped = prune(workload, sgraphs) if sgraphs else {}
            for name, program in programs.items():
                if not choices(program):
                    dropped[name] = "no map assignment satisfies the layouts and the constraints"
            for candidate in candidates:
                if candidate.sym_name.data in dropped:
                    candidate.detach()
                    candidate.erase()
            if self.report:
                _print_report(func, candidates, dropped)


def _print_report(func: FuncOp, candidates: list[FuncOp], dropped: dict[str, str]) -> None:
    for name, reason in dropped.items():
        print(f"prune: @{name}: {reason}", file=sys.stderr)
    kept = len(candidates) - len(dropped)
    print(f"prune: @{func.sym_name.data}: kept {kept} of {len(candidates)}", file=sys.stderr)
