"""
Counterexamples: small sizes and inputs at which a graph computes something else than its workload.

They explain a refusal and never make a verdict `equal`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import func

from prism.dialects.kernel import GraphDefOp
from prism.dialects.operator_op import OperatorOp
from prism.dialects.sym import axis_parameter, shape_of
from prism.verify.evaluate import (
    Array,
    EvaluationError,
    evaluate_candidate,
    evaluate_function,
    shape_at,
)

_TOLERANCE = 1e-6
"""Far above what float64 loses at such sizes, far below a real difference."""

_MAX_ELEMENTS = 50_000
"""Inputs larger than this (constant sizes) are not tried."""


def counterexample(workload: func.FuncOp, candidate: func.FuncOp) -> str | None:
    """
    Where a candidate differs from its workload, as text, or None if a few attempts show nothing.
    """
    return Examples(workload).against(candidate)


@dataclass(frozen=True)
class _Attempt:
    sizes: Mapping[str, int]
    counts: Mapping[str, int]
    inputs: Sequence[Array]
    expected: Sequence[Array]


class Examples:
    """Counterexamples to many candidates of a workload, which is evaluated once at each size."""

    def __init__(self, workload: func.FuncOp) -> None:
        self.workload = workload
        self._attempts: dict[tuple[tuple[str, ...], tuple[str, ...]], list[_Attempt]] = {}

    def against(self, candidate: func.FuncOp) -> str | None:
        """As `counterexample`."""
        names = tuple(sorted({*size_names(self.workload), *size_names(candidate)}))
        axes = tuple(
            dict.fromkeys(
                axis
                for op in candidate.walk()
                if isinstance(op, GraphDefOp)
                for axis in (*op.grid_axes, *op.loop_axes)
            )
        )
        if (names, axes) not in self._attempts:
            self._attempts[names, axes] = list(_attempts(self.workload, names, axes))
        for attempt in self._attempts[names, axes]:
            sizes, counts = attempt.sizes, attempt.counts
            try:
                results = evaluate_candidate(candidate, attempt.inputs, sizes, counts)
            except EvaluationError:
                continue
            for result, (left, right) in enumerate(zip(results, attempt.expected, strict=True)):
                place = _difference(left, right)
                if place is not None:
                    of_axes = {axis_parameter(axis): count for axis, count in counts.items()}
                    at = ", ".join(f"{name} = {n}" for name, n in {**sizes, **of_axes}.items())
                    return (
                        f"at {at} element {list(place)} of result {result} can be "
                        f"{left[place]:.6g} where the workload gives {right[place]:.6g}"
                    )
        return None


def _difference(found: Array, expected: Array) -> tuple[int, ...] | None:
    """The place of the largest difference among elements that the workload defines, if real."""
    if found.shape != expected.shape or not found.size:
        return None
    defined = np.isfinite(expected)
    scale = 1 + np.abs(np.where(defined, expected, 0))
    with np.errstate(all="ignore"):
        error = np.where(defined, np.abs(found - expected) / scale, 0)
    error = np.where(np.isnan(error), np.inf, error)
    place = np.unravel_index(int(np.argmax(error)), error.shape)
    return tuple(map(int, place)) if error[place] > _TOLERANCE else None


def _attempts(
    workload: func.FuncOp, names: Sequence[str], axes: Sequence[str]
) -> Iterator[_Attempt]:
    """Sizes, axis sizes and inputs: positive ones first, which no root or log makes undefined."""
    for seed, start in enumerate((2, 3)):
        sizes = {name: start + index % 4 for index, name in enumerate(names)}
        counts = {axis: 2 + seed for axis in axes}
        state = random.Random(seed)
        arguments = workload.body.block.args
        try:
            shapes = [shape_at(argument, sizes) for argument in arguments]
        except EvaluationError:
            return
        if sum(int(np.prod(shape)) for shape in shapes) > _MAX_ELEMENTS:
            return
        low = 0.5 if seed == 0 else -1.0
        inputs = [
            np.array([state.uniform(low, 1.5) for _ in range(int(np.prod(shape)))]).reshape(shape)
            for shape in shapes
        ]
        try:
            expected = evaluate_function(workload, inputs, sizes)
        except EvaluationError:
            continue
        yield _Attempt(sizes, counts, inputs, expected)


def size_names(function: func.FuncOp) -> list[str]:
    """The parameters in the types and constants of a function, in order."""
    names = {
        name
        for argument in function.body.block.args
        for size in shape_of(argument.type)
        for name in size.symbols()
    }
    for op in function.walk():
        if isinstance(op, OperatorOp) and op.constant_value is not None:
            names |= op.constant_value.symbols()
    return sorted(names)
