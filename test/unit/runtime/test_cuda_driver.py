"""The CUDA backend's calls, against a driver that only remembers: no GPU is needed."""

import ctypes
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from prism.runtime import cuda_driver
from prism.runtime.bundle import Bundle, write_bundle
from prism.runtime.check import draw_inputs
from prism.runtime.launch import KernelFaultError, RunError, run_bundle

from .conftest import COPY_FILES, copy_manifest

OK, FAILED = 0, 700


class FakeDriver:
    """Device memory is host memory; a launch copies its first argument to its second."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=OK)
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor",
    )
    CUfunction_attribute = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic"
    )

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.capability = {"major": 8, "minor": 0}
        self.failing = ""
        self.memory: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, arguments))
            if name == self.failing:
                return (FAILED,)
            return (OK, *getattr(self, f"do_{name}", lambda *a: (f"{name} result",))(*arguments))

        if not name.startswith("cu"):
            raise AttributeError(name)
        return call

    def cuGetErrorString(self, status: int) -> tuple[int, bytes]:
        return OK, b"an illegal memory access was encountered"

    def do_cuDeviceGetAttribute(self, attribute: str, device: Any) -> tuple[int]:
        return (self.capability[attribute],)

    def do_cuMemAlloc(self, size: int) -> tuple[int]:
        buffer = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(buffer)] = buffer
        return (ctypes.addressof(buffer),)

    def do_cuMemcpyHtoD(self, target: int, source: int, size: int) -> tuple[()]:
        ctypes.memmove(target, source, size)
        return ()

    do_cuMemcpyDtoH = do_cuMemcpyHtoD

    def do_cuLaunchKernel(self, function: Any, *arguments: Any) -> tuple[()]:
        (source, target), _ = arguments[8]
        ctypes.memmove(target, source, len(self.memory[target]))
        return ()

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)
    monkeypatch.setattr(cuda_driver, "import_module", lambda name: fake)
    return fake


def test_a_run(copy_bundle: Bundle, driver: FakeDriver):
    inputs = draw_inputs(copy_bundle.manifest, 0)
    result = run_bundle(copy_bundle, inputs, "cuda")
    np.testing.assert_array_equal(result.outputs["out0"], inputs["x"])
    assert (result.backend, result.changed_inputs) == ("cuda", ())
    assert result.kernels[0].counts.instructions is None
    (launch,) = [arguments for name, arguments in driver.calls if name == "cuLaunchKernel"]
    assert launch[1:9] == (1, 1, 1, 32, 1, 1, 0, 0)
    assert launch[9][1] == (ctypes.c_void_p, ctypes.c_void_p)
    assert driver.names().count("cuMemFree") == driver.names().count("cuMemAlloc") == 2
    assert driver.names()[-1] == "cuDevicePrimaryCtxRelease"
    assert "cuFuncSetAttribute" not in driver.names()


@pytest.mark.parametrize(("major", "image"), [(8, b"\x7fELF"), (9, COPY_FILES["copy.ptx"] + b"\0")])
def test_a_later_gpu_takes_the_ptx(
    copy_bundle: Bundle, driver: FakeDriver, major: int, image: bytes
):
    driver.capability["major"] = major
    run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")
    assert ("cuModuleLoadData", (image,)) in driver.calls


def test_an_older_gpu_is_refused(copy_bundle: Bundle, driver: FakeDriver):
    driver.capability["major"] = 7
    with pytest.raises(RunError, match=r"needs compute capability 8\.0, the GPU has 7\.0"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")


def test_much_dynamic_shared_memory_is_asked_for(tmp_path: Path, driver: FakeDriver):
    manifest = copy_manifest()
    kernel = replace(manifest.kernels[0], smem_bytes=100_000, dynamic_smem=100_000)
    bundle = write_bundle(tmp_path / "b", replace(manifest, kernels=(kernel,)), COPY_FILES)
    run_bundle(bundle, draw_inputs(manifest, 0), "cuda")
    wanted = ("cuModuleGetFunction result", "dynamic", 100_000)
    assert ("cuFuncSetAttribute", wanted) in driver.calls


def test_a_fault_in_the_kernel(copy_bundle: Bundle, driver: FakeDriver):
    driver.failing = "cuCtxSynchronize"
    with pytest.raises(KernelFaultError, match="cuCtxSynchronize: an illegal memory access"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")


def test_no_device(copy_bundle: Bundle, driver: FakeDriver):
    driver.failing = "cuInit"
    with pytest.raises(RunError, match="backend 'cuda': cuInit: "):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")
