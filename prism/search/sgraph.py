"""
sGraphs: a graph with a Boolean variable per tensor, dim and axis, and the constraints on them.

The variable m_{T,d,p} says whether axis p cuts dim d of tensor T (the paper, section on symbolic
maps). The constraints that `constrain` derives hold for exactly the rows that the layout table
accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from prism.dialects.layouts import REPL
from prism.dialects.sym import GRID_AXES, Constraint
from prism.search.graphs import ACCUM, OUTPUT, Graph
from prism.search.layouts import Row, operator_layout
from prism.search.terms import INPUT

TensorDim = tuple[int, int]
"""A step and a dim of it."""

MapVariables = dict[tuple[int, str], tuple[str, ...]]
"""Per tensor and axis: a Boolean variable for each dim."""


@dataclass(frozen=True, slots=True)
class SGraph:
    """
    A graph with maps of any kind.

    `maps[tensor, axis]` is, for a tensor of `graph.tensors`, the dim that the axis cuts or `REPL`
    where that is decided, else a Boolean variable per dim. Outputs have no maps on loop axes.
    """

    graph: Graph
    grid: tuple[str, ...]
    maps: Mapping[tuple[int, str], int | tuple[str, ...]]
    constraints: tuple[Constraint, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """Every Boolean variable of the maps, each once, in order."""
        symbolic = (entry for entry in self.maps.values() if not isinstance(entry, int))
        return tuple(dict.fromkeys(name for entry in symbolic for name in entry))

    def admits(self, cuts: Mapping[str, Row]) -> bool:
        """
        Whether the maps can be those of `cuts`, a row for each axis, under the constraints.

        An axis that `cuts` does not name replicates every tensor.
        """
        values: dict[str, bool] = {}
        for (tensor, axis), entry in self.maps.items():
            cut = cuts[axis][self.graph.tensors.index(tensor)] if axis in cuts else REPL
            if isinstance(entry, int):
                if entry != cut:
                    return False
                continue
            for dim, name in enumerate(entry):
                if values.setdefault(name, dim == cut) != (dim == cut):
                    return False
        return all(constraint.holds(values) for constraint in self.constraints)


def constrain(graph: Graph, grid: Sequence[str] = GRID_AXES) -> SGraph:
    """
    The sGraph of the well-typed maps under which a loop's sums are accumulated where they appear.
    """
    variables: MapVariables = {}
    count = 0
    for tensor in graph.tensors:
        axes = (*grid, *graph.loops) if tensor in graph.inputs else tuple(grid)
        for axis in axes:
            rank = len(graph.shapes[tensor])
            variables[tensor, axis] = tuple(f"m{count + d}" for d in range(rank))
            count += rank
    classes = DimClasses(graph)
    constraints: list[Constraint] = []
    for axis in grid:
        constraints += _axis_constraints(graph, classes, variables, axis, classes.uncut_by_grid())
    for axis in graph.loops:
        uncut = classes.uncut_by_loop(axis)
        constraints += _axis_constraints(graph, classes, variables, axis, uncut)
        for step in graph.steps:
            if step.name == ACCUM and step.attribute == axis:
                summed = {classes.of(*dim) for dim in classes.rules[step.operands[0]].reduced}
                names = [classes.variable(variables, axis, c) for c in sorted(summed)]
                constraints.append(Constraint("some", tuple(n for n in names if n is not None)))
    for tensor in graph.tensors:
        for dim in graph.cuttable[tensor]:
            names = [variables[tensor, axis][dim] for axis in grid]
            if len(names) > 1 and classes.of(tensor, dim) not in classes.uncut_by_grid():
                constraints.append(Constraint("at_most_one", tuple(names)))
            if len(graph.loops) > 1 and tensor in graph.inputs:
                names = [variables[tensor, axis][dim] for axis in graph.loops]
                constraints.append(Constraint("at_most_one", tuple(names)))
    return SGraph(graph, tuple(grid), dict(variables), tuple(dict.fromkeys(constraints)))


class DimClasses:
    """
    The dims of a graph's values that any axis must cut together, by symbolic dimension matching.

    Two dims match when an operator walks them together: equal dims of elementwise operands, the
    contracted dims of a product, and a result's dims with those that they come from.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rules = [_dim_rules(graph, step) for step in range(len(graph.steps))]
        self._parent: dict[TensorDim, TensorDim] = {}
        for step in range(len(graph.steps)):
            for dim in graph.cuttable[step]:
                self._parent[step, dim] = (step, dim)
        for step in range(len(graph.steps)):
            for pair in self.rules[step].pairs:
                self._union(*pair)
        self._uncut_by_grid = self._repeated() | self._reduced(range(len(graph.steps)))

    def of(self, step: int, dim: int) -> TensorDim:
        """The class of a dim: its smallest member."""
        current = (step, dim)
        while (parent := self._parent[current]) != current:
            current = parent
        return current

    def in_step(self, step: int) -> list[TensorDim]:
        """The classes of a step's dims, one each."""
        return [self.of(step, d) for d in self.graph.cuttable[step]]

    def uncut_by_grid(self) -> set[TensorDim]:
        """Classes that no grid axis can cut: summed ones, for the output would owe the sum."""
        return self._uncut_by_grid

    def uncut_by_loop(self, axis: str) -> set[TensorDim]:
        """
        Classes that a loop cannot cut: those summed elsewhere than under its accums, and outputs'.

        That covers what meets an accumulated value: such a dim reaches an output, or a sum after
        the loop. A loop inside another cannot cut what is known only after the outer one.
        """
        graph = self.graph
        accumulated = {
            s.operands[0] for s in graph.steps if s.name == ACCUM and s.attribute == axis
        }
        uncut = self._repeated()
        uncut |= self._reduced(s for s in range(len(graph.steps)) if s not in accumulated)
        for output in graph.outputs:
            uncut |= set(self.in_step(output))
        for step in self._after(graph.loops[: graph.loops.index(axis)]):
            uncut |= set(self.in_step(step))
        return uncut

    def _after(self, loops: Sequence[str]) -> list[int]:
        """The steps that are known only after one of `loops`: its sums and what needs them."""
        after: list[int] = []
        for index, step in enumerate(self.graph.steps):
            ends = step.name == ACCUM and step.attribute in loops
            if ends or any(o in after for o in step.operands):
                after.append(index)
        return after

    def variable(self, variables: MapVariables, axis: str, known: TensorDim) -> str | None:
        """The first variable of a class on an axis, which stands for all that equal it."""
        return next(iter(self.all_variables(variables, axis, known)), None)

    def all_variables(self, variables: MapVariables, axis: str, known: TensorDim) -> Iterator[str]:
        """Every variable of a class on an axis."""
        for tensor in self.graph.tensors:
            for dim in self.graph.cuttable[tensor]:
                if (tensor, axis) in variables and self.of(tensor, dim) == known:
                    yield variables[tensor, axis][dim]

    def _union(self, left: TensorDim, right: TensorDim) -> None:
        a, b = sorted((self.of(*left), self.of(*right)))
        self._parent[b] = a

    def _repeated(self) -> set[TensorDim]:
        """
        Classes that no axis cuts: those that occur twice in one value, for cutting them would cut
        two of its dims at once, and those with a dim that an operator needs whole.
        """
        repeated = {self.of(*dim) for rules in self.rules for dim in rules.uncut}
        for step in range(len(self.graph.steps)):
            classes = self.in_step(step)
            repeated |= {c for c in classes if classes.count(c) > 1}
        return repeated

    def _reduced(self, steps: Iterable[int]) -> set[TensorDim]:
        return {self.of(*dim) for step in steps for dim in self.rules[step].reduced}


@dataclass(frozen=True, slots=True)
class DimRules:
    """
    What the layout table says of the dims of one step: which pairs are walked together, which are
    summed away and which no axis can cut.
    """

    pairs: tuple[tuple[TensorDim, TensorDim], ...]
    reduced: tuple[TensorDim, ...]
    uncut: tuple[TensorDim, ...]


def _dim_rules(graph: Graph, index: int) -> DimRules:
    """Asks the table what happens if an axis cuts a dim of an operand, the others cut or whole."""
    step = graph.steps[index]
    cuttable = graph.cuttable
    if step.name in (ACCUM, OUTPUT):
        (source,) = step.operands
        return DimRules(tuple(((source, d), (index, d)) for d in cuttable[index]), (), ())
    pairs: dict[tuple[TensorDim, TensorDim], None] = {}
    reduced: dict[TensorDim, None] = {}
    typed: set[TensorDim] = set()
    attribute = step.attribute
    if step.name == INPUT or isinstance(attribute, str):
        return DimRules((), (), ())
    ones = [graph.ones[o] for o in step.operands]
    shapes = [graph.shapes[o] for o in step.operands]
    for layouts in product(*((REPL, *cuttable[o]) for o in step.operands)):
        of_step = dict(zip(step.operands, layouts, strict=True))
        if any(of_step[o] != layout for o, layout in zip(step.operands, layouts, strict=True)):
            continue
        cut = [(o, layout) for o, layout in of_step.items() if layout != REPL]
        result = operator_layout(step.name, layouts, ones, attribute, shapes)
        if not cut or result is None or result == REPL:
            continue
        together = [*cut, (index, result)] if result >= 0 else cut
        typed |= set(together)
        pairs |= dict.fromkeys((together[0], other) for other in together[1:])
        if result < 0:
            reduced |= dict.fromkeys(cut)
    own = [(o, d) for o in (*dict.fromkeys(step.operands), index) for d in cuttable[o]]
    return DimRules(tuple(pairs), tuple(reduced), tuple(dim for dim in own if dim not in typed))


def _axis_constraints(
    graph: Graph,
    classes: DimClasses,
    variables: MapVariables,
    axis: str,
    uncut: set[TensorDim],
) -> list[Constraint]:
    """The constraints of one axis: never, at most one per value, equal by matching."""
    never: list[str] = []
    groups: dict[TensorDim, list[str]] = {}
    result: list[Constraint] = []
    for tensor in graph.tensors:
        if (tensor, axis) not in variables:
            continue
        names = variables[tensor, axis]
        cuttable = graph.cuttable[tensor]
        free: list[str] = []
        for dim, name in enumerate(names):
            if dim not in cuttable or classes.of(tensor, dim) in uncut:
                never.append(name)
            else:
                free.append(name)
                groups.setdefault(classes.of(tensor, dim), []).append(name)
        if len(free) > 1:
            result.append(Constraint("at_most_one", tuple(free)))
    covered = [{classes.of(t, d) for d in graph.cuttable[t]} for t in graph.tensors]
    for step in range(len(graph.steps)):
        met = [c for c in classes.in_step(step) if c in groups]
        if len(met) > 1 and not any(set(met) <= c for c in covered):
            result.append(Constraint("at_most_one", tuple(groups[c][0] for c in met)))
            covered.append(set(met))
    if never:
        result.insert(0, Constraint("never", tuple(never)))
    result += [Constraint("equal", tuple(g)) for g in groups.values() if len(g) > 1]
    return result


def solutions(
    variables: Sequence[str], constraints: Sequence[Constraint]
) -> Iterator[dict[str, bool]]:
    """
    Every assignment of `variables` that satisfies `constraints`, false before true.

    Each constraint is checked as soon as its last variable is assigned, so that the walk never
    goes below a violated one.
    """
    position = {name: i for i, name in enumerate(variables)}
    due: dict[int, list[Constraint]] = {}
    for constraint in constraints:
        due.setdefault(max(position[v] for v in constraint.variables), []).append(constraint)
    values: dict[str, bool] = {}

    def extend(index: int) -> Iterator[dict[str, bool]]:
        if index == len(variables):
            yield dict(values)
            return
        for value in (False, True):
            values[variables[index]] = value
            if all(c.holds(values) for c in due.get(index, ())):
                yield from extend(index + 1)

    yield from extend(0)
