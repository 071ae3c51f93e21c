"""Element types of device buffers: their numpy storage, rounding, and conversion from float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Float64Array = NDArray[np.float64]
    Storage = NDArray[np.generic]


@dataclass(frozen=True)
class ElementType:
    """
    One element type.

    `unit_roundoff` is the largest relative error of rounding to nearest, 2^-p for p bits of
    precision; `largest` the largest finite value. numpy has no bfloat16: its bits are stored as
    unsigned integers, which `encode` (from float64, to nearest even) and `decode` convert.
    """

    name: str
    size: int
    storage: str
    unit_roundoff: float
    largest: float
    encode: Callable[[Float64Array], Storage]
    decode: Callable[[Storage], Float64Array]


def _encode_as(storage: str) -> Callable[[Float64Array], Storage]:
    def encode(values: Float64Array) -> Storage:
        import numpy as np

        # Overflow to infinity is what the device does too.
        with np.errstate(over="ignore"):
            return values.astype(storage)

    return encode


def _decode_float(values: Storage) -> Float64Array:
    return values.astype("float64")


def _encode_bf16(values: Float64Array) -> Storage:
    import numpy as np

    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    # Rounding f64 -> f32 -> bf16 twice differs from rounding once only on ties of 2^-29 width.
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(single), np.uint32(0x7FC0), rounded).astype(np.uint16)


def _decode_bf16(values: Storage) -> Float64Array:
    import numpy as np

    bits = np.ascontiguousarray(values, dtype=np.uint16).astype(np.uint32) << np.uint32(16)
    # Widening a signaling NaN is an invalid operation, and what is wanted.
    with np.errstate(invalid="ignore"):
        return bits.view(np.float32).astype(np.float64)


ELEMENT_TYPES: dict[str, ElementType] = {
    entry.name: entry
    for entry in (
        ElementType("f16", 2, "float16", 2.0**-11, 65504.0, _encode_as("float16"), _decode_float),
        ElementType(
            "bf16", 2, "uint16", 2.0**-8, (2 - 2.0**-7) * 2.0**127, _encode_bf16, _decode_bf16
        ),
        ElementType(
            "f32",
            4,
            "float32",
            2.0**-24,
            (2 - 2.0**-23) * 2.0**127,
            _encode_as("float32"),
            _decode_float,
        ),
    )
}
"""Every element type that a bundle may hold, by its MLIR name."""
