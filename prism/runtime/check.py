"""
Checking a run: seeded random inputs, and a comparison with a float64 reference.

An output element may differ from the reference by

    tolerance * (|reference| + rms of the reference)
    tolerance = 4 * u(output) + 4 * u(inputs) + 4 * sqrt(K) * 2^-24

u is the unit roundoff of an element type and K the output's reduction length. The terms are the
output's own rounding; operands of tensor-core products that a graph computes and so rounds to the
inputs' type (each error relative to a term of the sum, so of the size of the output's rms); and K
additions in f32, whose rounding errors grow like sqrt(K). The factors 4 cover the largest of some
10^6 errors that are normally distributed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prism.runtime.dtypes import ELEMENT_TYPES
from prism.runtime.manifest import BufferEntry, Manifest

if TYPE_CHECKING:
    from prism.runtime.dtypes import Float64Array, Storage

F32_UNIT_ROUNDOFF = 2.0**-24
"""Every sum is accumulated in f32."""

SAFETY = 4.0


@dataclass(frozen=True)
class Comparison:
    """
    One output against its reference.

    `max_rel_err` is the largest error relative to |reference| + rms(reference), which `tolerance`
    bounds; both errors are infinite if a value is NaN or infinite where the reference is finite.
    `worst` is the index of the largest relative error, and `nan_count` counts NaN.
    """

    name: str
    max_abs_err: float
    max_rel_err: float
    tolerance: float
    worst: tuple[int, ...]
    nan_count: int

    @property
    def ok(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.nan_count == 0 and self.max_rel_err <= self.tolerance


def draw_inputs(manifest: Manifest, seed: int) -> dict[str, Storage]:
    """Normal values with the standard deviation of each input, in its storage type."""
    import numpy as np

    generator = np.random.default_rng(seed)
    inputs: dict[str, Storage] = {}
    for entry in manifest.inputs:
        std = 1.0 if entry.std is None else entry.std
        values = generator.standard_normal(entry.shape) * std
        inputs[entry.name] = ELEMENT_TYPES[entry.dtype].encode(values)
    return inputs


def decode_inputs(manifest: Manifest, inputs: Mapping[str, Storage]) -> list[Float64Array]:
    """The exact float64 values of inputs, in the manifest's order."""
    return [ELEMENT_TYPES[entry.dtype].decode(inputs[entry.name]) for entry in manifest.inputs]


def tolerance(output: BufferEntry, inputs: tuple[BufferEntry, ...]) -> float:
    """The tolerance of an output; the module's documentation derives it."""
    operand = max(
        (ELEMENT_TYPES[entry.dtype].unit_roundoff for entry in inputs), default=F32_UNIT_ROUNDOFF
    )
    length = output.reduction_length or 1
    return SAFETY * (
        ELEMENT_TYPES[output.dtype].unit_roundoff + operand + math.sqrt(length) * F32_UNIT_ROUNDOFF
    )


def compare(
    entry: BufferEntry, output: Storage, reference: Float64Array, allowed: float
) -> Comparison:
    """
    Compare an output in its storage type with the float64 reference of the same shape.

    Where the reference is beyond the largest value of the output's type, the infinity of the same
    sign is right; a NaN is never right.
    """
    import numpy as np

    kind = ELEMENT_TYPES[entry.dtype]
    found = kind.decode(output)
    expected = np.where(
        np.abs(reference) > kind.largest, kind.decode(kind.encode(reference)), reference
    )
    finite = np.isfinite(expected)
    rms = float(np.sqrt(np.mean(np.square(expected[finite])))) if finite.any() else 0.0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        error = np.where(found == expected, 0.0, np.abs(found - expected))
        relative = np.where(error == 0.0, 0.0, error / (np.abs(expected) + rms))
    nan_count = int(np.count_nonzero(np.isnan(found) | np.isnan(expected)))
    error = np.where(np.isnan(error), np.inf, error)
    relative = np.where(np.isnan(relative), np.inf, relative)
    worst = np.unravel_index(int(np.argmax(relative)), relative.shape)
    return Comparison(
        entry.name,
        float(np.max(error)),
        float(np.max(relative)),
        allowed,
        tuple(int(index) for index in worst),
        nan_count,
    )
