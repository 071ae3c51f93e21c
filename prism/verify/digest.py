"""The digest that binds a verdict to the workload and the graph that it is about."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from prism.dialects.kernel import CANDIDATE_OF, SIZES, TARGET, VERDICT

REASON = "kernel.reason"
"""On a candidate not proven, on request: what is missing, a string."""

CERTIFICATE = "kernel.certificate"
"""On a candidate proven equal, on request: its proof (`prism/verify/certificate.py`), a string."""

_IGNORED = frozenset(
    {
        CANDIDATE_OF,
        VERDICT,
        SIZES,
        TARGET,
        REASON,
        CERTIFICATE,
        "params",
        "sym_name",
        "sym_visibility",
    }
)
"""Names, the verdict and what tuning chose: none of it changes what a function computes."""


def digest(workload_func: func.FuncOp, candidate_func: func.FuncOp) -> str:
    """
    The sha256, in hex, of all that decides whether a candidate is equal to its workload: ops,
    operands, types and attributes of both, without names of functions and values, without tuning.
    """
    return program_digest(workload_func, candidate_func)


def program_digest(*functions: func.FuncOp) -> str:
    """The same of any functions, in order: what they compute together, whatever their names."""
    state = hashlib.sha256()
    for function in functions:
        for line in _lines(function, {}):
            state.update(f"{len(line)}:{line}\n".encode())
    return state.hexdigest()


def _lines(op: Operation, numbers: dict[SSAValue, int]) -> Iterator[str]:
    """The op and all in it, one line each; values are numbered in the order of definition."""
    named = {**op.attributes, **op.properties}
    attributes = [f"{key}={named[key]}" for key in sorted(named.keys() - _IGNORED)]
    operands = [str(numbers.get(value, "?")) for value in op.operands]
    results = [str(result.type) for result in op.results]
    yield f"{op.name} {operands} {results} {attributes}"
    for result in op.results:
        numbers[result] = len(numbers)
    for region in op.regions:
        for block in region.blocks:
            yield f"block {[str(argument.type) for argument in block.args]}"
            for argument in block.args:
                numbers[argument] = len(numbers)
            for inner in block.ops:
                yield from _lines(inner, numbers)
    yield "end"
