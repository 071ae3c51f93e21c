"""The scalar types of PTX (PTX ISA 5.2, Fundamental Types) and how numpy stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""A register, or an intermediate value: shape (blocks or 1, threads or 1), see `machine`."""


@dataclass(frozen=True)
class ScalarType:
    """
    One PTX type.

    `kind` is 's' signed, 'u' unsigned, 'b' untyped bits, 'f' float, 'x' a packed pair of floats,
    'p' predicate. `dtype` is what numpy computes in; bfloat16 and packed pairs have no numpy type
    of their own and are handled as bits.
    """

    name: str
    kind: str
    bits: int
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def is_int(self) -> bool:
        return self.kind in "sub"

    @property
    def is_float(self) -> bool:
        return self.kind in "fx"

    def __str__(self) -> str:
        return "." + self.name


def _type(name: str, kind: str, bits: int, dtype: Any) -> ScalarType:
    return ScalarType(name, kind, bits, np.dtype(dtype))


TYPES: dict[str, ScalarType] = {
    t.name: t
    for t in (
        _type("pred", "p", 1, np.bool_),
        _type("b8", "b", 8, np.uint8),
        _type("b16", "b", 16, np.uint16),
        _type("b32", "b", 32, np.uint32),
        _type("b64", "b", 64, np.uint64),
        _type("u8", "u", 8, np.uint8),
        _type("u16", "u", 16, np.uint16),
        _type("u32", "u", 32, np.uint32),
        _type("u64", "u", 64, np.uint64),
        _type("s8", "s", 8, np.int8),
        _type("s16", "s", 16, np.int16),
        _type("s32", "s", 32, np.int32),
        _type("s64", "s", 64, np.int64),
        _type("f16", "f", 16, np.float16),
        _type("bf16", "f", 16, np.uint16),
        _type("tf32", "f", 32, np.float32),
        _type("f32", "f", 32, np.float32),
        _type("f64", "f", 64, np.float64),
        _type("f16x2", "x", 32, np.uint32),
        _type("bf16x2", "x", 32, np.uint32),
    )
}

STORAGE: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.uint16),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}
"""How a register of a width in bits is kept: as raw bits; instructions give them a type."""

POISON: dict[int, int] = {1: 0, 8: 0x7EAD, 16: 0x7EAD, 32: 0x7FC0DEAD, 64: 0x7FF8DEADDEADBEEF}
"""What an unwritten register holds: a NaN as a float and an implausible address as an integer, so
that a program which reads it is noticed in its results."""
