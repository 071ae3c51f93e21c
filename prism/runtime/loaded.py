"""A bundle as a function of arrays: on the GPU of its arguments, or in the simulator."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from prism.runtime.bundle import Bundle
from prism.runtime.launch import KernelFaultError, RunError, run_bundle
from prism.runtime.manifest import BufferEntry


@dataclass
class LoadedBundle:
    """
    A callable bundle; `bundle.manifest` says what its inputs and outputs are.

    Called with numpy arrays it runs in the simulator; bf16 arrays are their bits, as uint16. Called
    with arrays on a GPU (torch tensors, or anything with `__cuda_array_interface__` or DLPack) it
    launches on the current stream of their library and does not wait.
    """

    bundle: Bundle
    _devices: dict[int, Any] = field(default_factory=dict[int, Any], repr=False)

    def __call__(self, *inputs: Any, out: Any = None, stream: Any = None) -> Any:
        """
        The output, or a tuple of them if the workload has several.

        `out` (an array, or a sequence of them) takes the outputs; otherwise they are new: torch
        tensors if the inputs are, else `DeviceArray`. `stream` replaces the current stream for
        arrays that are not torch's. Shapes, element types, strides and alignment are checked before
        anything is launched. Raises `RunError`.
        """
        from prism.runtime.arrays import is_on_gpu, is_torch

        entries = self.bundle.manifest.inputs
        if len(inputs) != len(entries):
            names = ", ".join(entry.name for entry in entries)
            raise RunError(f"expected {len(entries)} inputs ({names}), found {len(inputs)}")
        if inputs and all(is_on_gpu(array) for array in inputs):
            if stream is not None and is_torch(inputs[0]):
                raise RunError("stream: torch tensors run on torch's current stream")
            return self._run_on_gpu(inputs, out, stream)
        if out is not None or stream is not None:
            raise RunError("out and stream are for arrays on a GPU")
        return self._simulate(inputs)

    def _simulate(self, inputs: Sequence[Any]) -> Any:
        import numpy as np

        entries = self.bundle.manifest.inputs
        for entry, array in zip(entries, inputs, strict=True):
            if not isinstance(array, np.ndarray):
                raise RunError(
                    f"'{entry.name}': expected a numpy array, or all inputs on a GPU, found "
                    f"{type(array).__name__}"
                )
        arrays = {entry.name: array for entry, array in zip(entries, inputs, strict=True)}
        result = run_bundle(self.bundle, arrays)
        if result.changed_inputs:
            raise KernelFaultError(f"the kernels changed inputs: {result.changed_inputs}")
        return _one_or_all([result.outputs[e.name] for e in self.bundle.manifest.outputs])

    def _run_on_gpu(self, inputs: Sequence[Any], out: Any, given_stream: Any) -> Any:
        from prism.runtime.arrays import (
            check_view,
            current_stream,
            is_torch,
            ordinal_of,
            stream_handle,
            view_of,
        )

        manifest = self.bundle.manifest
        first, ordinal = inputs[0], ordinal_of(inputs[0])
        device = self._device(ordinal)
        handle = current_stream(first) if given_stream is None else stream_handle(given_stream)
        stream = device.stream(handle)
        pointers: dict[str, int] = {}
        for entry, array in zip(manifest.inputs, inputs, strict=True):
            view = view_of(entry.name, array, device, handle)
            check_view(entry, view, ordinal)
            pointers[entry.name] = view.pointer
        outputs = _given_outputs(out, manifest.outputs)
        if outputs is None:
            outputs = [self._allocate(e, first, device, stream, handle) for e in manifest.outputs]
        for entry, array in zip(manifest.outputs, outputs, strict=True):
            view = view_of(entry.name, array, device, handle)
            check_view(entry, view, ordinal)
            for name, pointer in pointers.items():
                end = pointer + manifest.buffers[name].nbytes
                if view.pointer < end and pointer < view.pointer + entry.nbytes:
                    raise RunError(f"'{entry.name}': overlaps '{name}'")
            pointers[entry.name] = view.pointer
        temporaries = [
            self._allocate(e, first, device, stream, handle) for e in manifest.temporaries
        ]
        for entry, array in zip(manifest.temporaries, temporaries, strict=True):
            pointers[entry.name] = view_of(entry.name, array, device, handle).pointer
        kernels = {kernel.name: kernel for kernel in manifest.kernels}
        for step in manifest.steps:
            arguments = [pointers[name] for name in step.arguments]
            device.launch(self.bundle, kernels[step.kernel], arguments, stream)
        if not is_torch(first):
            # Freed in the order of the stream; torch's allocator does the same for its own.
            for array in temporaries:
                array.close()
        return out if out is not None else _one_or_all(outputs)

    def _device(self, ordinal: int) -> Any:
        from prism.runtime.cuda_core import CudaDevice

        if ordinal not in self._devices:
            self._devices[ordinal] = CudaDevice(self.bundle.manifest.compute_capability, ordinal)
        self._devices[ordinal].make_current()
        return self._devices[ordinal]

    def _allocate(
        self, entry: BufferEntry, like: Any, device: Any, stream: Any, handle: int
    ) -> Any:
        from prism.runtime.arrays import DeviceArray, is_torch

        if not is_torch(like):
            return DeviceArray(entry, device, stream, handle)
        torch = cast(Any, sys.modules["torch"])
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[entry.dtype]
        return torch.empty(entry.shape, dtype=dtype, device=like.device)


def _given_outputs(out: Any, entries: Sequence[BufferEntry]) -> list[Any] | None:
    """The caller's outputs as a list, or None if there are none."""
    if out is None:
        return None
    outputs: list[Any] = list(cast(Sequence[Any], out)) if isinstance(out, tuple | list) else [out]
    if len(outputs) != len(entries):
        raise RunError(f"out: expected {len(entries)} arrays, found {len(outputs)}")
    return outputs


def _one_or_all(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
