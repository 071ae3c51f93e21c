"""Running bundles: outputs, counts, NaN that stays, inputs that change, faults, and no GPU."""

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism.runtime.bundle import Bundle, write_bundle
from prism.runtime.check import draw_inputs
from prism.runtime.launch import KernelFaultError, RunError, floor_bytes, run_bundle
from prism.runtime.manifest import Step

from .conftest import COPY_FILES, COPY_PTX, copy_manifest


def with_ptx(tmp_path: Path, ptx: str) -> Bundle:
    return write_bundle(tmp_path / "b", copy_manifest(), {**COPY_FILES, "copy.ptx": ptx.encode()})


def test_outputs_and_counts(copy_bundle: Bundle):
    inputs = draw_inputs(copy_bundle.manifest, 0)
    result = run_bundle(copy_bundle, inputs)
    np.testing.assert_array_equal(result.outputs["out0"], inputs["x"])
    assert result.changed_inputs == ()
    (kernel,) = result.kernels
    assert kernel.name == "copy"
    assert kernel.floor_bytes == 2 * 4 * 8 * 2
    assert kernel.counts.global_read_bytes == kernel.counts.global_write_bytes == 64
    assert kernel.counts.dram_read_bytes == 64
    assert kernel.counts.instructions == 11 * 32
    assert kernel.counts.instructions_by_kind is not None
    assert sum(kernel.counts.instructions_by_kind.values()) == 11 * 32


def test_an_element_that_nobody_writes_is_nan(copy_bundle: Bundle, tmp_path: Path):
    bundle = with_ptx(tmp_path, COPY_PTX.replace("%r1, 2;", "%r1, 0;"))
    output = run_bundle(bundle, draw_inputs(bundle.manifest, 0)).outputs["out0"]
    assert np.isnan(output).sum() == 31


def test_a_changed_input_is_seen(tmp_path: Path):
    ptx = COPY_PTX.replace("  ret;", "  mov.b16 %h1, 0x3C00;\n  st.global.u16 [%rd1], %h1;\n  ret;")
    bundle = with_ptx(tmp_path, ptx)
    assert run_bundle(bundle, draw_inputs(bundle.manifest, 0)).changed_inputs == ("x",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%r1, 2;", "%r1, 4;", "kernel 'copy': "),
        ("%r1, 2;", "%r1, 1;", "kernel 'copy': "),
        ("ld.global.u16", "ld.gobal.u16", r"copy\.ptx:16"),
        (".entry copy", ".entry other", "no entry function 'copy'"),
    ],
)
def test_faults_are_errors(tmp_path: Path, old: str, new: str, message: str):
    bundle = with_ptx(tmp_path, COPY_PTX.replace(old, new))
    with pytest.raises(KernelFaultError, match=message):
        run_bundle(bundle, draw_inputs(bundle.manifest, 0))


def test_inputs_must_fit(copy_bundle: Bundle):
    right = draw_inputs(copy_bundle.manifest, 0)["x"]
    for inputs, message in (
        ({}, "input 'x' is missing"),
        ({"x": right[:2]}, r"expected shape \(4, 8\) of float16, found \(2, 8\) of float16"),
        ({"x": right.astype(np.float32)}, "of float32"),
    ):
        with pytest.raises(RunError, match=message):
            run_bundle(copy_bundle, inputs)


def test_unknown_backend(copy_bundle: Bundle):
    with pytest.raises(RunError, match=r"unknown backend 'tpu' \(known: sim, cuda\)"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "tpu")


def test_no_driver_is_a_clear_error(copy_bundle: Bundle, monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> object:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(RunError, match="no NVIDIA driver on this machine"):
        run_bundle(copy_bundle, draw_inputs(copy_bundle.manifest, 0), "cuda")


def test_two_steps_through_a_temporary(tmp_path: Path):
    manifest = copy_manifest()
    manifest = replace(
        manifest,
        temporaries=(replace(manifest.outputs[0], name="t"),),
        steps=(Step("copy", ("x", "t"), ("t",)), Step("copy", ("t", "out0"), ("out0",))),
    )
    bundle = write_bundle(tmp_path / "b", manifest, COPY_FILES)
    inputs = draw_inputs(manifest, 0)
    result = run_bundle(bundle, inputs)
    np.testing.assert_array_equal(result.outputs["out0"], inputs["x"])
    assert [kernel.name for kernel in result.kernels] == ["copy", "copy"]


def test_floor_counts_each_buffer_once():
    manifest = copy_manifest()
    assert floor_bytes(manifest, Step("copy", ("x", "x", "out0"), ("out0",))) == 128
