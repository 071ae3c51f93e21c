"""`prism-instantiate-maps`: replaces candidates with symbolic maps by all their concrete ones."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException


@dataclass(frozen=True)
class InstantiateMapsPass(ModulePass):
    """
    Replaces each symbolic candidate by one per map assignment, as `@W__g0`, `@W__g1`, ...

    One candidate stands for all that differ only in the names of grid axes. Concrete candidates
    stay. The kernels of a candidate of several are independent: its k-th concrete candidate has the
    k-th best maps of each, so that every map of every kernel is in one, up to the 16 best.
    """

    name = "prism-instantiate-maps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.search.from_ir import UnsupportedError, read_program
        from prism.search.names import candidates_by_workload, fresh_names
        from prism.search.programs import choices
        from prism.search.to_ir import program_candidate

        for func, candidates in candidates_by_workload(op):
            names = fresh_names(op, f"{func.sym_name.data}__g")
            for candidate in candidates:
                try:
                    program = read_program(candidate)
                except UnsupportedError as error:
                    raise PassFailedException(f"@{candidate.sym_name.data}: {error}") from error
                if not program.symbolic:
                    continue
                for choice in choices(program):
                    concrete = program_candidate(next(names), func, program, choice)
                    op.body.block.insert_op_before(concrete, candidate)
                candidate.detach()
                candidate.erase()
