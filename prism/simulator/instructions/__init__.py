"""The instruction table: one entry per mnemonic, collected from the files of this folder."""

from __future__ import annotations

from prism.simulator.instructions import (
    asynchronous,
    atomic,
    bits,
    compare,
    control,
    convert,
    data,
    extended,
    floating,
    integer,
    matrix,
    mbarrier,
    mma,
    warp,
    wmma,
)
from prism.simulator.instructions.control import ControlOpcode
from prism.simulator.instructions.extended import WITH_CARRY, with_carry
from prism.simulator.instructions.table import Opcode

_PLAIN: dict[str, Opcode] = {
    entry.name: entry
    for module in (
        integer,
        extended,
        bits,
        floating,
        compare,
        convert,
        data,
        warp,
        matrix,
        mma,
        wmma,
        mbarrier,
        asynchronous,
        atomic,
    )
    for entry in module.OPCODES
}

OPCODES: dict[str, Opcode] = {
    name: with_carry(entry) if name in WITH_CARRY else entry for name, entry in _PLAIN.items()
}
"""Instructions by mnemonic, without those that end a basic block."""

CONTROL: dict[str, ControlOpcode] = {entry.name: entry for entry in control.CONTROL_OPCODES}
"""Instructions that end a basic block."""
