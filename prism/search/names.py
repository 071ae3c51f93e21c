"""Names of candidates in a module, and which workload each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from prism.search.from_ir import candidate_funcs


def fresh_names(module: ModuleOp, prefix: str) -> Iterator[str]:
    """`prefix0`, `prefix1`, ..., without the symbols that the module has already."""
    taken = {op.sym_name.data for op in module.ops if isinstance(op, FuncOp)}
    return (name for i in count() if (name := f"{prefix}{i}") not in taken)


def candidates_by_workload(module: ModuleOp) -> list[tuple[FuncOp, list[FuncOp]]]:
    """
    The workloads that have candidates, in the order of the module.

    Raises PassFailedException at a candidate of a function that the module lacks.
    """
    funcs = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    found: dict[str, list[FuncOp]] = {}
    for workload, candidate in candidate_funcs(module):
        if workload not in funcs:
            raise PassFailedException(
                f"@{candidate.sym_name.data}: the module has no workload @{workload}"
            )
        found.setdefault(workload, []).append(candidate)
    return [(func, found[name]) for name, func in funcs.items() if name in found]
