"""
GPUs through cuda.core, as little of it as launching needs, with its errors as `RunError`.

cuda.core is untyped here and imported only when a driver is there: without one some of its calls
hang (`ObjectCode.get_kernel`, the second time).
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from prism.runtime.bundle import Bundle
from prism.runtime.launch import Counts, DeviceBuffer, KernelFaultError, RunError
from prism.runtime.manifest import KernelEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prism.runtime.dtypes import Storage

_DEFAULT_DYNAMIC_SMEM = 48 * 1024
"""What a kernel may use without opting in (CUDA C++ Programming Guide, shared memory)."""

LEGACY_STREAM = 1
"""The handle of the legacy default stream (CUDA driver API, CU_STREAM_LEGACY)."""


class NoDriverError(RunError):
    """The machine has no NVIDIA driver, or none that cuda.core can use."""


def require_driver() -> None:
    """Raise `NoDriverError` if the driver's library is not there; fast, and touches no GPU."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoDriverError(
            "backend 'cuda': no NVIDIA driver on this machine (libcuda.so.1 not found); "
            "use --backend sim"
        ) from error


def _import_cuda_core() -> Any:
    """`cuda.core` after a check that the driver's library is there."""
    require_driver()
    try:
        core = cast(Any, import_module("cuda.core"))
    except ImportError as error:
        raise NoDriverError(f"backend 'cuda': cuda-python cannot be imported: {error}") from error
    if not hasattr(core, "Device"):
        version = getattr(core, "__version__", "of unknown version")
        raise NoDriverError(f"backend 'cuda': needs cuda.core 1 or later, found {version}")
    return core


class CudaDevice:
    """
    One GPU and the kernels loaded on it.

    A cubin runs on its own compute capability and later minor ones; on a later major one the driver
    compiles the bundle's PTX instead.
    """

    def __init__(self, compute_capability: tuple[int, int], ordinal: int = 0) -> None:
        self.core = _import_cuda_core()
        # The only name of the error that cuda.core raises for a failed driver call.
        self.error = cast(type[Exception], import_module("cuda.core._utils.cuda_utils").CUDAError)
        with self._reported("Device"):
            self.device = self.core.Device(ordinal)
            self.device.set_current()
            capability = self.device.compute_capability
            found = (int(capability[0]), int(capability[1]))
        if found < compute_capability:
            needed, has = (f"{major}.{minor}" for major, minor in (compute_capability, found))
            raise RunError(
                f"backend 'cuda': the bundle needs compute capability {needed}, the GPU has {has}"
            )
        self.ordinal = ordinal
        self.image = "cubin" if found[0] == compute_capability[0] else "ptx"
        self._kernels: dict[tuple[str, str], Any] = {}

    @contextmanager
    def _reported(self, call: str, fault: type[RunError] = RunError) -> Generator[None]:
        """Turn what cuda.core raises for a failed driver call into a `RunError`."""
        try:
            yield
        except self.error as error:
            raise fault(f"backend 'cuda': {call}: {' '.join(str(error).split())}") from error

    def make_current(self) -> None:
        """Make this GPU the calling thread's current one."""
        with self._reported("Device.set_current"):
            self.device.set_current()

    def stream(self, handle: int) -> Any:
        """A caller's stream by its handle; 0, the default stream, is the legacy one."""
        with self._reported("Stream.from_handle"):
            return self.core.Stream.from_handle(handle or LEGACY_STREAM)

    def allocate(self, nbytes: int, stream: Any) -> Any:
        """Device memory in the order of a stream; `close(stream)` frees it."""
        with self._reported("Device.allocate"):
            return self.device.allocate(nbytes, stream=stream)

    def load(self, bundle: Bundle, entry: KernelEntry) -> Any:
        """A kernel of a bundle, loaded when it is first asked for."""
        key = (bundle.manifest.files[entry.ptx], entry.name)
        if key not in self._kernels:
            with self._reported(f"loading kernel '{entry.name}'"):
                objects = self.core.ObjectCode
                if self.image == "cubin":
                    code = objects.from_cubin(bundle.cubin(entry))
                else:
                    code = objects.from_ptx(bundle.files[entry.ptx])
                kernel = code.get_kernel(entry.name)
            if entry.dynamic_smem > _DEFAULT_DYNAMIC_SMEM:
                self._allow_dynamic_smem(kernel, entry.dynamic_smem)
            self._kernels[key] = kernel
        return self._kernels[key]

    def _allow_dynamic_smem(self, kernel: Any, nbytes: int) -> None:
        """cuda.core has no stable call for it, the driver API has."""
        driver = cast(Any, import_module("cuda.bindings.driver"))
        attributes = driver.CUfunction_attribute
        attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (status,) = driver.cuKernelSetAttribute(attribute, nbytes, kernel.handle, self.ordinal)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RunError(f"backend 'cuda': {nbytes} bytes of shared memory: {status.name}")

    def launch(
        self, bundle: Bundle, entry: KernelEntry, pointers: Sequence[int], stream: Any
    ) -> None:
        """Launch a kernel on a stream; its parameters are all pointers. Does not wait."""
        kernel = self.load(bundle, entry)
        config = self.core.LaunchConfig(
            grid=entry.grid, block=entry.block, shmem_size=entry.dynamic_smem
        )
        with self._reported(f"launching kernel '{entry.name}'"):
            self.core.launch(stream, config, kernel, *pointers)

    def wait(self, stream: Any, what: str) -> None:
        """Wait for a stream; a kernel that went wrong is a `KernelFaultError`."""
        with self._reported(what, KernelFaultError):
            stream.sync()

    def pinned(self, nbytes: int) -> Any:
        """Host memory that the GPU copies from and to."""
        with self._reported("LegacyPinnedMemoryResource.allocate"):
            return self.core.LegacyPinnedMemoryResource().allocate(nbytes)

    def copy(self, source: Any, target: Any, stream: Any) -> None:
        """Copy a buffer to another of its size and wait."""
        with self._reported("Buffer.copy_to", KernelFaultError):
            source.copy_to(target, stream=stream)
            stream.sync()


class _CudaBuffer:
    """A device copy of a host array."""

    def __init__(self, device: CudaDevice, stream: Any, array: Storage) -> None:
        import numpy as np

        self._device, self._stream = device, stream
        self._template = np.ascontiguousarray(array)
        self._staging = device.pinned(self._template.nbytes)
        self.buffer = device.allocate(self._template.nbytes, stream)
        source = self._template.ctypes.data
        ctypes.memmove(int(self._staging.handle), source, self._template.nbytes)
        device.copy(self._staging, self.buffer, stream)

    @property
    def pointer(self) -> int:
        """The device address."""
        return int(self.buffer.handle)

    def numpy(self) -> NDArray[np.generic]:
        """Copy the buffer back to a new host array."""
        import numpy as np

        result = np.empty_like(self._template)
        self._device.copy(self.buffer, self._staging, self._stream)
        ctypes.memmove(result.ctypes.data, int(self._staging.handle), result.nbytes)
        return result

    def close(self) -> None:
        """Free both memories."""
        self.buffer.close(self._stream)
        self._staging.close()


class CudaBackend:
    """Runs kernels on GPU 0, one after the other, on a stream of its own."""

    name = "cuda"

    def __init__(self, compute_capability: tuple[int, int]) -> None:
        self._device = CudaDevice(compute_capability)
        self._stream = self._device.device.create_stream()
        self._buffers: list[_CudaBuffer] = []

    def upload(self, array: Storage) -> DeviceBuffer:
        """Copy an array to device memory."""
        buffer = _CudaBuffer(self._device, self._stream, array)
        self._buffers.append(buffer)
        return buffer

    def launch(self, bundle: Bundle, kernel: KernelEntry, buffers: list[DeviceBuffer]) -> Counts:
        """Launch and wait; the GPU counts nothing."""
        pointers = [cast(_CudaBuffer, buffer).pointer for buffer in buffers]
        self._device.launch(bundle, kernel, pointers, self._stream)
        self._device.wait(self._stream, f"kernel '{kernel.name}'")
        return Counts()

    def close(self) -> None:
        """Free memory and the stream; after a fault the context is lost and frees may fail."""
        with suppress(self._device.error):
            for buffer in self._buffers:
                buffer.close()
            self._stream.close()
