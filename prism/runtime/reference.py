"""
What a bundle's workload computes: its program on the arrays of numpy or of another library.

Each operator is one entry in terms of the few array functions of `ArrayLibrary`, so that the same
meaning serves numpy here and torch on a GPU. It is written apart from `prism.verify.evaluate`,
which reads the MLIR text; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from prism.runtime.launch import RunError
from prism.runtime.manifest import Manifest
from prism.runtime.program import Instruction, Program


class NoReferenceError(RunError):
    """The workload of a bundle has an operator that the reference does not know."""


class ArrayLibrary(Protocol):
    """
    The array functions that operators are made of.

    Arrays are of the library's own type; reductions keep the reduced dim with size 1.
    """

    def exp(self, x: Any) -> Any: ...
    def log(self, x: Any) -> Any: ...
    def sqrt(self, x: Any) -> Any: ...
    def tanh(self, x: Any) -> Any: ...
    def erf(self, x: Any) -> Any: ...
    def matmul(self, x: Any, y: Any) -> Any: ...
    def maximum(self, x: Any, y: Any) -> Any: ...
    def clip(self, x: Any, lower: float | None, upper: float | None) -> Any: ...
    def sum(self, x: Any, dim: int) -> Any: ...
    def mean(self, x: Any, dim: int) -> Any: ...
    def max(self, x: Any, dim: int) -> Any: ...
    def transpose(self, x: Any, permutation: tuple[int, ...]) -> Any: ...
    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any: ...
    def concat(self, arrays: Sequence[Any], dim: int) -> Any: ...
    def cast(self, x: Any, dtype: str) -> Any: ...


Operands = Sequence[Any]
Meaning = Callable[[ArrayLibrary, Operands, Instruction], Any]


def _dim(instruction: Instruction) -> int:
    if instruction.dim is None:
        raise NoReferenceError(f"operator '{instruction.operator}' without its dim")
    return instruction.dim


def _constant(instruction: Instruction, position: int = 0) -> float:
    if len(instruction.constants) <= position:
        raise NoReferenceError(f"operator '{instruction.operator}' without its constant")
    return instruction.constants[position]


def _sigmoid(lib: ArrayLibrary, x: Any) -> Any:
    return 1 / (1 + lib.exp(-x))


def _gelu(lib: ArrayLibrary, x: Any) -> Any:
    return 0.5 * x * (1 + lib.erf(x / math.sqrt(2)))


def _gelu_tanh(lib: ArrayLibrary, x: Any) -> Any:
    return 0.5 * x * (1 + lib.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _centered(lib: ArrayLibrary, x: Any, dim: int) -> Any:
    return x - lib.max(x, dim)


def _softmax(lib: ArrayLibrary, a: Operands, i: Instruction) -> Any:
    weights = lib.exp(_centered(lib, a[0], _dim(i)))
    return weights / lib.sum(weights, _dim(i))


def _log_softmax(lib: ArrayLibrary, a: Operands, i: Instruction) -> Any:
    centered = _centered(lib, a[0], _dim(i))
    return centered - lib.log(lib.sum(lib.exp(centered), _dim(i)))


def _rms_norm(lib: ArrayLibrary, a: Operands, i: Instruction) -> Any:
    last = len(i.shape) - 1
    return a[0] / lib.sqrt(lib.mean(a[0] * a[0], last) + _constant(i))


def _layer_norm(lib: ArrayLibrary, a: Operands, i: Instruction) -> Any:
    last = len(i.shape) - 1
    centered = a[0] - lib.mean(a[0], last)
    variance = lib.mean(centered * centered, last)
    return centered / lib.sqrt(variance + _constant(i)) * a[1] + a[2]


def _slice(lib: ArrayLibrary, a: Operands, i: Instruction) -> Any:
    first, end = int(_constant(i)), int(_constant(i, 1))
    return a[0][(slice(None),) * _dim(i) + (slice(first, end),)]


def _transpose(lib: ArrayLibrary, a: Operands, i: Instruction) -> Any:
    if i.permutation is None:
        raise NoReferenceError("operator 'transpose' without its permutation")
    return lib.transpose(a[0], i.permutation)


MEANINGS: dict[str, Meaning] = {
    "matmul": lambda lib, a, i: lib.matmul(a[0], a[1]),
    "neg": lambda lib, a, i: -a[0],
    "exp": lambda lib, a, i: lib.exp(a[0]),
    "log": lambda lib, a, i: lib.log(a[0]),
    "sqrt": lambda lib, a, i: lib.sqrt(a[0]),
    "rsqrt": lambda lib, a, i: 1 / lib.sqrt(a[0]),
    "square": lambda lib, a, i: a[0] * a[0],
    "reciprocal": lambda lib, a, i: 1 / a[0],
    "sigmoid": lambda lib, a, i: _sigmoid(lib, a[0]),
    "silu": lambda lib, a, i: a[0] * _sigmoid(lib, a[0]),
    "relu": lambda lib, a, i: lib.clip(a[0], 0.0, None),
    "tanh": lambda lib, a, i: lib.tanh(a[0]),
    "gelu": lambda lib, a, i: _gelu(lib, a[0]),
    "gelu_tanh": lambda lib, a, i: _gelu_tanh(lib, a[0]),
    "add": lambda lib, a, i: a[0] + a[1],
    "sub": lambda lib, a, i: a[0] - a[1],
    "mul": lambda lib, a, i: a[0] * a[1],
    "div": lambda lib, a, i: a[0] / a[1],
    "maximum": lambda lib, a, i: lib.maximum(a[0], a[1]),
    "scale": lambda lib, a, i: a[0] * _constant(i),
    "shift": lambda lib, a, i: a[0] + _constant(i),
    "pow": lambda lib, a, i: a[0] ** _constant(i),
    "at_least": lambda lib, a, i: lib.clip(a[0], _constant(i), None),
    "at_most": lambda lib, a, i: lib.clip(a[0], None, _constant(i)),
    "clamp": lambda lib, a, i: lib.clip(a[0], _constant(i), _constant(i, 1)),
    "sum": lambda lib, a, i: lib.sum(a[0], _dim(i)),
    "mean": lambda lib, a, i: lib.mean(a[0], _dim(i)),
    "max": lambda lib, a, i: lib.max(a[0], _dim(i)),
    "transpose": _transpose,
    "slice": _slice,
    "concat": lambda lib, a, i: lib.concat(a, _dim(i)),
    "broadcast": lambda lib, a, i: lib.broadcast_to(a[0], i.shape),
    "reshape": lambda lib, a, i: a[0].reshape(i.shape),
    "cast": lambda lib, a, i: lib.cast(a[0], i.dtype),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
}
"""Every operator of the operator table; over the reals, as design section 4 wants it."""


def evaluate(
    program: Program,
    inputs: Sequence[Any],
    library: ArrayLibrary,
    overrides: Mapping[str, Meaning] | None = None,
) -> list[Any]:
    """
    The outputs of a program on arrays of `library`, of the shapes of the bundle's inputs.

    `overrides` replaces the meaning of operators, by library functions for a whole one, say. Raises
    `NoReferenceError` for an operator without a meaning.
    """
    meanings = {**MEANINGS, **(overrides or {})}
    values = list(inputs)
    for instruction in program.instructions:
        if instruction.operator not in meanings:
            raise NoReferenceError(f"no reference for operator '{instruction.operator}'")
        operands = [values[operand] for operand in instruction.operands]
        values.append(meanings[instruction.operator](library, operands, instruction))
    return [values[output] for output in program.outputs]


class NumpyArrays:
    """`ArrayLibrary` of numpy; arrays keep their type, so float64 in gives float64 out."""

    def __init__(self) -> None:
        import numpy as np

        self._np: Any = np
        self._erf: Any = np.vectorize(math.erf, otypes=[np.float64])

    def exp(self, x: Any) -> Any:
        return self._np.exp(x)

    def log(self, x: Any) -> Any:
        return self._np.log(x)

    def sqrt(self, x: Any) -> Any:
        return self._np.sqrt(x)

    def tanh(self, x: Any) -> Any:
        return self._np.tanh(x)

    def erf(self, x: Any) -> Any:
        return self._erf(x)

    def matmul(self, x: Any, y: Any) -> Any:
        return self._np.matmul(x, y)

    def maximum(self, x: Any, y: Any) -> Any:
        return self._np.maximum(x, y)

    def clip(self, x: Any, lower: float | None, upper: float | None) -> Any:
        return self._np.clip(x, lower, upper)

    def sum(self, x: Any, dim: int) -> Any:
        return self._np.sum(x, axis=dim, keepdims=True)

    def mean(self, x: Any, dim: int) -> Any:
        return self._np.mean(x, axis=dim, keepdims=True)

    def max(self, x: Any, dim: int) -> Any:
        return self._np.max(x, axis=dim, keepdims=True)

    def transpose(self, x: Any, permutation: tuple[int, ...]) -> Any:
        return self._np.transpose(x, permutation)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        return self._np.broadcast_to(x, shape)

    def concat(self, arrays: Sequence[Any], dim: int) -> Any:
        return self._np.concatenate(arrays, axis=dim)

    def cast(self, x: Any, dtype: str) -> Any:
        return x


def reference_outputs(manifest: Manifest, inputs: Sequence[Any]) -> list[Any]:
    """The float64 outputs of a bundle's workload on float64 inputs in the manifest's order."""
    import numpy as np

    with np.errstate(all="ignore"):
        return evaluate(manifest.program, inputs, NumpyArrays())
