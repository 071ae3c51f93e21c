"""What passes and commands use to verify: verdicts on functions and on hand-written graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr

from prism.dialects.kernel import CANDIDATE_OF, VERDICT, GraphDefOp, VerdictAttr
from prism.dialects.kernel import Verdict as VerdictData
from prism.errors import PrismError
from prism.verify.digest import CERTIFICATE, digest
from prism.verify.verdict import Limits, Verdict


def verify_candidate(
    workload_func: func.FuncOp, candidate_func: func.FuncOp, limits: Limits | None = None
) -> Verdict:
    """The verdict on one graph, generated or hand-written."""
    (verdict,) = verify_candidates(workload_func, [candidate_func], limits)
    return verdict


def verify_candidates(
    workload_func: func.FuncOp,
    candidate_funcs: Sequence[func.FuncOp],
    limits: Limits | None = None,
    *,
    certify: bool = False,
    opinion: bool = True,
) -> list[Verdict]:
    """
    The verdicts on the graphs for one workload, in one proof, with certificates on request.

    Raises DisagreementError (of `prism/verify/second_opinion.py`) unless `opinion` is False, if a
    proven graph computes something else when it is executed: a bug, not a verdict.
    """
    from prism.verify.prove import prove

    return prove(workload_func, candidate_funcs, limits, certify=certify, opinion=opinion)


@dataclass(frozen=True)
class Pair:
    """A graph and the workload that it claims to compute."""

    workload: func.FuncOp
    candidate: func.FuncOp


def is_candidate(function: func.FuncOp) -> bool:
    """Whether a function is a candidate: it says so or has a graph in its body."""
    return CANDIDATE_OF in function.attributes or any(
        isinstance(op, GraphDefOp) for op in function.walk()
    )


def match(workloads: ModuleOp, graphs: ModuleOp) -> list[Pair]:
    """
    Pairs every candidate of `graphs` with its workload of `workloads` (possibly one module).

    The workload is the one that `kernel.candidate_of` names; without that attribute the only one of
    the same signature, or the only one. Raises PrismError if there is none.
    """
    named = {
        function.sym_name.data: function
        for function in workloads.ops
        if isinstance(function, func.FuncOp) and not is_candidate(function)
    }
    return [
        Pair(_workload_of(function, named), function)
        for function in graphs.ops
        if isinstance(function, func.FuncOp) and is_candidate(function)
    ]


def _workload_of(candidate: func.FuncOp, workloads: dict[str, func.FuncOp]) -> func.FuncOp:
    symbol = candidate.attributes.get(CANDIDATE_OF)
    name = candidate.sym_name.data
    if symbol is not None:
        if not isinstance(symbol, SymbolRefAttr):
            raise PrismError(f"@{name}: expected {CANDIDATE_OF} to be a symbol, found {symbol}")
        workload = workloads.get(symbol.string_value())
        if workload is None:
            raise PrismError(f"@{name}: there is no workload {symbol}")
        return workload
    matching = [w for w in workloads.values() if w.function_type == candidate.function_type]
    if len(matching) != 1 and len(workloads) != 1:
        raise PrismError(
            f"@{name}: expected one workload of its signature {candidate.function_type}, "
            f"found {len(matching)}: name it with {CANDIDATE_OF}"
        )
    return matching[0] if len(matching) == 1 else next(iter(workloads.values()))


def verify_pairs(
    pairs: Sequence[Pair],
    limits: Limits | None = None,
    *,
    certify: bool = False,
    opinion: bool = True,
) -> list[Verdict]:
    """The verdict on each pair, in order; the graphs of one workload share one proof."""
    by_workload: dict[func.FuncOp, list[int]] = {}
    for index, pair in enumerate(pairs):
        by_workload.setdefault(pair.workload, []).append(index)
    verdicts: dict[int, Verdict] = {}
    for workload, indices in by_workload.items():
        candidates = [pairs[index].candidate for index in indices]
        found = verify_candidates(workload, candidates, limits, certify=certify, opinion=opinion)
        verdicts.update(zip(indices, found, strict=True))
    return [verdicts[index] for index in range(len(pairs))]


def attach(pair: Pair, verdict: Verdict) -> None:
    """
    Sets `kernel.verdict` on a candidate, with the digest of what was decided, and
    `kernel.certificate` if there is one.
    """
    identity = verdict.digest or digest(pair.workload, pair.candidate)
    data = VerdictData(verdict.kind, identity)
    pair.candidate.attributes[VERDICT] = VerdictAttr(data)
    pair.candidate.attributes.pop(CERTIFICATE, None)
    if verdict.certificate:
        pair.candidate.attributes[CERTIFICATE] = StringAttr(verdict.certificate)


def attached_certificate(pair: Pair) -> str:
    """The certificate that a candidate carries, or nothing."""
    attached = pair.candidate.attributes.get(CERTIFICATE)
    return attached.data if isinstance(attached, StringAttr) else ""


def is_proven(workload_func: func.FuncOp, candidate_func: func.FuncOp) -> bool:
    """Whether a candidate has the verdict `equal` on exactly this workload and this graph."""
    verdict = candidate_func.attributes.get(VERDICT)
    return (
        isinstance(verdict, VerdictAttr)
        and verdict.data.kind == "equal"
        and verdict.data.digest == digest(workload_func, candidate_func)
    )
