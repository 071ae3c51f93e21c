"""
Decides whether candidates are equal to their workload: one e-graph holds the workload and all of
its candidates, which share most of their terms.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from xdsl.dialects import func

from prism.verify import certificate
from prism.verify.checker import Step
from prism.verify.digest import Digester
from prism.verify.egraph import EGraph
from prism.verify.encode import (
    Encoded,
    NotEqualError,
    UnsupportedError,
    encode_function,
    op_name,
)
from prism.verify.record import Recorder
from prism.verify.report import TermPrinter, tree_of
from prism.verify.terms import TermTable
from prism.verify.verdict import Limits, Verdict

_MOVE = "(saturate (seq (saturate analysis) (run movement) (run simplification)))"

Limit = Literal["rounds", "nodes", "seconds", "memory"]

_MARGIN = 1.5

_SHARED_NODES = 12_000
"""An e-graph of several graphs may have this many nodes before they are tried one by one."""


def prove(
    workload: func.FuncOp,
    candidates: Sequence[func.FuncOp],
    limits: Limits | None = None,
    *,
    certify: bool = False,
    opinion: bool = True,
) -> list[Verdict]:
    """
    The verdict on each candidate, in order; the same from run to run unless time runs out. With
    `certify` every equal one has a certificate, which the checker has accepted; with `opinion` it
    is executed exactly as well (one graph of those with the same terms).

    Raises DisagreementError if the execution shows a proven graph to be wrong.

    Functions must have passed their verifiers, or may be any IR of known ops.
    """
    limits = limits or Limits()
    start = time.perf_counter()
    table = TermTable()
    try:
        goal = encode_function(workload, table)
    except (NotEqualError, UnsupportedError) as error:
        verdict = Verdict("unknown", f"the workload is not understood: {error}")
        return [verdict for _ in candidates]
    encoded = [_encode(workload, candidate, table) for candidate in candidates]
    # Graphs with the same term have one verdict, whose reason names an op of the first of them.
    graphs: dict[tuple[int, ...], _Graph] = {}
    for candidate, outcome in zip(candidates, encoded, strict=True):
        if isinstance(outcome, Encoded):
            graphs.setdefault(outcome.outputs, _Graph(candidate, outcome))
    names = [a.name_hint or str(i) for i, a in enumerate(workload.body.block.args)]
    printer = TermPrinter(names, table.symbols, table.rank)
    proof = _Proof(workload, table, goal, printer, limits, start, certify)
    decided = proof.decide(list(graphs.values()))
    if opinion:
        from prism.verify.second_opinion import SecondOpinion  # imports numpy

        second = SecondOpinion(workload)
        for outputs, graph in graphs.items():
            if decided[outputs].verdict.kind == "equal":
                second.confirm(graph.function)
    verdicts = [e if isinstance(e, Verdict) else decided[e.outputs].verdict for e in encoded]
    if certify:
        digester = Digester(workload)
        for index, (candidate, outcome) in enumerate(zip(candidates, encoded, strict=True)):
            if isinstance(outcome, Encoded) and verdicts[index].kind == "equal":
                steps = decided[outcome.outputs].steps
                identity = digester.digest(candidate)
                text = certificate.write(table, steps, identity)
                verdicts[index] = replace(verdicts[index], certificate=text, digest=identity)
    seconds = time.perf_counter() - start
    return [replace(verdict, seconds=seconds) for verdict in verdicts]


def _encode(workload: func.FuncOp, candidate: func.FuncOp, table: TermTable) -> Encoded | Verdict:
    expected, found = workload.function_type, candidate.function_type
    if expected != found:
        return Verdict("not_proven", f"the signature is {found}, the workload's is {expected}")
    try:
        return encode_function(candidate, table)
    except NotEqualError as error:
        return Verdict("not_proven", str(error))
    except UnsupportedError as error:
        return Verdict("unknown", str(error))


@dataclass(frozen=True)
class Closure:
    """The e-graph when the search ended, and the limit that ended it, or nothing if it was done."""

    egraph: EGraph
    limit: Limit | None


def close(
    table: TermTable,
    axes: Iterable[str],
    goals: Iterable[tuple[int, int]],
    limits: Limits,
    start: float,
    *,
    noting: bool = False,
) -> Closure:
    """
    Applies the axioms to the terms of all goals (pairs to be proven equal) until these are reached,
    nothing new follows, or a limit is: seconds count from `start` of `time.perf_counter`. With
    `noting` the e-graph notes the instances of axioms.
    """
    unproven = set(goals)
    distributions = limits.distributions
    held = resident_bytes()
    egraph = EGraph(table, (term for goal in unproven for term in goal), axes, noting=noting)
    guard = _Guard(egraph, limits, start, held)
    for _ in range(limits.rounds):
        egraph.run(_MOVE)
        unproven = {goal for goal in unproven if not egraph.same(*goal)}
        if not unproven:
            return Closure(egraph, None)
        if (limit := guard.limit()) is not None:
            return Closure(egraph, limit)
        changed = guard.run("algebra")
        if changed is False:
            if not distributions:
                return Closure(egraph, None)
            changed = guard.run("distribution")
            if changed is False:
                return Closure(egraph, None)
            distributions -= 1
        if not isinstance(changed, bool):
            return Closure(egraph, changed)
    return Closure(egraph, "rounds")


@dataclass
class _Guard:
    """
    Keeps an e-graph within the limits: a phase is run at once while it is far from them, axiom by
    axiom when it is near, as one step over a large e-graph may multiply it. An axiom that would
    cross a limit by growing the e-graph as it last did, and half as much again, is not run.
    """

    egraph: EGraph
    limits: Limits
    start: float
    held: int
    """What the process held before: earlier work of the process is no part of this proof."""
    growth: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Per axiom the factor by which it last grew the e-graph, and the seconds it took."""

    def limit(self) -> Limit | None:
        """The limit that is reached, if any."""
        if self.egraph.nodes() > self.limits.nodes:
            return "nodes"
        if time.perf_counter() - self.start > self.limits.seconds:
            return "seconds"
        return "memory" if resident_bytes() - self.held > self.limits.memory else None

    def run(self, phase: str) -> bool | Limit:
        """Runs the axioms of a phase once; whether anything changed, or the limit reached."""
        if self._far():
            return self.egraph.run(f"(run {phase})")
        changed = False
        for schedule in self.egraph.slices(phase):
            before, began = self.egraph.nodes(), time.perf_counter()
            factor, seconds = self.growth.get(schedule, (1.0, 0.0))
            if before * (1 + (factor - 1) * _MARGIN) > self.limits.nodes:
                return "nodes"
            if began - self.start + seconds * factor * _MARGIN > self.limits.seconds:
                return "seconds"
            changed |= self.egraph.run(schedule)
            took = time.perf_counter() - began
            self.growth[schedule] = (self.egraph.nodes() / max(before, 1), took)
            if (limit := self.limit()) is not None:
                return limit
        return changed

    def _far(self) -> bool:
        return (
            self.egraph.nodes() < self.limits.nodes / 20
            and time.perf_counter() - self.start < self.limits.seconds / 20
        )


def resident_bytes() -> int:
    """The memory that the process holds, 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


@dataclass(frozen=True)
class _Graph:
    """A candidate and its terms."""

    function: func.FuncOp
    encoded: Encoded


@dataclass(frozen=True)
class _Decision:
    """A verdict, and the steps of its proof if it is equal and to be certified."""

    verdict: Verdict
    steps: Sequence[Step] = ()


@dataclass(frozen=True)
class _Proof:
    """What the graphs of one workload are decided with."""

    workload: func.FuncOp
    table: TermTable
    goal: Encoded
    printer: TermPrinter
    limits: Limits
    start: float
    certify: bool

    def decide(self, graphs: Sequence[_Graph]) -> dict[tuple[int, ...], _Decision]:
        """
        The verdicts on graphs, by their terms. All graphs share one e-graph at first; if that does
        not decide all, those are set aside that a counterexample refutes, and each of the others
        gets an e-graph of its own.
        """
        if not graphs:
            return {}
        shared = replace(self.limits, nodes=min(self.limits.nodes, _SHARED_NODES))
        decided = self._attempt(graphs, shared if len(graphs) > 1 else self.limits)
        if all(decision.verdict.kind == "equal" for decision in decided.values()):
            return decided
        from prism.verify.refute import Examples  # imports numpy, only needed here

        examples = Examples(self.workload)
        for graph in graphs:
            key = graph.encoded.outputs
            verdict = decided[key].verdict
            if verdict.kind == "equal" or self._expired():
                continue
            example = examples.against(graph.function)
            if example is not None:
                reason = f"{verdict.reason}; " if verdict.kind == "not_proven" else ""
                decided[key] = _Decision(Verdict("not_proven", f"{reason}{example}"))
            elif verdict.kind == "unknown" and len(graphs) > 1:
                decided[key] = self._attempt([graph], self.limits)[key]
        return decided

    def _expired(self) -> bool:
        """Whether the time of the workload is over: what is undecided stays so."""
        return time.perf_counter() - self.start > self.limits.seconds

    def _attempt(
        self, graphs: Sequence[_Graph], limits: Limits
    ) -> dict[tuple[int, ...], _Decision]:
        """The verdicts on graphs in one e-graph."""
        goals = [goal for graph in graphs for goal in self._goals(graph.encoded)]
        axes = dict.fromkeys(axis for graph in graphs for axis in graph.encoded.axes)
        closure = close(self.table, axes, goals, limits, self.start, noting=self.certify)
        proven = {
            graph.encoded.outputs: self._goals(graph.encoded)
            for graph in graphs
            if all(closure.egraph.same(*goal) for goal in self._goals(graph.encoded))
        }
        # Of a search that proved nothing there is nothing to check.
        recorder = None
        if self.certify and proven:
            reached = [goal for pairs in proven.values() for goal in pairs]
            recorder = Recorder(self.table, closure.egraph, reached)
        decided: dict[tuple[int, ...], _Decision] = {}
        for encoded in (graph.encoded for graph in graphs):
            if encoded.outputs in proven:
                decision = self._equal(encoded, recorder)
            elif closure.limit is None:
                decision = _Decision(Verdict("not_proven", self._reason(closure.egraph, encoded)))
            else:
                decision = _Decision(Verdict("unknown", self._limit_text(closure.limit)))
            decided[encoded.outputs] = decision
        return decided

    def _equal(self, encoded: Encoded, recorder: Recorder | None) -> _Decision:
        """The verdict on a graph that the e-graph proves, which the checker has to accept too."""
        if recorder is None:
            return _Decision(Verdict("equal"))
        steps = recorder.proof(self._goals(encoded))
        if steps is None:
            return _Decision(Verdict("unknown", "the checker does not accept the proof found"))
        return _Decision(Verdict("equal"), steps)

    def _goals(self, graph: Encoded) -> list[tuple[int, int]]:
        return list(zip(graph.outputs, self.goal.outputs, strict=True))

    def _limit_text(self, limit: Limit) -> str:
        match limit:
            case "rounds":
                return f"the limit of {self.limits.rounds} rounds of the axioms was reached"
            case "nodes":
                return f"the limit of {self.limits.nodes} nodes was reached"
            case "seconds":
                return f"the limit of {self.limits.seconds} seconds was reached"
            case "memory":
                return f"the limit of {self.limits.memory} bytes of memory was reached"

    def _reason(self, egraph: EGraph, graph: Encoded) -> str:
        """What is missing: the first tile that is no chunk of a whole tensor, or else a result."""
        for step in graph.steps:
            # A step that no result needs is not in the e-graph and does no harm.
            if step.settled and step.term in egraph and not egraph.erases(step.term):
                tile = self.printer.text(tree_of(self.table, step.term))
                return f"{op_name(step.op)}: no axiom makes a whole tensor of {tile}"
        for index, (found, expected) in enumerate(self._goals(graph)):
            if not egraph.same(found, expected):
                return (
                    f"result {index}: {self.printer.text(egraph.tree(found))} is not proven equal "
                    f"to {self.printer.text(tree_of(self.table, expected))}"
                )
        raise AssertionError("a graph that is not proven has a result that is not")
