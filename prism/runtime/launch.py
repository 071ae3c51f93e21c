"""Running a bundle's kernels on given inputs, in the simulator or on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from prism.errors import PrismError
from prism.runtime.bundle import Bundle
from prism.runtime.dtypes import ELEMENT_TYPES
from prism.runtime.manifest import BufferEntry, KernelEntry, Manifest, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prism.runtime.dtypes import Storage


class RunError(PrismError):
    """A bundle cannot run as asked: no such backend, no driver, or inputs that do not fit."""


class KernelFaultError(RunError):
    """A kernel did something wrong while it ran (out of bounds, endless loop, ...)."""


@dataclass(frozen=True)
class Counts:
    """What a backend counted during one launch; None where it cannot count."""

    instructions: int | None = None
    instructions_by_kind: Mapping[str, int] | None = None
    global_read_bytes: int | None = None
    global_write_bytes: int | None = None
    dram_read_bytes: int | None = None
    dram_write_bytes: int | None = None


class DeviceBuffer(Protocol):
    """A device copy of an array."""

    def numpy(self) -> NDArray[np.generic]:
        """Read the buffer back, in the shape and type that it was made from."""
        ...


class Backend(Protocol):
    """Where kernels run."""

    name: str

    def upload(self, array: Storage) -> DeviceBuffer:
        """Copy an array to the device."""
        ...

    def launch(self, bundle: Bundle, kernel: KernelEntry, buffers: list[DeviceBuffer]) -> Counts:
        """Run one kernel to its end; raises `KernelFaultError` if it faults."""
        ...

    def close(self) -> None:
        """Free what the backend holds."""
        ...


@dataclass(frozen=True)
class KernelRun:
    """
    One launch of a kernel.

    `floor_bytes` is what it must move at least: each argument once.
    """

    name: str
    counts: Counts
    floor_bytes: int


@dataclass(frozen=True)
class Run:
    """The outputs by name in their storage types, the launches, and the inputs that changed."""

    backend: str
    outputs: Mapping[str, Storage]
    kernels: tuple[KernelRun, ...]
    changed_inputs: tuple[str, ...]


def _open_simulator(manifest: Manifest) -> Backend:
    from prism.runtime.simulate import SimulatorBackend

    return SimulatorBackend()


def _open_cuda(manifest: Manifest) -> Backend:
    from prism.runtime.cuda_core import CudaBackend

    return CudaBackend(manifest.compute_capability)


BACKENDS: dict[str, Callable[[Manifest], Backend]] = {"sim": _open_simulator, "cuda": _open_cuda}
"""Every backend by its name on the command line."""


def run_bundle(bundle: Bundle, inputs: Mapping[str, Storage], backend: str = "sim") -> Run:
    """
    Run every step of a bundle.

    `inputs` has one array per input of the manifest, of its shape and storage type. Outputs and
    temporaries are filled with NaN first, so that what no kernel writes is seen. Raises `RunError`.
    """
    if backend not in BACKENDS:
        raise RunError(f"unknown backend '{backend}' (known: {', '.join(BACKENDS)})")
    manifest = bundle.manifest
    for entry in manifest.inputs:
        _check_input(entry, inputs)
    device = BACKENDS[backend](manifest)
    try:
        buffers = {entry.name: device.upload(inputs[entry.name]) for entry in manifest.inputs}
        for entry in (*manifest.outputs, *manifest.temporaries):
            buffers[entry.name] = device.upload(_filled_with_nan(entry))
        kernels = {kernel.name: kernel for kernel in manifest.kernels}
        launches: list[KernelRun] = []
        for step in manifest.steps:
            arguments = [buffers[name] for name in step.arguments]
            counts = device.launch(bundle, kernels[step.kernel], arguments)
            launches.append(KernelRun(step.kernel, counts, floor_bytes(manifest, step)))
        outputs = {entry.name: buffers[entry.name].numpy() for entry in manifest.outputs}
        changed = tuple(
            entry.name
            for entry in manifest.inputs
            if inputs[entry.name].tobytes() != buffers[entry.name].numpy().tobytes()
        )
    finally:
        device.close()
    return Run(device.name, outputs, tuple(launches), changed)


def floor_bytes(manifest: Manifest, step: Step) -> int:
    """The bytes that a launch must move: every distinct argument once."""
    return sum(manifest.buffers[name].nbytes for name in set(step.arguments))


def _check_input(entry: BufferEntry, inputs: Mapping[str, Storage]) -> None:
    if entry.name not in inputs:
        raise RunError(f"input '{entry.name}' is missing")
    array, storage = inputs[entry.name], ELEMENT_TYPES[entry.dtype].storage
    if array.shape != entry.shape or array.dtype.name != storage:
        raise RunError(
            f"input '{entry.name}': expected shape {entry.shape} of {storage}, "
            f"found {array.shape} of {array.dtype.name}"
        )


def _filled_with_nan(entry: BufferEntry) -> Storage:
    import numpy as np

    return ELEMENT_TYPES[entry.dtype].encode(np.full(entry.shape, np.nan))
