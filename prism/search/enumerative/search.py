"""
Operator by operator: every graph that passes the checks, each once.

A partial graph grows by one operator at a time. Each operator must have a larger rank than the one
before it - the positions of its operands, the last one first, then its name - which exactly one
order of the operators of a graph gives. What fails symbolic dimension matching or the expression
check is not extended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from prism.dialects.shapes import ONE
from prism.dialects.sym import GRID_AXES
from prism.search.egraph import ClassId
from prism.search.enumerative.cuts import CUT, NEVER, Cuts
from prism.search.enumerative.expressions import Application
from prism.search.enumerative.problem import Problem, Progress, Tensor, Value, map_kind
from prism.search.enumerative.tensors import Dim, Tile, accumulate, apply
from prism.search.enumerative.write import write_sgraph
from prism.search.graphs import ACCUM, OUTPUT, Step
from prism.search.sgraph import SGraph
from prism.search.terms import INPUT

Rank = tuple[int, int, int, int]
"""The positions of the operands, the later one first (-1: none), then which operator on them."""

_CLOCK = 64
"""After how many states the clock is looked at."""


class Search:
    """
    One search: graphs with a loop axis if `loops` names one, the maps of the kinds in `concrete`
    enumerated on the way instead of left symbolic.
    """

    def __init__(
        self,
        problem: Problem,
        loops: tuple[str, ...],
        concrete: frozenset[str],
        operators: int | None,
        progress: Progress,
    ) -> None:
        self.problem = problem
        self.loops = loops
        self.progress = progress
        self.concrete = concrete
        self.most = None if operators is None else operators + len(problem.inputs)
        self.cuts = Cuts()
        self.values: list[Value] = []
        self.uses: list[int] = []
        self.computed: set[ClassId] = set()
        self.accumulated: set[ClassId] = set()
        self.variables: dict[tuple[Tensor, str], tuple[int, ...]] = {}

    def run(self) -> Iterator[SGraph]:
        """Every graph that passes the checks, with what is known of its maps."""
        for index, term, _ in self.problem.inputs:
            self.declare((INPUT, index), term, (*GRID_AXES, *self.loops))
        for index, (term, _) in enumerate(self.problem.outputs):
            self.declare((OUTPUT, index), term, GRID_AXES)
        yield from self.load(0)

    def declare(self, tensor: Tensor, term: int, axes: Sequence[str]) -> None:
        """The map variables of a tensor, under the paper's constraints (1) and (2)."""
        shape = self.problem.table.shapes[term]
        for axis in axes:
            literals = self.variables[tensor, axis] = tuple(self.cuts.variable() for _ in shape)
            for literal, size in zip(literals, shape, strict=True):
                if size == ONE:
                    self.cuts.equate(literal, NEVER)
            self.cuts.exclude(literals)
        for dim in range(len(shape)):
            self.cuts.exclude([self.variables[tensor, axis][dim] for axis in GRID_AXES])

    def dims(self, tensor: Tensor, axes: Sequence[str]) -> tuple[Dim, ...]:
        """Per dim of a tensor, its literals on some axes."""
        return tuple(zip(*(self.variables[tensor, axis] for axis in axes), strict=True))

    def enumerated(self, tensor: Tensor, axes: Sequence[str]) -> Iterator[None]:
        """
        Every concrete map of a tensor on some axes, one after the other, each undone after it.

        Once, without a change, if its maps on these axes stay symbolic.
        """
        axes = [axis for axis in axes if map_kind(tensor, axis) in self.concrete]
        options = [(None, *range(len(self.variables[tensor, axis]))) for axis in axes]
        for chosen in product(*options):
            if self.progress.expired:
                return
            mark = self.cuts.mark()
            if all(
                self.cuts.equate(literal, CUT if dim == cut else NEVER)
                for axis, cut in zip(axes, chosen, strict=True)
                for dim, literal in enumerate(self.variables[tensor, axis])
            ):
                yield
            self.cuts.undo(mark)

    def load(self, position: int) -> Iterator[SGraph]:
        """Loads the arguments from `position` on, then adds operators."""
        if position == len(self.problem.inputs):
            yield from self.extend((-1, -1, -1, -1))
            return
        index, term, known = self.problem.inputs[position]
        axes = (*GRID_AXES, *self.loops)
        dims = self.dims((INPUT, index), axes)
        read = frozenset(dim[-1] for dim in dims) if self.loops else frozenset[int]()
        tile = Tile(self.problem.table.shapes[term], dims, frozenset(), read)
        self.push(Value(Step(INPUT, (), index), term, known, tile))
        for _ in self.enumerated((INPUT, index), axes):
            yield from self.load(position + 1)
        self.pop()

    def push(self, value: Value) -> None:
        (self.accumulated if value.step.name == ACCUM else self.computed).add(value.known)
        for operand in value.step.operands:
            self.uses[operand] += 1
        self.values.append(value)
        self.uses.append(0)

    def pop(self) -> None:
        value = self.values.pop()
        (self.accumulated if value.step.name == ACCUM else self.computed).remove(value.known)
        for operand in value.step.operands:
            self.uses[operand] -= 1
        self.uses.pop()

    def extend(self, last: Rank) -> Iterator[SGraph]:
        """Every complete graph from here by operators of a larger rank than `last`."""
        progress = self.progress
        progress.states += 1
        if progress.states % _CLOCK == 0 and progress.over():
            return
        unused = [p for p, count in enumerate(self.uses) if count == 0]
        results = self.results()
        if results is not None:
            if set(unused) <= set(results) and (self.accumulated or not self.loops):
                yield from self.finish(results, 0)
            if not self.loops or all(self.values[p].tile.after for p in results):
                return
        if self.is_dead_end(unused):
            return
        size = len(self.values)
        for later in range(max(last[0], 0), size):
            for earlier in range(-1, later + 1):
                for rank, step, known in self.steps(later, earlier):
                    if rank > last and not progress.expired:
                        yield from self.add(rank, step, known)

    def results(self) -> list[int] | None:
        """The position of each of the workload's results, if all are there."""
        found: list[int] = []
        for _, known in self.problem.outputs:
            # The accumulated one stands behind the partial one.
            positions = [p for p, value in enumerate(self.values) if value.known == known]
            if not positions:
                return None
            found.append(positions[-1])
        return found

    def is_dead_end(self, unused: Sequence[int]) -> bool:
        """Whether some value can never be used, or not with the operators that are left."""
        results = {known for _, known in self.problem.outputs}
        if self.most is not None:
            left = self.most - len(self.values)
            # An operator leaves at best one unused value fewer, an operand of two going in.
            if left <= 0 or len(unused) - len(results) > left:
                return True
        for position in unused:
            value = self.values[position]
            accumulates = self.loops and value.known not in self.accumulated
            if not (
                value.known in results
                or accumulates
                or self.problem.expressions.leads_on(value.known, self.computed)
            ):
                return True
        return False

    def steps(self, later: int, earlier: int) -> Iterator[tuple[Rank, Step, ClassId]]:
        """The steps on one or two values that pass the expression check, in order of rank."""
        one = self.values[later]
        if earlier < 0:
            if self.loops and not one.tile.after and one.known not in self.accumulated:
                yield (later, -1, -1, 0), Step(ACCUM, (later,), self.loops[0]), one.known
            applications = self.problem.expressions.on([one.known])
            orders: Sequence[tuple[int, ...]] = ((later,),)
        else:
            applications = self.problem.expressions.on([one.known, self.values[earlier].known])
            orders = ((earlier, later), (later, earlier))
        for index, found in enumerate(applications):
            # A graph computes a term once: a second time would only be more work.
            if found.result not in self.computed:
                for swap, order in enumerate(self.fitting(found, orders)):
                    step = Step(found.name, order, found.attribute)
                    yield (later, earlier, index, swap), step, found.result

    def fitting(
        self, found: Application, orders: Sequence[tuple[int, ...]]
    ) -> list[tuple[int, ...]]:
        """The orders of the operands in which an operator takes them, equal ones once."""
        if found.commutes:
            return [orders[0]]
        return [
            order
            for order in dict.fromkeys(orders)
            if found.operands == tuple(self.values[p].known for p in order)
        ]

    def add(self, rank: Rank, step: Step, known: ClassId) -> Iterator[SGraph]:
        """Adds one step if its dims match, and goes on from there."""
        mark = self.cuts.mark()
        operands = [self.values[p] for p in step.operands]
        tiles = [value.tile for value in operands]
        if step.name == ACCUM:
            term, tile = operands[0].term, accumulate(self.cuts, tiles[0])
        else:
            attribute = None if isinstance(step.attribute, str) else step.attribute
            table = self.problem.table
            term = table.apply(step.name, [value.term for value in operands], attribute)
            tile = apply(
                self.cuts, step.name, attribute, tiles, table.shapes[term], bool(self.loops)
            )
        if tile is None:
            self.progress.mismatched += 1
        else:
            self.push(Value(step, term, known, tile))
            yield from self.extend(rank)
            self.pop()
        self.cuts.undo(mark)

    def finish(self, results: Sequence[int], index: int) -> Iterator[SGraph]:
        """The graph with outputs that match the results from `index` on, if there is one."""
        if index == len(results):
            if self.cuts.consistent():
                yield write_sgraph(
                    self.values, results, self.cuts, self.variables, self.loops, self.concrete
                )
            return
        tile = self.values[results[index]].tile
        tensor = (OUTPUT, index)
        uncut = set[int]() if not self.loops else {dim[-1] for dim in tile.dims}
        if not tile.after:
            uncut |= tile.read
        mark = self.cuts.mark()
        dims = self.dims(tensor, GRID_AXES)
        if all(self.cuts.equate(literal, NEVER) for literal in sorted(uncut)):
            for _ in self.enumerated(tensor, GRID_AXES):
                inner = self.cuts.mark()
                matched = zip(dims, tile.dims, strict=True)
                if all(self.cuts.match(a, b[: len(a)]) for a, b in matched):
                    self.progress.states += 1
                    yield from self.finish(results, index + 1)
                self.cuts.undo(inner)
        self.cuts.undo(mark)
