"""The calls of cuda.core that Prism makes, on host memory: a launch copies, and all is remembered."""

import ctypes
from math import prod
from types import SimpleNamespace
from typing import Any


class FakeCudaError(Exception):
    pass


class FakeBuffer:
    def __init__(self, core: "FakeCudaCore", size: int) -> None:
        self.memory = ctypes.create_string_buffer(size + 16)
        self.handle = -(-ctypes.addressof(self.memory) // 16) * 16
        self.size, self.core = size, core
        core.open.add(self)

    def copy_to(self, target: "FakeBuffer", *, stream: Any) -> None:
        self.core.check("copy_to")
        assert self.size == target.size
        ctypes.memmove(target.handle, self.handle, self.size)

    def close(self, stream: Any = None) -> None:
        self.core.check("close")
        self.core.open.remove(self)


class FakeCudaCore:
    """Stands for the module `cuda.core`; `failing` names calls that raise as a driver would."""

    def __init__(self) -> None:
        self.capability = (8, 0)
        self.failing: set[str] = set()
        self.calls: list[tuple[Any, ...]] = []
        self.open: set[Any] = set()
        self.copies = 1
        """Launches after which the output is the input; 0 leaves it alone."""
        self.utils = SimpleNamespace(
            StridedMemoryView=SimpleNamespace(from_any_interface=self.view)
        )
        self.ObjectCode = SimpleNamespace(from_cubin=self.from_cubin, from_ptx=self.from_ptx)
        self.Stream = SimpleNamespace(from_handle=self.from_handle)

    def check(self, name: str) -> None:
        if name in self.failing:
            raise FakeCudaError(f"CUDA_ERROR_ILLEGAL_ADDRESS: {name}")

    def Device(self, ordinal: int) -> Any:
        self.check("Device")
        return SimpleNamespace(
            set_current=lambda: self.calls.append(("set_current", ordinal)),
            compute_capability=self.capability,
            create_stream=lambda: self.from_handle(77),
            allocate=self.allocate,
        )

    def allocate(self, size: int, *, stream: Any) -> FakeBuffer:
        self.calls.append(("allocate", size, stream.handle))
        return FakeBuffer(self, size)

    def LegacyPinnedMemoryResource(self) -> Any:
        return SimpleNamespace(allocate=lambda size: FakeBuffer(self, size))

    def from_handle(self, handle: int) -> Any:
        return SimpleNamespace(
            handle=handle, sync=lambda: self.check("sync"), close=lambda: self.check("close")
        )

    def _code(self, kind: str, image: bytes) -> Any:
        self.check("load")
        self.calls.append((kind, image))
        return SimpleNamespace(get_kernel=lambda name: SimpleNamespace(handle=f"kernel {name}"))

    def from_cubin(self, image: bytes) -> Any:
        return self._code("cubin", image)

    def from_ptx(self, image: bytes) -> Any:
        return self._code("ptx", image)

    def LaunchConfig(self, **entries: Any) -> Any:
        return entries

    def launch(self, stream: Any, config: Any, kernel: Any, source: int, target: int) -> None:
        self.check("launch")
        self.calls.append(("launch", stream.handle, config, kernel.handle))
        if self.copies:
            # One thread an element of f16, as the kernel of the tests has it.
            ctypes.memmove(target, source, 2 * prod(config["grid"]) * prod(config["block"]))

    def view(self, array: Any, *, stream_ptr: int) -> Any:
        """What `StridedMemoryView` reads from `__cuda_array_interface__`."""
        self.calls.append(("view", stream_ptr))
        import numpy as np

        interface = array.__cuda_array_interface__
        dtype = np.dtype(interface["typestr"])
        strides = interface.get("strides")
        return SimpleNamespace(
            ptr=interface["data"][0],
            shape=interface["shape"],
            strides=strides and tuple(stride // dtype.itemsize for stride in strides),
            dtype=dtype,
            device_id=getattr(array, "ordinal", 0),
        )

    # cuda.bindings.driver
    CUfunction_attribute = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic"
    )
    CUresult = SimpleNamespace(CUDA_SUCCESS=0)

    def cuKernelSetAttribute(self, *arguments: Any) -> tuple[Any]:
        self.calls.append(("cuKernelSetAttribute", *arguments))
        failed = SimpleNamespace(name="CUDA_ERROR_INVALID_VALUE")
        return (failed if "attribute" in self.failing else 0,)

    def made(self, name: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] == name]


def modules(core: FakeCudaCore) -> dict[str, Any]:
    """What `import_module` returns for each module that Prism asks for."""
    return {
        "cuda.core": core,
        "cuda.bindings.driver": core,
        "cuda.core._utils.cuda_utils": SimpleNamespace(CUDAError=FakeCudaError),
    }
