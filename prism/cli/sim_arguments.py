"""
The `--arg` options of `prism sim`.

A number (`8`, `0x10`, `2.5`); `TYPE:SHAPE[:FILL]` for a buffer, e.g. `f16:8x4096:normal`;
`@FILE.npy` for a buffer with the contents of a file; `hex:BYTES` for a structure by value.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from prism.errors import PrismError

if TYPE_CHECKING:
    from prism.simulator import Buffer, Kernel, Simulator

MAX_BYTES = 1 << 32
"""Largest buffer that an argument may ask for."""

DTYPES: dict[str, str] = {
    **{f"{kind}{bits}": f"{kind}{bits // 8}" for kind in "fu" for bits in (16, 32, 64)},
    **{f"s{bits}": f"i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"i{bits}": f"i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"b{bits}": f"u{bits // 8}" for bits in (8, 16, 32, 64)},
    "u8": "u1",
    "bf16": "u2",
}
"""Element types; bfloat16 is kept as its bits, which is how it is saved too."""

FILLS = ("zeros", "ones", "normal", "uniform", "arange", "empty")


@dataclass
class Argument:
    """An argument of a launch; `value` is what the kernel gets, `buffer` is set for memory."""

    spec: str
    value: object
    buffer: Buffer | None = None

    def data(self) -> npt.NDArray[Any]:
        """A copy of the buffer's contents."""
        if self.buffer is None:
            raise TypeError(f"{self.spec} is no buffer")
        return self.buffer.numpy()


def make_arguments(
    simulator: Simulator, kernel: Kernel, specs: list[str], seed: int
) -> list[Argument]:
    """The arguments of a launch. Raises PrismError for one that makes no sense."""
    if len(specs) != len(kernel.params):
        names = ", ".join(f"{p.name} (.{p.type})" for p in kernel.params)
        message = f"'{kernel.name}' takes {len(kernel.params)} --arg, found {len(specs)}: {names}"
        raise PrismError(message)
    rng = np.random.default_rng(seed)
    return [_argument(simulator, spec, rng) for spec in specs]


def _argument(simulator: Simulator, spec: str, rng: np.random.Generator) -> Argument:
    if spec.startswith("@"):
        buffer = simulator.alloc(_load(spec))
        return Argument(spec, buffer, buffer)
    if spec.startswith("hex:"):
        try:
            return Argument(spec, bytes.fromhex(spec[4:]))
        except ValueError:
            raise _bad(spec, "expected hexadecimal bytes after 'hex:'") from None
    if ":" not in spec:
        return Argument(spec, _number(spec))
    parts = spec.split(":")
    if len(parts) > 3:
        raise _bad(spec, "expected TYPE:SHAPE[:FILL]")
    if parts[0] not in DTYPES:
        raise _bad(spec, f"unknown type '{parts[0]}'; one of {', '.join(DTYPES)}")
    shape = _shape(spec, parts[1])
    dtype = np.dtype(DTYPES[parts[0]])
    size = dtype.itemsize
    for extent in shape:
        size *= extent
        if size > MAX_BYTES:
            raise _bad(spec, f"more than {MAX_BYTES} bytes")
    fill = parts[2] if len(parts) == 3 else "zeros"
    if fill == "empty":
        buffer = simulator.empty(shape, dtype)
    else:
        buffer = simulator.alloc(_filled(spec, parts[0], shape, dtype, fill, rng))
    return Argument(spec, buffer, buffer)


def _bad(spec: str, message: str) -> PrismError:
    return PrismError(f"--arg {spec}: {message}")


def _number(spec: str) -> int | float:
    try:
        return int(spec, 0)
    except ValueError:
        pass
    try:
        return float(spec)
    except ValueError:
        message = "expected a number, TYPE:SHAPE[:FILL], @FILE.npy or hex:BYTES"
        raise _bad(spec, message) from None


def _shape(spec: str, text: str) -> tuple[int, ...]:
    sizes = text.split("x")
    if not all(size.isascii() and size.isdigit() for size in sizes) or len(sizes) > 8:
        raise _bad(spec, f"expected a shape such as 8x4096, found '{text}'")
    return tuple(int(size) for size in sizes)


def _filled(
    spec: str,
    type_name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    fill: str,
    rng: np.random.Generator,
) -> npt.NDArray[Any]:
    floats = type_name in ("f16", "f32", "f64", "bf16")
    if fill == "zeros":
        return np.zeros(shape, dtype)
    if fill == "ones":
        values: npt.NDArray[Any] = np.ones(shape)
    elif fill == "normal":
        values = rng.standard_normal(shape)
    elif fill == "uniform":
        values = rng.random(shape) if floats else rng.integers(0, 100, shape)
    elif fill == "arange":
        values = np.arange(int(np.prod(shape))).reshape(shape)
    else:
        try:
            values = np.full(shape, _number(fill))
        except PrismError:
            message = f"unknown fill '{fill}'; a number or one of {', '.join(FILLS)}"
            raise _bad(spec, message) from None
    if fill == "normal" and not floats:
        raise _bad(spec, "'normal' is for float types")
    if type_name == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        return (rounded >> np.uint32(16)).astype(np.uint16)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def _load(spec: str) -> npt.NDArray[Any]:
    try:
        # Mapped, so that a header of any size reserves nothing before it is checked.
        array: npt.NDArray[Any] = np.load(Path(spec[1:]), mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise _bad(spec, f"cannot read: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise _bad(spec, f"not a .npy array: {' '.join(str(error).split())}") from error
    if hasattr(array, "files") or array.nbytes > MAX_BYTES:
        raise _bad(spec, f"expected one array of up to {MAX_BYTES} bytes")
    return np.array(array)
