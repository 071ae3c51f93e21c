"""
Device arrays of other libraries: where their memory is, checked against what a bundle wants.

torch tensors are read by their attributes, all others by `__cuda_array_interface__` or DLPack
through cuda.core, which also orders the producer's stream before ours.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from prism.runtime.cuda_core import LEGACY_STREAM, CudaDevice
from prism.runtime.dtypes import ELEMENT_TYPES
from prism.runtime.launch import RunError
from prism.runtime.manifest import BufferEntry

_DLPACK_CUDA = 2
"""The device type of CUDA memory (DLPack, DLDeviceType)."""

ALIGNMENT = 16
"""Kernels access memory in vectors of up to 16 bytes, from addresses that are multiples of 16."""

_NAMES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
"""MLIR's names of element types by numpy's and torch's."""


@dataclass(frozen=True)
class ArrayView:
    """An array on a GPU; `strides` count elements, None if it is contiguous."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    ordinal: int


def is_torch(array: object) -> bool:
    """Whether an array is a torch tensor; torch is not imported for it."""
    torch = cast(Any, sys.modules.get("torch"))
    return torch is not None and isinstance(array, torch.Tensor)


def is_on_gpu(array: Any) -> bool:
    """Whether an array says that it is in the memory of an NVIDIA GPU."""
    if is_torch(array):
        return bool(array.is_cuda)
    if hasattr(array, "__cuda_array_interface__"):
        return True
    if not hasattr(array, "__dlpack_device__"):
        return False
    return int(array.__dlpack_device__()[0]) == _DLPACK_CUDA


def ordinal_of(array: Any) -> int:
    """The number of the GPU that an array is on; 0 if it does not say."""
    if is_torch(array):
        return int(array.get_device())
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    return 0


def stream_handle(stream: Any) -> int:
    """The handle of a stream given as a number or by the protocol `__cuda_stream__`."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    found = type(stream).__name__
    raise RunError(f"stream: expected a handle or an object with __cuda_stream__, found {found}")


def current_stream(array: Any) -> int:
    """The handle of the current stream of the library that made an array; 1 if it has none."""
    if is_torch(array):
        torch = cast(Any, sys.modules["torch"])
        return int(torch.cuda.current_stream(array.device).cuda_stream)
    cupy = cast(Any, sys.modules.get("cupy"))
    if cupy is not None and isinstance(array, cupy.ndarray):
        return int(cupy.cuda.get_current_stream().ptr)
    return LEGACY_STREAM


def view_of(name: str, array: Any, device: CudaDevice, stream: int) -> ArrayView:
    """
    The view of an array for use on a stream.

    Raises `RunError` if it is on no GPU, or needs a gradient that kernels do not give.
    """
    if not is_on_gpu(array):
        raise RunError(f"'{name}': expected an array on a GPU, found {type(array).__name__}")
    if is_torch(array):
        torch = cast(Any, sys.modules["torch"])
        if array.requires_grad and torch.is_grad_enabled():
            raise RunError(f"'{name}': needs a gradient, which kernels do not compute; detach it")
        return ArrayView(
            int(array.data_ptr()),
            tuple(int(size) for size in array.shape),
            tuple(int(stride) for stride in array.stride()),
            str(array.dtype).removeprefix("torch."),
            int(array.get_device()),
        )
    try:
        view = device.core.utils.StridedMemoryView.from_any_interface(array, stream_ptr=stream)
        dtype = str(view.dtype.name)
    except (BufferError, NotImplementedError, TypeError, ValueError) as error:
        raise RunError(f"'{name}': cannot read {type(array).__name__}: {error}") from error
    strides = view.strides
    return ArrayView(
        int(view.ptr),
        tuple(int(size) for size in view.shape),
        None if strides is None else tuple(int(stride) for stride in strides),
        dtype,
        int(view.device_id),
    )


def check_view(entry: BufferEntry, view: ArrayView, ordinal: int) -> None:
    """Raise `RunError` if a view is not what the bundle's buffer says, before anything runs."""
    where = f"'{entry.name}'"
    if view.shape != entry.shape:
        raise RunError(f"{where}: expected shape {entry.shape}, found {view.shape}")
    # bf16 may also come as its bits, as numpy arrays hold it.
    found = _NAMES.get(view.dtype, view.dtype)
    if found != entry.dtype and view.dtype != ELEMENT_TYPES[entry.dtype].storage:
        raise RunError(f"{where}: expected elements of {entry.dtype}, found {found}")
    expected = contiguous_strides(entry.shape)
    if view.strides is not None:
        differ = any(
            size > 1 and stride != wanted
            for size, stride, wanted in zip(view.shape, view.strides, expected, strict=True)
        )
        if differ:
            raise RunError(
                f"{where}: expected a contiguous array with strides {expected}, "
                f"found {view.strides}"
            )
    if view.pointer % ALIGNMENT:
        raise RunError(f"{where}: its address {view.pointer:#x} is no multiple of {ALIGNMENT}")
    if view.ordinal != ordinal:
        raise RunError(f"{where}: expected an array on GPU {ordinal}, found one on {view.ordinal}")


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a row-major array, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class DeviceArray:
    """
    An output on a GPU for callers without a library that could hold it.

    Other libraries take it by `__cuda_array_interface__` (version 3), with the stream that wrote
    it; bf16, for which the interface has no name, goes as uint16.
    """

    def __init__(self, entry: BufferEntry, device: CudaDevice, stream: Any, handle: int) -> None:
        self._buffer = device.allocate(entry.nbytes, stream)
        self._stream, self._handle = stream, handle
        self.shape, self.dtype, self.ordinal = entry.shape, entry.dtype, device.ordinal

    @property
    def pointer(self) -> int:
        """The device address."""
        return int(self._buffer.handle)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """The array as numba, CuPy and torch take it."""
        typestr = {"f16": "<f2", "bf16": "<u2", "f32": "<f4"}[self.dtype]
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.pointer, False),
            "strides": None,
            "stream": self._handle or LEGACY_STREAM,
        }

    def close(self) -> None:
        """Free the memory, in the order of the stream that wrote it."""
        self._buffer.close(self._stream)
