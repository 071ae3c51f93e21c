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
    floating,
    integer,
    matrix,
    warp,
)
from prism.simulator.instructions.control import ControlOpcode
from prism.simulator.instructions.table import Opcode

OPCODES: dict[str, Opcode] = {
    entry.name: entry
    for module in (
        integer,
        bits,
        floating,
        compare,
        convert,
        data,
        warp,
        matrix,
        asynchronous,
        atomic,
    )
    for entry in module.OPCODES
}
"""Instructions by mnemonic, without those that end a basic block."""

CONTROL: dict[str, ControlOpcode] = {entry.name: entry for entry in control.CONTROL_OPCODES}
"""Instructions that end a basic block."""
