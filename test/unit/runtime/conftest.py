"""A small bundle: y = x on one block, with PTX that the simulator can run."""

import ctypes
from pathlib import Path

import pytest

from prism.runtime import cuda_core
from prism.runtime.bundle import Bundle, write_bundle
from prism.runtime.manifest import (
    BufferEntry,
    GraphEntry,
    KernelEntry,
    Manifest,
    Step,
)
from prism.runtime.program import Instruction, Program

from .fake_cuda import FakeCudaCore, modules

COPY_PTX = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y)
{
  .reg .b64 %rd<5>;
  .reg .b32 %r<2>;
  .reg .b16 %h<2>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 2;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u16 %h1, [%rd4];
  add.s64 %rd4, %rd2, %rd3;
  st.global.u16 [%rd4], %h1;
  ret;
}
"""


def copy_manifest() -> Manifest:
    return Manifest(
        format=2,
        versions={"prism": "0.1.0"},
        workload="copy",
        shape={"n": 4},
        target="sm_80",
        compute_capability=(8, 0),
        graph=GraphEntry("copy__g0", "graph", ("copy",), {"x": "{}"}, {}, "equal", "0" * 64),
        program=Program((Instruction("scale", (0,), (4, 8), "f16", None, (1.0,), None),), (1,)),
        inputs=(BufferEntry("x", (4, 8), "f16", 1.0, None),),
        outputs=(BufferEntry("out0", (4, 8), "f16", None, 1),),
        temporaries=(),
        kernels=(KernelEntry("copy", (1, 1, 1), (32, 1, 1), 0, 0, 8, 0, "copy.ptx", "copy.cubin"),),
        steps=(Step("copy", ("x", "out0"), ("out0",)),),
        files={},
    )


COPY_FILES = {
    "workload.mlir": b"// text\n",
    "copy.ptx": COPY_PTX.encode(),
    "copy.cubin": b"\x7fELF",
}


@pytest.fixture
def copy_bundle(tmp_path: Path) -> Bundle:
    return write_bundle(tmp_path / "bundle", copy_manifest(), COPY_FILES)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCudaCore:
    """A machine with one GPU, as far as `prism.runtime` sees."""
    fake = FakeCudaCore()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)
    monkeypatch.setattr(cuda_core, "import_module", modules(fake).__getitem__)
    return fake
