"""The manifest of a bundle: what its kernels are, how they are launched, and what they are of."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from prism.runtime.dtypes import ELEMENT_TYPES
from prism.runtime.program import Program, validate_program
from prism.runtime.schema import SchemaError

FORMAT_VERSION = 2
MAX_ELEMENTS = 2**36
"""Largest number of elements of one buffer that a manifest may ask to allocate."""

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.\-]{0,199}")
_FILE = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_$.\-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class BufferEntry:
    """
    One tensor on the device, row-major and contiguous.

    `std` is the standard deviation of the normal values that a check draws for an input;
    `reduction_length` the number of terms that an output element sums up at most.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    std: float | None
    reduction_length: int | None

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.elements * ELEMENT_TYPES[self.dtype].size


@dataclass(frozen=True)
class KernelEntry:
    """
    One kernel: entry point, launch dimensions, and what the assembler reported.

    `smem_bytes` is static plus dynamic shared memory, `dynamic_smem` the part given at launch.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem_bytes: int
    dynamic_smem: int
    registers: int
    spill_bytes: int
    ptx: str
    cubin: str


@dataclass(frozen=True)
class Step:
    """One launch: the kernel's name and the buffers that are its arguments, in order."""

    kernel: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class GraphEntry:
    """The chosen graph: name, text, operators and maps to read, parameters, and its verdict."""

    name: str
    text: str
    operators: tuple[str, ...]
    maps: dict[str, str]
    parameters: dict[str, int]
    verdict: str
    digest: str


@dataclass(frozen=True)
class Manifest:
    """
    Everything that `manifest.json` says.

    `program` is the workload at these sizes, for checks without xDSL; `files` has the SHA-256 of
    every other file.
    """

    format: int
    versions: dict[str, str]
    workload: str
    shape: dict[str, int]
    target: str
    compute_capability: tuple[int, int]
    graph: GraphEntry
    program: Program
    inputs: tuple[BufferEntry, ...]
    outputs: tuple[BufferEntry, ...]
    temporaries: tuple[BufferEntry, ...]
    kernels: tuple[KernelEntry, ...]
    steps: tuple[Step, ...]
    files: dict[str, str]

    @property
    def buffers(self) -> dict[str, BufferEntry]:
        """All buffers by name."""
        return {entry.name: entry for entry in (*self.inputs, *self.outputs, *self.temporaries)}


WORKLOAD_FILE = "workload.mlir"


def validate(manifest: Manifest) -> None:
    """Check what the types cannot say; raises `SchemaError` naming the entry."""
    if manifest.format != FORMAT_VERSION:
        raise SchemaError(f"format: expected {FORMAT_VERSION}, found {manifest.format}")
    _require(manifest.graph.verdict == "equal", "graph.verdict: the graph was not proven equal")
    for name, digest in manifest.files.items():
        _require(_FILE.fullmatch(name) is not None, f"files: '{name}' is not a plain file name")
        _require(_SHA256.fullmatch(digest) is not None, f"files.{name}: not a SHA-256")
    _require(WORKLOAD_FILE in manifest.files, f"files: '{WORKLOAD_FILE}' is missing")
    buffers = (*manifest.inputs, *manifest.outputs, *manifest.temporaries)
    _distinct("buffers", (entry.name for entry in buffers))
    _distinct("kernels", (entry.name for entry in manifest.kernels))
    for symbol, size in manifest.shape.items():
        _require(size > 0, f"shape.{symbol}: expected a positive size, found {size}")
    for entry in buffers:
        _validate_buffer(entry)
    for kernel in manifest.kernels:
        _validate_kernel(kernel, manifest)
    _validate_steps(manifest)
    validate_program(
        manifest.program,
        [entry.shape for entry in manifest.inputs],
        [entry.shape for entry in manifest.outputs],
    )


def _validate_buffer(entry: BufferEntry) -> None:
    _require(entry.dtype in ELEMENT_TYPES, f"buffer {entry.name}: unknown dtype '{entry.dtype}'")
    _require(len(entry.shape) <= 16, f"buffer {entry.name}: rank over 16")
    _require(all(0 < size < 2**48 for size in entry.shape), f"buffer {entry.name}: bad shape")
    _require(entry.elements <= MAX_ELEMENTS, f"buffer {entry.name}: over {MAX_ELEMENTS} elements")
    if entry.std is not None:
        _require(0 < entry.std < math.inf, f"buffer {entry.name}: bad standard deviation")
    if entry.reduction_length is not None:
        _require(entry.reduction_length > 0, f"buffer {entry.name}: bad reduction length")


def _validate_kernel(kernel: KernelEntry, manifest: Manifest) -> None:
    where = f"kernel {kernel.name}"
    # Limits of CUDA itself, not of one target (CUDA C++ Programming Guide).
    grid_limits = (2**31 - 1, 65535, 65535)
    inside = all(
        0 < size <= limit for size, limit in zip(kernel.grid, grid_limits, strict=True)
    ) and all(0 < size <= 1024 for size in kernel.block)
    _require(inside, f"{where}: launch dimensions out of range")
    _require(math.prod(kernel.block) <= 1024, f"{where}: more than 1024 threads a block")
    _require(0 <= kernel.dynamic_smem <= kernel.smem_bytes <= 2**20, f"{where}: bad shared memory")
    for file in (kernel.ptx, kernel.cubin):
        _require(file in manifest.files, f"{where}: file '{file}' is not in files")


def _validate_steps(manifest: Manifest) -> None:
    buffers, kernels = manifest.buffers, {kernel.name for kernel in manifest.kernels}
    read_only = {entry.name for entry in manifest.inputs}
    written: set[str] = set()
    for position, step in enumerate(manifest.steps):
        where = f"steps[{position}]"
        _require(step.kernel in kernels, f"{where}: unknown kernel '{step.kernel}'")
        for name in step.arguments:
            _require(name in buffers, f"{where}: unknown buffer '{name}'")
            known = name in read_only or name in written or name in step.outputs
            _require(known, f"{where}: reads '{name}' before it is written")
        for name in step.outputs:
            _require(name in step.arguments, f"{where}: output '{name}' is not an argument")
            _require(name not in read_only, f"{where}: writes the input '{name}'")
            written.add(name)
    for entry in manifest.outputs:
        _require(entry.name in written, f"output {entry.name}: no step writes it")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SchemaError(message)


def _distinct(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        _require(_NAME.fullmatch(name) is not None, f"{what}: '{name}' is not a name")
        _require(name not in seen, f"{what}: '{name}' occurs twice")
        seen.add(name)
