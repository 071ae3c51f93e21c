"""The CUDA backend's calls, against a cuda.core that only remembers: no GPU is needed."""

import ctypes
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from prism.runtime.bundle import Bundle, write_bundle
from prism.runtime.check import draw_inputs
from prism.runtime.launch import KernelFaultError, RunError, run_bundle

from .conftest import COPY_FILES, copy_manifest
from .fake_cuda import FakeCudaCore


def test_a_run(copy_bundle: Bundle, cuda: FakeCudaCore):
    inputs = draw_inputs(copy_bundle.manifest, 0)
    result = run_bundle(copy_bundle, inputs, "cuda")
    np.testing.assert_array_equal(result.outputs["out0"], inputs["x"])
    assert (result.backend, result.changed_inputs) == ("cuda", ())
    assert result.kernels[0].counts.instructions is None
    config = {"grid": (1, 1, 1), "block": (32, 1, 1), "shmem_size": 0}
    assert cuda.made("launch") == [("launch", 77, config, "kernel copy")]
    assert cuda.made("allocate") == [("allocate", 64, 77)] * 2
    assert not cuda.open
    assert not cuda.made("cuKernelSetAttribute")


def test_what_no_kernel_writes_is_nan(copy_bundle: Bundle, cuda: FakeCudaCore):
    cuda.copies = 0
    outputs = run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda").outputs
    assert np.isnan(outputs["out0"]).all()


@pytest.mark.parametrize(
    ("capability", "image"),
    [
        ((8, 0), ("cubin", b"\x7fELF")),
        ((8, 9), ("cubin", b"\x7fELF")),
        ((9, 0), ("ptx", COPY_FILES["copy.ptx"])),
    ],
)
def test_a_later_gpu_takes_the_ptx(
    copy_bundle: Bundle, cuda: FakeCudaCore, capability: tuple[int, int], image: tuple[str, bytes]
):
    cuda.capability = capability
    run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")
    assert image in cuda.calls


def test_an_older_gpu_is_refused(copy_bundle: Bundle, cuda: FakeCudaCore):
    cuda.capability = (7, 5)
    with pytest.raises(RunError, match=r"needs compute capability 8\.0, the GPU has 7\.5"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")


def test_much_dynamic_shared_memory_is_asked_for(tmp_path: Path, cuda: FakeCudaCore):
    manifest = copy_manifest()
    kernel = replace(manifest.kernels[0], smem_bytes=100_000, dynamic_smem=100_000)
    bundle = write_bundle(tmp_path / "b", replace(manifest, kernels=(kernel,)), COPY_FILES)
    run_bundle(bundle, draw_inputs(manifest, 0), "cuda")
    wanted = ("cuKernelSetAttribute", "dynamic", 100_000, "kernel copy", 0)
    assert wanted in cuda.calls
    cuda.failing = {"attribute"}
    with pytest.raises(RunError, match="100000 bytes of shared memory: CUDA_ERROR_INVALID_VALUE"):
        run_bundle(bundle, draw_inputs(manifest, 0), "cuda")


@pytest.mark.parametrize("failing", [{"sync"}, {"sync", "close"}, {"copy_to"}])
def test_a_fault_in_the_kernel(copy_bundle: Bundle, cuda: FakeCudaCore, failing: set[str]):
    inputs = draw_inputs(copy_bundle.manifest, 0)
    cuda.failing = failing
    with pytest.raises(KernelFaultError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        run_bundle(copy_bundle, inputs, "cuda")


@pytest.mark.parametrize("failing", ["Device", "load", "launch"])
def test_driver_errors(copy_bundle: Bundle, cuda: FakeCudaCore, failing: str):
    cuda.failing = {failing}
    with pytest.raises(RunError, match=f"backend 'cuda': .*CUDA_ERROR_ILLEGAL_ADDRESS: {failing}"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")


def test_no_driver_is_a_clear_error(copy_bundle: Bundle, monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> object:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    # Without a driver calls of cuda.core hang, so it is not even imported.
    monkeypatch.setattr("prism.runtime.cuda_core.import_module", None)
    with pytest.raises(RunError, match="no NVIDIA driver on this machine"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")


def test_the_fake_has_only_what_cuda_core_has():
    """Importing cuda.core needs no driver; its names are those that the fake stands for."""
    core: Any = import_module("cuda.core")
    for name in ("Device", "LaunchConfig", "launch", "LegacyPinnedMemoryResource"):
        assert hasattr(core, name)
        assert hasattr(FakeCudaCore, name)
    assert {"compute_capability", "set_current", "create_stream", "allocate"} <= set(
        dir(core.Device)
    )
    assert {"from_handle", "sync", "close"} <= set(dir(core.Stream))
    assert {"from_cubin", "from_ptx", "get_kernel"} <= set(dir(core.ObjectCode))
    assert {"handle", "copy_to", "close"} <= set(dir(core.Buffer))
    assert hasattr(core.Kernel, "handle")
    assert hasattr(core.utils.StridedMemoryView, "from_any_interface")
    config = core.LaunchConfig(grid=(1, 2, 3), block=(32, 1, 1), shmem_size=7)
    assert (config.grid, config.block, config.shmem_size) == ((1, 2, 3), (32, 1, 1), 7)
    assert issubclass(import_module("cuda.core._utils.cuda_utils").CUDAError, Exception)
    driver: Any = import_module("cuda.bindings.driver")
    assert hasattr(driver, "cuKernelSetAttribute")
    assert hasattr(driver.CUfunction_attribute, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES")


def test_a_driver_without_cuda_python(
    copy_bundle: Bundle, cuda: FakeCudaCore, monkeypatch: pytest.MonkeyPatch
):
    def missing(name: str) -> object:
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr("prism.runtime.cuda_core.import_module", missing)
    with pytest.raises(RunError, match="cuda-python cannot be imported: No module named"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")
    old = SimpleNamespace(__version__="0.3.2")
    monkeypatch.setattr("prism.runtime.cuda_core.import_module", lambda name: old)
    with pytest.raises(RunError, match=r"needs cuda\.core 1 or later, found 0\.3\.2"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")
