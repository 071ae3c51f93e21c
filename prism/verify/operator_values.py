"""What each operator of the table computes, in float64 numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Values:
    """
    The attributes of an operator at given sizes. `shape` is that of the result: of a tile, the
    tile's.
    """

    dim: int = 0
    constant: float = 0.0
    bounds: tuple[float, float] = (0.0, 0.0)
    permutation: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(x: Array) -> Array:
    """x Phi(x), with Phi the normal distribution."""
    return x * (1 + _erf(x / math.sqrt(2))) / 2


def _gelu_tanh(x: Array) -> Array:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _max(x: Array, dim: int) -> Array:
    """That of no elements, of an empty last chunk, is -inf."""
    return np.max(x, axis=dim, keepdims=True, initial=-np.inf)


def _rms_norm(x: Array, eps: float) -> Array:
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + eps)


def _layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    centered = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(np.square(centered), axis=-1, keepdims=True)
    return centered / np.sqrt(variance + eps) * weight + bias


def _log_softmax(x: Array, dim: int) -> Array:
    shifted = x - np.max(x, axis=dim, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


def _softmax(x: Array, dim: int) -> Array:
    """A row that is -inf throughout gives NaN."""
    exponentials = np.exp(x - np.max(x, axis=dim, keepdims=True))
    return exponentials / np.sum(exponentials, axis=dim, keepdims=True)


def _slice(x: Array, values: Values) -> Array:
    first, last = values.bounds
    place = [slice(None)] * x.ndim
    place[values.dim] = slice(int(first), int(last))
    return x[tuple(place)]


OPERATOR_VALUES: Mapping[str, Callable[[Sequence[Array], Values], Array]] = {
    "matmul": lambda x, _: np.matmul(x[0], x[1]),
    # elementwise
    "neg": lambda x, _: np.negative(x[0]),
    "exp": lambda x, _: np.exp(x[0]),
    "log": lambda x, _: np.log(x[0]),
    "sqrt": lambda x, _: np.sqrt(x[0]),
    "rsqrt": lambda x, _: 1 / np.sqrt(x[0]),
    "square": lambda x, _: np.square(x[0]),
    "reciprocal": lambda x, _: 1 / x[0],
    "sigmoid": lambda x, _: _sigmoid(x[0]),
    "silu": lambda x, _: x[0] * _sigmoid(x[0]),
    "relu": lambda x, _: np.maximum(x[0], 0),
    "tanh": lambda x, _: np.tanh(x[0]),
    "gelu": lambda x, _: _gelu(x[0]),
    "gelu_tanh": lambda x, _: _gelu_tanh(x[0]),
    "add": lambda x, _: np.add(x[0], x[1]),
    "sub": lambda x, _: np.subtract(x[0], x[1]),
    "mul": lambda x, _: np.multiply(x[0], x[1]),
    "div": lambda x, _: np.divide(x[0], x[1]),
    "maximum": lambda x, _: np.maximum(x[0], x[1]),
    "scale": lambda x, v: x[0] * v.constant,
    "shift": lambda x, v: x[0] + v.constant,
    "pow": lambda x, v: np.power(x[0], v.constant),
    "at_least": lambda x, v: np.maximum(x[0], v.constant),
    "at_most": lambda x, v: np.minimum(x[0], v.constant),
    # reductions
    "sum": lambda x, v: np.sum(x[0], axis=v.dim, keepdims=True),
    "mean": lambda x, v: np.mean(x[0], axis=v.dim, keepdims=True),
    "max": lambda x, v: _max(x[0], v.dim),
    # the same elements elsewhere
    "transpose": lambda x, v: np.transpose(x[0], v.permutation),
    "slice": lambda x, v: _slice(x[0], v),
    "concat": lambda x, v: np.concatenate(x, axis=v.dim),
    "broadcast": lambda x, v: np.broadcast_to(x[0], v.shape),
    "reshape": lambda x, v: np.reshape(x[0], v.shape),
    # composites
    "cast": lambda x, _: x[0],
    "clamp": lambda x, v: np.minimum(np.maximum(x[0], v.bounds[0]), v.bounds[1]),
    "softmax": lambda x, v: _softmax(x[0], v.dim),
    "log_softmax": lambda x, v: _log_softmax(x[0], v.dim),
    "rms_norm": lambda x, v: _rms_norm(x[0], v.constant),
    "layer_norm": lambda x, v: _layer_norm(x[0], x[1], x[2], v.constant),
}
"""
Per operator its value on arrays. A cast does not round: equality is over the reals, and so is the
reference.
"""
