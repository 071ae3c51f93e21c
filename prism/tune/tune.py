"""Tuning a module: IR with proven candidates in, IR with one tuned candidate a workload out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp

from prism.dialects.kernel import SIZES, TARGET, VERDICT, VerdictAttr
from prism.errors import JobFailedError, PrismError
from prism.tune.bindings import parse_bindings, parse_sizes
from prism.tune.choose import Choice, choose
from prism.tune.graph import graph_def
from prism.tune.identity import shape_text
from prism.tune.target import load_target
from prism.verify.api import Pair, is_proven, match
from prism.verify.digest import digest


class NotProvenError(JobFailedError):
    """A workload has no candidate that is proven equal, or the named one is not."""


def tune_module(
    module: ModuleOp, shape: str, target: str, graph: str = "", overrides: str = ""
) -> list[Choice]:
    """
    Tune every workload that has candidates, in place; see `TunePass`.

    Raises `BindingError` (sizes), `UnknownTargetError`, `NotProvenError`, `SpaceError` (parameters)
    or `TuneError`.
    """
    chosen_target = load_target(target)
    fixed = parse_bindings(overrides, "--set") if overrides.strip() else {}
    by_workload: dict[FuncOp, list[FuncOp]] = {}
    for pair in match(module, module):
        by_workload.setdefault(pair.workload, []).append(pair.candidate)
    if not by_workload:
        raise NotProvenError("there is no candidate graph to tune")
    choices: list[Choice] = []
    known: dict[tuple[str, ...], tuple[int, Choice]] = {}
    for workload, candidates in by_workload.items():
        sizes = parse_sizes(shape, workload)
        proven = _proven(workload, candidates, graph)
        # Equal subgraphs of a program are tuned once: names are no part of the digests.
        key = (shape_text(sizes), *(digest(workload, candidate) for candidate in proven))
        if key in known:
            index, found = known[key]
            choice = replace(found, candidate=proven[index])
        else:
            choice = choose(proven, sizes, chosen_target, fixed)
            known[key] = proven.index(choice.candidate), choice
        bind(choice.candidate, sizes, chosen_target.name, choice.parameters)
        for candidate in candidates:
            if candidate is not choice.candidate:
                candidate.detach()
                candidate.erase()
        choices.append(choice)
    return choices


def _proven(workload: FuncOp, candidates: list[FuncOp], graph: str) -> list[FuncOp]:
    """The candidates to choose from; a stale verdict `equal` is an error, not a skip."""
    name = workload.sym_name.data
    if graph:
        candidates = [candidate for candidate in candidates if candidate.sym_name.data == graph]
        if not candidates:
            raise PrismError(f"@{name} has no candidate graph @{graph}")
    proven: list[FuncOp] = []
    for candidate in candidates:
        verdict = candidate.attributes.get(VERDICT)
        if not isinstance(verdict, VerdictAttr) or verdict.data.kind != "equal":
            continue
        pair = Pair(workload, candidate)
        if not is_proven(pair.workload, pair.candidate):
            raise NotProvenError(
                f"@{candidate.sym_name.data}: the verdict is of another workload or graph; "
                "run prism-verify again"
            )
        proven.append(candidate)
    if not proven:
        which = f"graph @{graph}" if graph else f"any of {len(candidates)} candidate graphs"
        raise NotProvenError(f"@{name}: not proven equal to {which}")
    return proven


def bind(
    candidate: FuncOp, sizes: Mapping[str, int], target: str, parameters: Mapping[str, int]
) -> None:
    """Set on a candidate what lowering reads: sizes, target and parameters."""
    candidate.attributes[SIZES] = _integers(sizes)
    candidate.attributes[TARGET] = StringAttr(target)
    graph_def(candidate).params = _integers(parameters)


def _integers(values: Mapping[str, int]) -> DictionaryAttr:
    return DictionaryAttr({name: IntegerAttr(value, i64) for name, value in values.items()})
