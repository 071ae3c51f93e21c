"""The simulator as its users see it: buffers, kernels, launches."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prism.simulator.decoder import Decoder
from prism.simulator.errors import LaunchError, PtxError
from prism.simulator.layout import MAX_SHARED
from prism.simulator.machine import Budget, Dim3, Geometry, Machine, Program
from prism.simulator.memory import GLOBAL_BASE, GlobalMemory
from prism.simulator.meter import Meter, Report
from prism.simulator.parser import parse
from prism.simulator.syntax import Function, Module, Variable
from prism.simulator.types import Array

CHUNK_THREADS = 1 << 14
"""How many threads run at once: enough to hide Python's time, few enough for the caches."""

CHUNK_BYTES = 1 << 26
"""How much shared and local memory the blocks that run at once may have."""

COOPERATIVE_BYTES = 1 << 30
COOPERATIVE_COST = 4096
"""Bounds of a cooperative launch: memory, and about what a thread's registers take, in bytes."""

MAX_GLOBALS = 1 << 30
"""Most bytes that the `.global` and `.const` variables of a module may take."""

DEFAULT_BUDGET = 20_000_000
"""Vector instructions (each for up to CHUNK_THREADS threads) that one launch may execute."""

MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)


class Buffer:
    """An array in device memory, made by `Simulator.alloc`."""

    def __init__(
        self, owner: Simulator, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.owner = owner
        self.shape = shape
        self.dtype = dtype
        self._offset = offset
        self._freed = False

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def address(self) -> int:
        """The device address, as a kernel sees it."""
        return GLOBAL_BASE + self._offset

    def _bytes(self) -> Array:
        if self._freed:
            raise LaunchError("the buffer was freed")
        return self.owner.memory.data[self._offset : self._offset + self.nbytes]

    def numpy(self) -> npt.NDArray[Any]:
        """A copy of the contents, with the shape and type that were given."""
        return self._bytes().view(self.dtype).reshape(self.shape).copy()

    def write(self, values: npt.ArrayLike) -> None:
        """Overwrites the contents by values of the buffer's shape, cast to its type."""
        array = np.ascontiguousarray(np.asarray(values), dtype=self.dtype)
        if array.shape != self.shape:
            raise ValueError(f"expected shape {self.shape}, found {array.shape}")
        self._bytes()[:] = array.reshape(-1).view(np.uint8)
        states = self.owner.memory.unwritten
        if states is not None:
            states[1][self._offset : self._offset + self.nbytes] = 0

    def free(self) -> None:
        """Gives the memory back; a kernel that uses it afterwards is at fault."""
        if not self._freed:
            self.owner.memory.free(self._offset)
            self._freed = True


class Parameter:
    """A kernel parameter: its name and its PTX type, e.g. 'u64'; `size` in bytes."""

    def __init__(self, variable: Variable, offset: int) -> None:
        self.name = variable.name
        self.type = variable.type.name
        self.size = variable.size or 0
        self.offset = offset
        self._scalar = variable.type

    def __repr__(self) -> str:
        return f"Parameter({self.name!r}, {self.type!r})"

    def encode(self, value: object, owner: Simulator) -> Array:
        """The bytes of an argument, cast by the parameter's type."""
        if isinstance(value, Buffer):
            if value.owner is not owner:
                raise LaunchError(f"'{self.name}': the buffer belongs to another simulator")
            if self.size != 8:
                raise LaunchError(f"'{self.name}' of type .{self.type} cannot hold a pointer")
            raw = np.array([value.address], np.uint64)
        elif isinstance(value, bytes | bytearray):
            raw = np.frombuffer(bytes(value), np.uint8)
        elif isinstance(value, np.ndarray):
            raise LaunchError(f"'{self.name}': pass an array through Simulator.alloc")
        elif isinstance(value, numbers.Real | np.generic):
            raw = self._encode_number(value)
        else:
            kind = value.__class__.__name__
            raise LaunchError(f"'{self.name}': unsupported argument of type {kind}")
        data = raw.view(np.uint8)
        if len(data) != self.size:
            raise LaunchError(f"'{self.name}' has {self.size} bytes, the argument {len(data)}")
        return data

    def _encode_number(self, value: Any) -> Array:
        scalar = self._scalar
        if scalar.kind == "f" and scalar.name in ("f16", "f32", "f64"):
            return np.array([float(value)]).astype(scalar.dtype)
        bits = scalar.bits
        if isinstance(value, float | np.floating):
            # An untyped parameter takes the bits of a float of its width.
            kinds: dict[int, type[np.floating[Any]]] = {
                16: np.float16,
                32: np.float32,
                64: np.float64,
            }
            if scalar.kind != "b" or bits not in kinds:
                raise LaunchError(f"'{self.name}' of type .{self.type} cannot hold {value}")
            return np.array([value], kinds[bits])
        number = int(value)
        if not -(1 << (bits - 1)) <= number < 1 << bits:
            raise LaunchError(f"'{self.name}' of type .{self.type} cannot hold {number}")
        return np.array([number & ((1 << bits) - 1)], np.dtype(f"u{bits // 8}"))


class Kernel:
    """An entry of a loaded module."""

    def __init__(
        self, owner: Simulator, function: Function, decoder: Decoder, program: Program
    ) -> None:
        self.name = function.name
        self.reqntid = function.reqntid
        self.maxntid = function.maxntid
        self.static_smem = decoder.shared.static
        self.params = [
            Parameter(p, decoder.parameters.places[id(p)][0])
            for p in function.parameters
            if isinstance(p, Variable)
        ]
        self._owner = owner
        self._program = program
        self._parameter_size = decoder.parameters.size

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[object],
        dynamic_smem: int = 0,
        *,
        cooperative: bool = False,
    ) -> Report:
        """
        Runs the kernel to its end and reports what it did.

        `grid` and `block` are up to three sizes; `args` are buffers, numbers (cast by the
        parameter's type) or bytes; `dynamic_smem` in bytes. Blocks run in turns of a few at a time;
        `cooperative` runs all at once, for kernels that wait for each other's. Raises LaunchError
        for a launch that a driver would refuse, another SimulatorError for a fault of the kernel.
        """
        geometry = self._geometry(grid, block, args, dynamic_smem)
        memory = self._owner.memory
        meter = Meter(memory, on=self._owner.meter)
        budget = Budget(self._owner.budget)
        rows = self._blocks_at_once(geometry, cooperative=cooperative)
        for start in range(0, geometry.blocks, rows):
            chunk = range(start, min(start + rows, geometry.blocks))
            machine = Machine(
                self._program,
                geometry,
                chunk,
                memory,
                meter,
                budget,
                sanitize=self._owner.sanitize,
            )
            machine.run()
        return meter.report()

    def _blocks_at_once(self, geometry: Geometry, *, cooperative: bool) -> int:
        """How many blocks a machine runs: enough threads, but bounded shared and local memory."""
        threads = -(-geometry.threads // 32) * 32
        shared = self._program.shared_size + geometry.dynamic_smem
        window = shared + threads * self._program.local_size + 1
        if cooperative:
            if geometry.blocks * max(threads * COOPERATIVE_COST, window) > COOPERATIVE_BYTES:
                raise LaunchError(f"{geometry.blocks} blocks are too many to run at once")
            return geometry.blocks
        return max(1, min(CHUNK_THREADS // threads, CHUNK_BYTES // window))

    def _geometry(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[object],
        smem: int,
    ) -> Geometry:
        grid3 = _dim3("grid", grid, MAX_GRID)
        block3 = _dim3("block", block, MAX_BLOCK)
        threads = block3[0] * block3[1] * block3[2]
        if threads > 1024:
            raise LaunchError(f"a block of {threads} threads, the limit is 1024")
        if self.reqntid is not None and block3 != self.reqntid:
            raise LaunchError(f"'{self.name}' requires blocks of {self.reqntid}, found {block3}")
        limit = self.maxntid
        if limit is not None and threads > limit[0] * limit[1] * limit[2]:
            raise LaunchError(f"'{self.name}' allows blocks up to {limit}, found {block3}")
        if smem < 0 or self.static_smem + smem > MAX_SHARED:
            raise LaunchError(
                f"{self.static_smem} static and {smem} dynamic bytes of shared memory, "
                f"the limit is {MAX_SHARED}"
            )
        if len(args) != len(self.params):
            raise LaunchError(
                f"'{self.name}' takes {len(self.params)} arguments, found {len(args)}"
            )
        parameters = np.zeros(max(self._parameter_size, 1), np.uint8)
        for parameter, value in zip(self.params, args, strict=True):
            data = parameter.encode(value, self._owner)
            parameters[parameter.offset : parameter.offset + parameter.size] = data
        return Geometry(grid3, block3, parameters, smem)


def _dim3(what: str, sizes: int | Sequence[int], limits: Dim3) -> Dim3:
    values = [sizes] if isinstance(sizes, int) else [int(size) for size in sizes]
    if not 1 <= len(values) <= 3:
        raise LaunchError(f"{what} takes 1 to 3 sizes, found {len(values)}")
    x, y, z = (*values, 1, 1)[:3]
    for size, limit in zip((x, y, z), limits, strict=True):
        if not 1 <= size <= limit:
            raise LaunchError(f"{what} {(x, y, z)}: each size must be 1 to {limits}")
    return x, y, z


class Simulator:
    """
    A device: its memory and the modules loaded on it.

    `sanitize` checks reads of memory that is unwritten or still being copied to, races on shared
    memory, and shuffles from inactive lanes; bounds and alignment are always checked. `meter`
    counts what the report says beyond instructions and requested bytes, which are always counted.
    `budget` bounds the vector instructions of a launch.
    """

    def __init__(
        self, *, sanitize: bool = True, meter: bool = True, budget: int = DEFAULT_BUDGET
    ) -> None:
        self.sanitize = sanitize
        self.meter = meter
        self.budget = budget
        self.memory = GlobalMemory()

    def alloc(self, array: npt.ArrayLike) -> Buffer:
        """Copies an array to new device memory, aligned to 256 bytes."""
        values = np.asarray(array)
        if values.dtype.kind not in "biufcV" or values.dtype.itemsize == 0:
            raise LaunchError(f"unsupported element type {values.dtype}")
        # ascontiguousarray would give a scalar an axis, hence the shape from before it.
        flat = np.ascontiguousarray(values).reshape(-1)
        buffer = Buffer(self, self.memory.alloc(flat.nbytes), values.shape, values.dtype)
        self.memory.data[buffer.address - GLOBAL_BASE :][: flat.nbytes] = flat.view(np.uint8)
        return buffer

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        """
        New device memory without contents; a kernel that reads it before writing it is at fault.

        Its bytes are zeros for `numpy()` and for a simulator that does not sanitize.
        """
        kind = np.dtype(dtype)
        sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        if kind.kind not in "biufcV" or kind.itemsize == 0 or any(size < 0 for size in sizes):
            raise LaunchError(f"unsupported buffer of {kind} and shape {sizes}")
        size = math.prod(sizes) * kind.itemsize
        offset = self.memory.alloc(size, unwritten=True)
        return Buffer(self, offset, sizes, kind)

    def load(self, ptx: str, name: str = "<ptx>") -> dict[str, Kernel]:
        """Parses and decodes a PTX text; `name` is for messages. Raises PtxError."""
        module = parse(ptx, name)
        globals_ = self._place_globals(module)
        kernels: dict[str, Kernel] = {}
        for function in module.functions.values():
            if function.is_entry and function.has_body:
                decoder = Decoder(module, function, globals_, sanitize=self.sanitize)
                kernels[function.name] = Kernel(self, function, decoder, decoder.decode())
        return kernels

    def _place_globals(self, module: Module) -> dict[int, int]:
        """Addresses of the module's `.global` and `.const` variables, with their initial values."""
        places: dict[int, int] = {}
        variables = list(module.variables.values())
        for function in module.functions.values():
            variables += function.variables
        total = 0
        for variable in variables:
            if variable.space in ("global", "const"):
                total += variable.size or 0
                if total > MAX_GLOBALS:
                    message = f"more than {MAX_GLOBALS} bytes of global variables"
                    raise PtxError(module.file, variable.line, message)
                offset = self.memory.alloc(variable.size or 0)
                if variable.initial is not None:
                    data = np.frombuffer(variable.initial, np.uint8)
                    self.memory.data[offset : offset + len(data)] = data
                places[id(variable)] = offset + GLOBAL_BASE
        return places
