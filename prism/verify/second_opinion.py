"""
The second judge: what is proven equal is also executed exactly, at small sizes that are ragged.

A disagreement is a bug of the prover, the axioms, the encoding or of this module, and an error:
no verdict is given.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from xdsl.dialects import func

from prism.dialects.kernel import GraphDefOp
from prism.dialects.sym import axis_parameter, shape_of
from prism.verify.exact import ExactArray, UndecidedError, exact, same
from prism.verify.execute import Memo, NotExecutableError, execute
from prism.verify.refute import Examples, size_names

POINTS = 2
"""The points at which each graph is executed."""

_MAX_ELEMENTS = 600
"""Inputs with more elements (by constant sizes) are executed in float64: exact numbers are slow."""

_PALETTES = (("1/2", "1", "2", "3/2"), ("-2", "-1", "1/3", "1", "2"))
"""Positive elements at first, which no root or log leaves undefined."""


class DisagreementError(RuntimeError):
    """A graph was proven equal and computes something else: a bug, named with its evidence."""


@dataclass(frozen=True)
class _Point:
    sizes: Mapping[str, int]
    counts: Mapping[str, int]
    inputs: Sequence[ExactArray]
    expected: Sequence[ExactArray]
    memo: Memo


class SecondOpinion:
    """Executes the graphs of one workload; the workload itself is executed once at each point."""

    def __init__(self, workload: func.FuncOp) -> None:
        self.workload = workload
        self._points: dict[tuple[str, ...], list[_Point]] = {}
        self._examples = Examples(workload)

    def confirm(self, graph: func.FuncOp) -> int:
        """
        The number of points at which a graph computes exactly what the workload does; fewer than
        `POINTS` where enclosures do not decide. None where inputs are large: these are evaluated
        in float64 (`prism/verify/refute.py`). Raises DisagreementError.
        """
        axes = tuple(
            dict.fromkeys(
                axis
                for op in graph.walk()
                if isinstance(op, GraphDefOp)
                for axis in (*op.grid_axes, *op.loop_axes)
            )
        )
        if axes not in self._points:
            self._points[axes] = list(self._draw(axes, size_names(self.workload)))
        confirmed = 0
        for point in self._points[axes]:
            try:
                found = execute(graph, point.inputs, point.sizes, point.counts, point.memo)
                equal = all(same(a, b) for a, b in zip(found, point.expected, strict=True))
            except (UndecidedError, NotExecutableError):
                continue
            if not equal:
                counts = {axis_parameter(axis): count for axis, count in point.counts.items()}
                at = ", ".join(f"{k} = {v}" for k, v in {**point.sizes, **counts}.items())
                raise self._disagreement(graph, f"at {at} a result differs")
            confirmed += 1
        if not self._points[axes] and (example := self._examples.against(graph)) is not None:
            raise self._disagreement(graph, example)
        return confirmed

    def _disagreement(self, graph: func.FuncOp, evidence: str) -> DisagreementError:
        return DisagreementError(
            f"@{graph.sym_name.data} is proven equal to @{self.workload.sym_name.data} but "
            f"computes something else: {evidence}. This is a bug of Prism, please report it"
        )

    def _draw(self, axes: Sequence[str], names: Sequence[str]) -> Iterator[_Point]:
        arguments = self.workload.body.block.args
        for seed in range(POINTS):
            state = random.Random(repr((seed, axes, names)))
            # Sizes that coincide would hide what mixes two dims up; counts that divide, the ends.
            sizes = {name: 2 + (index + seed) % 2 for index, name in enumerate(names)}
            counts = {axis: 2 + (seed + index) % 2 for index, axis in enumerate(axes)}
            shapes = [
                tuple(int(size.evaluate(sizes)) for size in shape_of(argument.type))
                for argument in arguments
            ]
            if sum(int(np.prod(shape)) for shape in shapes) > _MAX_ELEMENTS:
                return
            inputs = [_random(shape, _PALETTES[seed % 2], state) for shape in shapes]
            try:
                # Not with the memo of the graphs: the two share no computation.
                expected = execute(self.workload, inputs, sizes, {})
            except (UndecidedError, NotExecutableError):
                continue
            yield _Point(sizes, counts, inputs, expected, Memo())


def _random(shape: tuple[int, ...], palette: Sequence[str], state: random.Random) -> ExactArray:
    array = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        array[place] = exact(Fraction(state.choice(palette)))
    return array
