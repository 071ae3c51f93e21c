"""Bundles as functions: numpy in the simulator, arrays of others on the fake GPU."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import prism.runtime
from prism.runtime.arrays import DeviceArray
from prism.runtime.bundle import Bundle, BundleError, write_bundle
from prism.runtime.check import draw_inputs
from prism.runtime.launch import KernelFaultError, RunError
from prism.runtime.manifest import Step

from .conftest import COPY_FILES, COPY_PTX, copy_manifest
from .fake_cuda import FakeCudaCore


def aligned(shape: tuple[int, ...] = (4, 8), dtype: str = "float16", shift: int = 0) -> Any:
    """A numpy array at an address that is `shift` past a multiple of 16 bytes."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(count + 32, dtype=np.uint8)
    start = -memory.ctypes.data % 16 + shift
    return memory[start : start + count].view(dtype).reshape(shape)


class GpuArray:
    """What CuPy and numba show of an array; its memory is a numpy array's."""

    def __init__(
        self, array: Any, strides: tuple[int, ...] | None = None, ordinal: int = 0
    ) -> None:
        self.array, self.ordinal = array, ordinal
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": strides,
        }


def filled() -> Any:
    array = aligned()
    array[:] = np.arange(32).reshape(4, 8)
    return array


def values_of(output: DeviceArray) -> Any:
    import ctypes

    data = ctypes.string_at(output.pointer, 64)
    return np.frombuffer(data, dtype=np.float16).reshape(4, 8)


def test_numpy_runs_in_the_simulator(copy_bundle: Bundle):
    loaded = prism.runtime.load(copy_bundle.path)
    x = draw_inputs(copy_bundle.manifest, 0)["x"]
    np.testing.assert_array_equal(loaded(x), x)
    np.testing.assert_array_equal(loaded(np.asfortranarray(x)), x)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((), r"expected 1 inputs \(x\), found 0"),
        ((np.zeros((4, 8), np.float16),) * 2, "found 2"),
        ((np.zeros((8, 4), np.float16),), r"expected shape \(4, 8\)"),
        ((np.zeros((4, 8)),), "found .* of float64"),
        (([[1.0]],), "expected a numpy array, or all inputs on a GPU, found list"),
    ],
)
def test_bad_numpy_inputs(copy_bundle: Bundle, inputs: Any, message: str):
    with pytest.raises(RunError, match=message):
        prism.runtime.load(copy_bundle.path)(*inputs)


def test_out_is_for_gpus(copy_bundle: Bundle):
    x = draw_inputs(copy_bundle.manifest, 0)["x"]
    with pytest.raises(RunError, match="out and stream are for arrays on a GPU"):
        prism.runtime.load(copy_bundle.path)(x, out=x.copy())


def test_a_kernel_that_changes_its_input(tmp_path: Path):
    ptx = COPY_PTX.replace("  ret;", "  mov.b16 %h1, 0x3C00;\n  st.global.u16 [%rd1], %h1;\n  ret;")
    write_bundle(tmp_path / "b", copy_manifest(), {**COPY_FILES, "copy.ptx": ptx.encode()})
    x = draw_inputs(copy_manifest(), 0)["x"]
    with pytest.raises(KernelFaultError, match="changed inputs"):
        prism.runtime.load(tmp_path / "b")(x)


def test_no_bundle(tmp_path: Path):
    with pytest.raises(BundleError, match="not found"):
        prism.runtime.load(tmp_path / "none")


def test_arrays_on_a_gpu(copy_bundle: Bundle, cuda: FakeCudaCore):
    loaded, x = prism.runtime.load(str(copy_bundle.path)), filled()
    assert not cuda.calls
    output = loaded(GpuArray(x))
    np.testing.assert_array_equal(values_of(output), x)
    assert output.__cuda_array_interface__["stream"] == 1
    assert output.__cuda_array_interface__["typestr"] == "<f2"
    # the output is an array like any other
    np.testing.assert_array_equal(values_of(loaded(output)), x)
    assert [call[1] for call in cuda.made("launch")] == [1, 1]
    assert len(cuda.made("cubin")) == 1
    output.close()
    assert output not in cuda.open


def test_a_given_output_and_stream(copy_bundle: Bundle, cuda: FakeCudaCore):
    loaded, x, y = prism.runtime.load(copy_bundle.path), filled(), aligned()
    out = GpuArray(y)
    assert loaded(GpuArray(x), out=out, stream=5) is out
    np.testing.assert_array_equal(y, x)
    stream = SimpleNamespace(__cuda_stream__=lambda: (0, 9))
    assert loaded(GpuArray(x), out=[out], stream=stream) == [out]
    assert [call[1] for call in cuda.made("launch")] == [5, 9]
    assert {call[1] for call in cuda.made("view")} == {5, 9}
    assert not cuda.made("allocate")
    with pytest.raises(RunError, match="expected a handle or an object with __cuda_stream__"):
        loaded(GpuArray(x), stream="now")
    with pytest.raises(RunError, match="out: expected 1 arrays, found 2"):
        loaded(GpuArray(x), out=[out, out])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (GpuArray(aligned((8, 4))), r"'x': expected shape \(4, 8\), found \(8, 4\)"),
        (GpuArray(aligned(dtype="float32")), "'x': expected elements of f16, found f32"),
        (GpuArray(aligned(dtype="uint16")), "'x': expected elements of f16, found uint16"),
        (GpuArray(aligned(), (2, 8)), r"contiguous array with strides \(8, 1\), found \(1, 4\)"),
        (GpuArray(aligned(shift=8)), "no multiple of 16"),
        (GpuArray(aligned(), (16, 2), 1), "expected an array on GPU 0, found one on 1"),
    ],
)
def test_arrays_that_do_not_fit_launch_nothing(
    copy_bundle: Bundle, cuda: FakeCudaCore, array: GpuArray, message: str
):
    loaded = prism.runtime.load(copy_bundle.path)
    with pytest.raises(RunError, match=message):
        loaded(array)
    with pytest.raises(RunError, match=message.replace("'x'", "'out0'")):
        loaded(GpuArray(aligned()), out=array)
    assert not cuda.made("launch")


def test_strides_of_dims_of_size_one_do_not_matter(tmp_path: Path, cuda: FakeCudaCore):
    manifest = copy_manifest()
    shape = {"shape": (32, 1)}
    program = replace(
        manifest.program, instructions=(replace(manifest.program.instructions[0], **shape),)
    )
    manifest = replace(
        manifest,
        program=program,
        inputs=(replace(manifest.inputs[0], **shape),),
        outputs=(replace(manifest.outputs[0], **shape),),
    )
    write_bundle(tmp_path / "b", manifest, COPY_FILES)
    prism.runtime.load(tmp_path / "b")(GpuArray(aligned((32, 1)), (2, 640)))
    assert cuda.made("launch")


def test_an_output_over_an_input(copy_bundle: Bundle, cuda: FakeCudaCore):
    x = GpuArray(filled())
    with pytest.raises(RunError, match="'out0': overlaps 'x'"):
        prism.runtime.load(copy_bundle.path)(x, out=x)


def test_mixed_arrays(tmp_path: Path, cuda: FakeCudaCore):
    manifest = copy_manifest()
    manifest = replace(manifest, inputs=(*manifest.inputs, replace(manifest.inputs[0], name="z")))
    program = replace(manifest.program, outputs=(2,))
    write_bundle(tmp_path / "b", replace(manifest, program=program), COPY_FILES)
    with pytest.raises(RunError, match="'z': expected a numpy array, or all inputs on a GPU"):
        prism.runtime.load(tmp_path / "b")(filled(), GpuArray(filled()))


def test_temporaries_are_freed(tmp_path: Path, cuda: FakeCudaCore):
    manifest = copy_manifest()
    manifest = replace(
        manifest,
        temporaries=(replace(manifest.outputs[0], name="t"),),
        steps=(Step("copy", ("x", "t"), ("t",)), Step("copy", ("t", "out0"), ("out0",))),
    )
    write_bundle(tmp_path / "b", manifest, COPY_FILES)
    x, y = filled(), aligned()
    prism.runtime.load(tmp_path / "b")(GpuArray(x), out=GpuArray(y))
    np.testing.assert_array_equal(y, x)
    assert cuda.made("allocate")
    assert not cuda.open


class FakeTensor:
    """The attributes of a torch tensor on a GPU that Prism reads."""

    def __init__(self, array: Any, dtype: str = "torch.float16") -> None:
        self.array, self.shape, self.dtype = array, array.shape, dtype
        self.is_cuda, self.requires_grad, self.device = True, False, "cuda:0"

    def get_device(self) -> int:
        return 0

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("torch")
    module.Tensor = FakeTensor
    module.float16, module.bfloat16, module.float32 = "f16", "bf16", "f32"
    module.empty = lambda shape, dtype, device: FakeTensor(aligned(shape))
    module.is_grad_enabled = lambda: True
    module.cuda = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=42))
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_torch_tensors(copy_bundle: Bundle, cuda: FakeCudaCore, torch: Any):
    loaded, x = prism.runtime.load(copy_bundle.path), FakeTensor(filled())
    output = loaded(x)
    assert isinstance(output, FakeTensor)
    np.testing.assert_array_equal(output.array, x.array)
    assert cuda.made("launch")[0][1] == 42
    assert not cuda.made("view")
    with pytest.raises(RunError, match="run on torch's current stream"):
        loaded(x, stream=3)
    with pytest.raises(RunError, match=r"found \(1, 4\)"):
        loaded(FakeTensor(np.zeros((8, 4), np.float16).T))
    with pytest.raises(RunError, match="expected elements of f16, found bf16"):
        loaded(FakeTensor(filled(), "torch.bfloat16"))
    x.requires_grad = True
    with pytest.raises(RunError, match="needs a gradient"):
        loaded(x)
    x.requires_grad = x.is_cuda = False
    with pytest.raises(RunError, match="found FakeTensor"):
        loaded(x)
