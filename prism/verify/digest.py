"""The digest that binds a verdict to the workload and the graph that it is about."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

from xdsl.dialects import func
from xdsl.ir import Attribute, Operation, SSAValue

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
    return Digester(workload_func).digest(candidate_func)


class Digester:
    """The digests of many candidates of one workload."""

    def __init__(self, workload_func: func.FuncOp) -> None:
        self._state = hashlib.sha256()
        _update(self._state, workload_func)

    def digest(self, candidate_func: func.FuncOp) -> str:
        """As the function `digest`."""
        state = self._state.copy()
        _update(state, candidate_func)
        return state.hexdigest()


def program_digest(*functions: func.FuncOp) -> str:
    """The same of any functions, in order: what they compute together, whatever their names."""
    state = hashlib.sha256()
    for function in functions:
        _update(state, function)
    return state.hexdigest()


def _update(state: _State, function: func.FuncOp) -> None:
    for line in _lines(function, {}):
        state.update(f"{len(line)}:{line}\n".encode())


class _State(Protocol):
    def update(self, data: bytes, /) -> None: ...


@lru_cache(maxsize=4096)
def _type_text(of: Attribute) -> str:
    """A type as text. Only types: unlike attributes with floats, equal ones have one text."""
    return str(of)


def _lines(op: Operation, numbers: dict[SSAValue, int]) -> Iterator[str]:
    """The op and all in it, one line each; values are numbered in the order of definition."""
    named = {**op.attributes, **op.properties}
    attributes = [f"{key}={named[key]}" for key in sorted(named.keys() - _IGNORED)]
    operands = [str(numbers.get(value, "?")) for value in op.operands]
    results = [_type_text(result.type) for result in op.results]
    yield f"{op.name} {operands} {results} {attributes}"
    for result in op.results:
        numbers[result] = len(numbers)
    for region in op.regions:
        for block in region.blocks:
            yield f"block {[_type_text(argument.type) for argument in block.args]}"
            for argument in block.args:
                numbers[argument] = len(numbers)
            for inner in block.ops:
                yield from _lines(inner, numbers)
    yield "end"
