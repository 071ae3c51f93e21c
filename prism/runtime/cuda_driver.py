"""The backend that launches cubins on a GPU through the CUDA driver API of cuda-python."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
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


class _Driver:
    """
    `cuda.bindings.driver` (untyped) with errors as exceptions.

    The library is looked for with the dynamic loader first: cuda-python's own search for a missing
    driver is slow, and some of its calls hang without one.
    """

    def __init__(self) -> None:
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise RunError(
                "backend 'cuda': no NVIDIA driver on this machine (libcuda.so.1 not found); "
                "use --backend sim"
            ) from error
        self._module = cast(Any, import_module("cuda.bindings.driver"))

    def call(self, name: str, *arguments: object) -> Any:
        """The result of a driver function; a failure is a `RunError` with the driver's text."""
        status, *results = getattr(self._module, name)(*arguments)
        if status != self._module.CUresult.CUDA_SUCCESS:
            _, text = self._module.cuGetErrorString(status)
            reason = bytes(text).decode("utf-8", "replace") if text else str(status)
            raise RunError(f"backend 'cuda': {name}: {reason}")
        return results[0] if results else None

    def enumerator(self, kind: str, name: str) -> object:
        """A value of one of the driver's enumerations."""
        return getattr(getattr(self._module, kind), name)


@dataclass(frozen=True)
class _CudaBuffer:
    driver: _Driver
    pointer: Any
    template: Storage

    def numpy(self) -> NDArray[np.generic]:
        """Copy the buffer back to a new host array."""
        import numpy as np

        result = np.empty_like(self.template)
        self.driver.call("cuMemcpyDtoH", result.ctypes.data, self.pointer, result.nbytes)
        return result


class CudaBackend:
    """
    Runs kernels on device 0, in its primary context, one after the other.

    A cubin runs on its own compute capability and later minor ones; on a later major one the driver
    compiles the bundle's PTX instead.
    """

    name = "cuda"

    def __init__(self, compute_capability: tuple[int, int]) -> None:
        self._driver = _Driver()
        call = self._driver.call
        call("cuInit", 0)
        self._device = call("cuDeviceGet", 0)
        found = tuple(
            int(
                call(
                    "cuDeviceGetAttribute",
                    self._driver.enumerator("CUdevice_attribute", attribute),
                    self._device,
                )
            )
            for attribute in (
                "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
                "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
            )
        )
        if found < compute_capability:
            needed, has = (f"{major}.{minor}" for major, minor in (compute_capability, found))
            raise RunError(
                f"backend 'cuda': the bundle needs compute capability {needed}, the GPU has {has}"
            )
        self._use_cubin = found[0] == compute_capability[0]
        call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", self._device))
        self._pointers: list[Any] = []
        self._modules: list[Any] = []
        self._functions: dict[str, Any] = {}

    def upload(self, array: Storage) -> DeviceBuffer:
        """Copy an array to device memory."""
        import numpy as np

        host = np.ascontiguousarray(array)
        pointer = self._driver.call("cuMemAlloc", host.nbytes)
        self._pointers.append(pointer)
        self._driver.call("cuMemcpyHtoD", pointer, host.ctypes.data, host.nbytes)
        return _CudaBuffer(self._driver, pointer, host)

    def launch(self, bundle: Bundle, kernel: KernelEntry, buffers: list[DeviceBuffer]) -> Counts:
        """Launch on the default stream and wait; the GPU counts nothing."""
        function = self._function(bundle, kernel)
        values = tuple(int(cast(_CudaBuffer, buffer).pointer) for buffer in buffers)
        arguments = (values, (ctypes.c_void_p,) * len(values))
        try:
            self._driver.call(
                "cuLaunchKernel",
                function,
                *kernel.grid,
                *kernel.block,
                kernel.dynamic_smem,
                0,
                arguments,
                0,
            )
            self._driver.call("cuCtxSynchronize")
        except RunError as error:
            raise KernelFaultError(f"kernel '{kernel.name}': {error}") from error
        return Counts()

    def _function(self, bundle: Bundle, kernel: KernelEntry) -> Any:
        if kernel.name not in self._functions:
            image = bundle.cubin(kernel) if self._use_cubin else bundle.files[kernel.ptx] + b"\0"
            module = self._driver.call("cuModuleLoadData", image)
            self._modules.append(module)
            function = self._driver.call("cuModuleGetFunction", module, kernel.name.encode())
            if kernel.dynamic_smem > _DEFAULT_DYNAMIC_SMEM:
                attribute = self._driver.enumerator(
                    "CUfunction_attribute", "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
                )
                self._driver.call("cuFuncSetAttribute", function, attribute, kernel.dynamic_smem)
            self._functions[kernel.name] = function
        return self._functions[kernel.name]

    def close(self) -> None:
        """Free memory and modules; after a kernel fault the context is lost and frees fail."""
        for name, handles in (("cuMemFree", self._pointers), ("cuModuleUnload", self._modules)):
            for handle in handles:
                try:
                    self._driver.call(name, handle)
                except RunError:
                    return
        self._driver.call("cuDevicePrimaryCtxRelease", self._device)
