"""The backend that runs PTX in Prism's simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from prism.runtime.bundle import Bundle
from prism.runtime.launch import Counts, DeviceBuffer, KernelFaultError
from prism.runtime.manifest import KernelEntry
from prism.simulator import Buffer, Kernel, PtxError, Simulator, SimulatorError

if TYPE_CHECKING:
    from prism.runtime.dtypes import Storage


class SimulatorBackend:
    """Runs kernels with the sanitizer and the meter on."""

    name = "sim"

    def __init__(self) -> None:
        self._simulator = Simulator(sanitize=True, meter=True)
        self._kernels: dict[str, Kernel] = {}

    def upload(self, array: Storage) -> DeviceBuffer:
        """Copy an array to simulated memory."""
        return self._simulator.alloc(array)

    def launch(self, bundle: Bundle, kernel: KernelEntry, buffers: list[DeviceBuffer]) -> Counts:
        """Run one kernel; a fault of the simulator or unknown PTX is a `KernelFaultError`."""
        try:
            if kernel.name not in self._kernels:
                loaded = self._simulator.load(
                    bundle.ptx(kernel), name=str(bundle.path / kernel.ptx)
                )
                if kernel.name not in loaded:
                    raise KernelFaultError(f"{kernel.ptx}: no entry function '{kernel.name}'")
                self._kernels[kernel.name] = loaded[kernel.name]
            report = self._kernels[kernel.name].launch(
                grid=kernel.grid,
                block=kernel.block,
                args=cast(list[Buffer], buffers),
                dynamic_smem=kernel.dynamic_smem,
            )
        except (PtxError, SimulatorError) as error:
            raise KernelFaultError(f"kernel '{kernel.name}': {error}") from error
        return Counts(
            instructions=report.total_instructions,
            instructions_by_kind=dict(report.instructions),
            global_read_bytes=report.global_read_bytes,
            global_write_bytes=report.global_write_bytes,
            dram_read_bytes=report.dram_read_bytes,
            dram_write_bytes=report.dram_write_bytes,
        )

    def close(self) -> None:
        """Nothing to free."""
