"""
The cover of a program by kernels: technology mapping over the terms of a workload.

Each term that may be stored is computed by one kernel from a cut, other stored terms below it. A
kernel of a cut is the cheapest typed graph of the cut's own e-graph; equal cuts, wherever they
occur, are searched once. Dynamic programming from the inputs up picks a cut for each term by
launch, bytes and operations, recomputation against storing included; then kernels are merged, or
computed anew by those that read them, while that pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from prism.dialects.operators import OPERATORS, Kind
from prism.search.cost import CostModel, Family
from prism.search.dags import Dag, enumerate_dags
from prism.search.egraph import Limits, saturate
from prism.search.graphs import Graph, from_terms
from prism.search.layouts import loop_cuts, nested_cuts
from prism.search.terms import INPUT, TermTable

CUT_LIMITS = Limits(iterations=4, nodes=2_000)
"""The limits of the e-graph of one cut."""

MAX_DAGS = 10
"""How many operator DAGs of a cut are priced."""

MAX_CUTS = 7
"""How many cuts of a term are priced, the smallest kernels first."""

MAX_OPERATORS, MAX_PRODUCTS, MAX_INPUTS = 32, 4, 12
"""What a kernel of a cut may have at most."""

REDUCTIONS = (Kind.MATMUL, Kind.SUM, Kind.MAX)
MOVES = (Kind.RESHAPE, Kind.CONCAT, Kind.SLICE, Kind.TRANSPOSE)
"""Operators that need a dim whole, or elsewhere: what they read and give may be stored."""


Cut = frozenset[int]
"""The stored terms that a kernel reads."""


class Library:
    """
    The graphs of every kernel searched so far, by what it computes: equal kernels are searched
    once, wherever they occur and whatever the sizes.
    """

    def __init__(self, loops: Sequence[str]) -> None:
        self.loops = tuple(loops)
        self.searched: dict[object, tuple[Family, ...]] = {}

    def graphs(self, table: TermTable, roots: tuple[int, ...]) -> tuple[Family, ...]:
        """The graphs of the kernel that computes `roots`, the terms of a table of its own."""
        shapes = tuple(table.shapes[term] for _, term in sorted(table.inputs.items()))
        key = (tuple(table.key(root) for root in roots), shapes)
        if key not in self.searched:
            dags = _dags(table, roots)
            found = (graph for dag in dags for graph in graphs_of(table, dag, self.loops))
            self.searched[key] = tuple(map(Family, found))
        return self.searched[key]


def _dags(table: TermTable, roots: tuple[int, ...]) -> Sequence[Dag]:
    kinds = [OPERATORS[n].kind for n, _, _ in table.nodes if n != INPUT]
    if len(kinds) == 1 or not any(kind in REDUCTIONS for kind in kinds):
        return [roots]
    classes = saturate(table, roots, CUT_LIMITS)
    found = enumerate_dags(table, classes, [classes.of_term[t] for t in roots], MAX_DAGS)
    # The workload's own way to compute it is always one of those that are priced.
    return list(dict.fromkeys([roots, *found.dags]))


@dataclass(frozen=True, slots=True)
class Priced:
    """
    The cheapest graph of a kernel, its inputs numbered as `leaves`, and its price.

    Without a graph it is the operator of the workload as it was.
    """

    graph: Graph | None
    leaves: tuple[int, ...]
    results: tuple[int, ...]
    seconds: float


class Cover:
    """Covers the terms `outputs` of a table at the sizes of a cost model."""

    def __init__(
        self, table: TermTable, outputs: Sequence[int], model: CostModel, library: Library
    ) -> None:
        self.table = table
        self.outputs = tuple(dict.fromkeys(outputs))
        self.model = model
        self.library = library
        self._cheapest: dict[tuple[Family, ...], tuple[Graph | None, float]] = {}
        self.order = table.topological(self.outputs)
        self.consumers: dict[int, set[int]] = {term: set() for term in self.order}
        for term in self.order:
            for operand in table.nodes[term][2]:
                self.consumers[operand].add(term)
        self.stored = {term for term in self.order if self._may_store(term)}

    def kernels(self) -> list[Priced] | None:
        """
        The kernels of the cheapest cover found, in an order in which they can run.

        A term of which no kernel's tiles fit keeps its operator, and a reshape, which moves
        nothing, always. None where a term has neither.
        """
        best: dict[int, tuple[float, Priced]] = {}
        for term in self.order:
            if term not in self.stored or self._is_input(term):
                continue
            choice: tuple[float, Priced] | None = None
            for cut in self._cuts(term):
                if any(leaf not in best and not self._is_input(leaf) for leaf in cut):
                    continue
                priced = self._price((term,), cut)
                if priced is None:
                    continue
                # What a leaf costs is shared by all that read it: here, those in this kernel.
                inside = set(self._inside((term,), cut))
                below = sum(
                    best[leaf][0] * len(self.consumers[leaf] & inside) / self._readers(leaf)
                    for leaf in cut
                    if leaf in best
                )
                if choice is None or priced.seconds + below < choice[0]:
                    choice = priced.seconds + below, priced
            plain = self._plain(term)
            if plain is not None and (choice is None or plain.seconds == 0):
                below = sum(best[t][0] / self._readers(t) for t in set(plain.leaves) & best.keys())
                choice = plain.seconds + below, plain
            if choice is not None:
                best[term] = choice
        chosen: dict[int, Priced] = {}
        pending = [term for term in self.outputs if not self._is_input(term)]
        while pending:
            term = pending.pop()
            if term in chosen:
                continue
            if term not in best:
                return None
            chosen[term] = best[term][1]
            pending += [leaf for leaf in chosen[term].leaves if not self._is_input(leaf)]
        return self._sorted(self._improved([chosen[t] for t in self.order if t in chosen]))

    def apart(self) -> float:
        """The price of a kernel for each product and sum, alone."""
        total = 0.0
        for term in self.order:
            name, _, operands = self.table.nodes[term]
            if name != INPUT and OPERATORS[name].kind in REDUCTIONS:
                priced = self._price((term,), frozenset(operands))
                total += inf if priced is None else priced.seconds
        return total

    def _readers(self, term: int) -> int:
        return len(self.consumers[term]) + (term in self.outputs)

    def _is_input(self, term: int) -> bool:
        return self.table.nodes[term][0] == INPUT

    def _may_store(self, term: int) -> bool:
        """
        Inputs, results, what a reduction or move reads or gives, and what several terms read.

        A chain of elementwise operators is no place to store: fusing it never costs more.
        """
        if self._is_input(term) or term in self.outputs or len(self.consumers[term]) > 1:
            return True
        names = [self.table.nodes[t][0] for t in (term, *self.consumers[term])]
        return any(OPERATORS[name].kind in (*REDUCTIONS, *MOVES) for name in names)

    def _below(self, term: int) -> Cut:
        """The nearest stored terms that a term is made of."""
        found: set[int] = set()
        stack = list(self.table.nodes[term][2])
        while stack:
            current = stack.pop()
            if current in self.stored:
                found.add(current)
            else:
                stack.extend(self.table.nodes[current][2])
        return frozenset(found)

    def _cuts(self, term: int) -> Iterator[Cut]:
        """Cuts of a term, nearest first: each further one computes one more stored term itself."""
        queue = [self._below(term)]
        seen = set(queue)
        for _ in range(MAX_CUTS):
            if not queue:
                return
            cut = queue.pop(0)
            yield cut
            for leaf in sorted(cut):
                if self._is_input(leaf):
                    continue
                wider = (cut - {leaf}) | self._below(leaf)
                if wider not in seen and self._allowed((term,), wider):
                    seen.add(wider)
                    queue.append(wider)

    def _inside(self, results: Sequence[int], cut: Cut) -> list[int]:
        """The terms that a kernel computes, operands first."""
        order: list[int] = []
        seen = set(cut)
        stack = [(result, False) for result in reversed(results)]
        while stack:
            term, ready = stack.pop()
            if ready:
                order.append(term)
            elif term not in seen:
                seen.add(term)
                stack.append((term, True))
                stack.extend((o, False) for o in reversed(self.table.nodes[term][2]))
        return order

    def _allowed(self, results: Sequence[int], cut: Cut) -> bool:
        inside = self._inside(results, cut)
        if any(self._is_input(term) for term in inside):
            return False
        kinds = [OPERATORS[self.table.nodes[term][0]].kind for term in inside]
        return (
            len(inside) <= MAX_OPERATORS
            and kinds.count(Kind.MATMUL) <= MAX_PRODUCTS
            and len(cut) <= MAX_INPUTS
        )

    def _price(self, results: tuple[int, ...], cut: Cut) -> Priced | None:
        """The cheapest graph of a kernel, or None if no tiles fit."""
        table, leaves = TermTable(), list[int]()
        known: dict[int, int] = {}

        def read(term: int) -> int:
            if term not in known:
                known[term] = table.input(len(leaves), self.table.shapes[term])
                leaves.append(term)
            return known[term]

        for term in self._inside(results, cut):
            name, attribute, operands = self.table.nodes[term]
            known[term] = table.apply(name, [read(o) for o in operands], attribute)
        roots = tuple(known[result] for result in results)
        families = self.library.graphs(table, roots)
        if families not in self._cheapest:
            self._cheapest[families] = self.model.cheapest(families)
        graph, seconds = self._cheapest[families]
        return None if graph is None else Priced(graph, tuple(leaves), results, seconds)

    def _improved(self, kernels: list[Priced]) -> list[Priced]:
        """
        Changes the cover while that saves time, each time by what saves most.

        A change merges two kernels, or drops one whose readers compute what it stores themselves.
        """
        known: dict[tuple[Priced, ...], tuple[float, list[Priced]]] = {}

        def remembered(
            key: tuple[Priced, ...], change: Callable[[], tuple[float, list[Priced]]]
        ) -> tuple[float, list[Priced]]:
            if key not in known:
                known[key] = change()
            return known[key]

        while True:
            best: tuple[float, list[Priced], tuple[Priced, ...]] | None = None
            for i, one in enumerate(kernels):
                readers = [k for k in kernels if set(one.results) & set(k.leaves)]
                changes: list[tuple[tuple[Priced, ...], tuple[float, list[Priced]]]] = [
                    (
                        (one, other),
                        remembered((one, other), lambda o=one, k=other: self._merge(o, k)),
                    )
                    for other in kernels[i + 1 :]
                ]
                if readers and not set(one.results) & set(self.outputs):
                    key = (one, *readers)
                    change = remembered((*key, one), lambda o=one, r=readers: self._absorb(o, r))
                    changes.append((key, change))
                for old, (gain, new) in changes:
                    if gain <= 0 or (best is not None and gain <= best[0]):
                        continue
                    if len(new) > 1 or not self._goes_through(kernels, old[0], old[1]):
                        best = gain, new, old
            if best is None:
                return kernels
            _, new, old = best
            at = kernels.index(old[-1])
            rest = [k for k in kernels[at + 1 :] if k not in old]
            kernels = [k for k in kernels[:at] if k not in old] + new + rest
            kernels = self._trimmed(kernels)

    def _plain(self, term: int) -> Priced | None:
        """The operator of a term as it was; None if an operand is not stored."""
        name, _, operands = self.table.nodes[term]
        if not self.stored.issuperset(operands):
            return None
        free = OPERATORS[name].kind is Kind.RESHAPE
        shapes = [self.table.shapes[t] for t in (term, *operands)]
        seconds = 0.0 if free else self.model.copy_seconds(shapes)
        return Priced(None, operands, (term,), seconds)

    def _merge(self, one: Priced, other: Priced) -> tuple[float, list[Priced]]:
        """What the merger of two kernels saves, and the merged kernel."""
        if one.graph is None or other.graph is None:
            return 0, []
        shared = set(one.leaves) & set(other.leaves)
        feeds = set(one.results) & set(other.leaves) or set(other.results) & set(one.leaves)
        results = (*one.results, *other.results)
        cut = frozenset((*one.leaves, *other.leaves)) - set(results)
        if not (shared or feeds) or not self._allowed(results, cut):
            return 0, []
        merged = self._price(results, cut)
        return (
            (0, []) if merged is None else (one.seconds + other.seconds - merged.seconds, [merged])
        )

    def _absorb(self, one: Priced, readers: Sequence[Priced]) -> tuple[float, list[Priced]]:
        """What it saves if all readers of a kernel compute what it stores, and the new readers."""
        if any(kernel.graph is None for kernel in (one, *readers)):
            return 0, []
        new: list[Priced] = []
        for reader in readers:
            cut = (frozenset(reader.leaves) - set(one.results)) | frozenset(one.leaves)
            if cut & set(reader.results) or not self._allowed(reader.results, cut):
                return 0, []
            priced = self._price(reader.results, cut)
            if priced is None:
                return 0, []
            new.append(priced)
        before = one.seconds + sum(reader.seconds for reader in readers)
        return before - sum(priced.seconds for priced in new), new

    def _trimmed(self, kernels: list[Priced]) -> list[Priced]:
        """Without results, and kernels, that nothing reads any more."""
        changed = True
        while changed:
            needed = {leaf for kernel in kernels for leaf in kernel.leaves} | set(self.outputs)
            trimmed: list[Priced] = []
            for kernel in kernels:
                results = tuple(r for r in kernel.results if r in needed)
                if results and results != kernel.results:
                    kernel = self._price(results, self._leaves_of(results, kernel)) or kernel
                if results:
                    trimmed.append(kernel)
            changed = trimmed != kernels
            kernels = trimmed
        return kernels

    def _leaves_of(self, results: tuple[int, ...], kernel: Priced) -> Cut:
        """The leaves of a kernel that some of its results need."""
        cut = frozenset(kernel.leaves)
        inside = self._inside(results, cut)
        read = {operand for term in inside for operand in self.table.nodes[term][2]}
        return cut & (read | set(results))

    def _goes_through(self, kernels: Sequence[Priced], one: Priced, other: Priced) -> bool:
        """Whether a third kernel is between two of them, so that their merger would need itself."""
        for first, last in ((one, other), (other, one)):
            reached = set(first.results)
            changed = True
            while changed:
                changed = False
                for kernel in kernels:
                    if kernel not in (one, other) and reached & set(kernel.leaves):
                        fresh = set(kernel.results) - reached
                        reached |= fresh
                        changed = changed or bool(fresh)
            if (reached - set(first.results)) & set(last.leaves):
                return True
        return False

    def _sorted(self, kernels: Sequence[Priced]) -> list[Priced]:
        """Kernels after those that they read from, otherwise in the order given."""
        done: set[int] = set()
        result: list[Priced] = []
        waiting = list(kernels)
        while waiting:
            ready = next(
                k for k in waiting if all(t in done or self._is_input(t) for t in k.leaves)
            )
            waiting.remove(ready)
            done |= set(ready.results)
            result.append(ready)
        return result


def fits_a_kernel(table: TermTable, outputs: Sequence[int]) -> bool:
    """Whether terms are few enough for one kernel."""
    names = [table.nodes[term][0] for term in table.topological(outputs)]
    kinds = [OPERATORS[name].kind for name in names if name != INPUT]
    return len(kinds) <= MAX_OPERATORS and kinds.count(Kind.MATMUL) <= MAX_PRODUCTS


def graphs_of(table: TermTable, dag: Dag, loops: Sequence[str]) -> Iterator[Graph]:
    """The graphs of an operator DAG: without a loop, with each that types, and loops in loops."""
    yield from_terms(table, dag, frozenset(), ())
    cuts = loop_cuts(table, dag)
    for cut in cuts:
        yield from_terms(table, dag, cut, tuple(loops[:1]))
    if len(loops) > 1:
        for nest in nested_cuts(table, dag, cuts):
            axes: Mapping[int, str] = {
                term: axis for axis, cut in zip(loops, nest, strict=True) for term in cut
            }
            yield from_terms(table, dag, axes, tuple(loops))
