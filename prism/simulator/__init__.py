"""
A PTX simulator: runs PTX text on the CPU, checks it while it runs, and counts what it does.

    sim = Simulator()
    x = sim.alloc(numpy_array)
    report = sim.load(ptx_text)["kernel"].launch(grid=4, block=128, args=[x, 3])
    x.numpy()
"""

from prism.simulator.api import Buffer, Kernel, Parameter, Simulator
from prism.simulator.errors import (
    AsyncReadError,
    BudgetError,
    DeadlockError,
    DivergenceError,
    LaunchError,
    MisalignedAccessError,
    OutOfBoundsError,
    PtxError,
    RaceError,
    SimulatorError,
    UninitializedReadError,
    UseAfterFreeError,
)
from prism.simulator.meter import Report

__all__ = [
    "AsyncReadError",
    "BudgetError",
    "Buffer",
    "DeadlockError",
    "DivergenceError",
    "Kernel",
    "LaunchError",
    "MisalignedAccessError",
    "OutOfBoundsError",
    "Parameter",
    "PtxError",
    "RaceError",
    "Report",
    "Simulator",
    "SimulatorError",
    "UninitializedReadError",
    "UseAfterFreeError",
]
