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
    video,
    warp,
    wmma,
)
from prism.simulator.instructions.control import ControlOpcode
from prism.simulator.instructions.extended import WITH_CARRY, with_carry
from prism.simulator.instructions.table import Opcode
from prism.simulator.instructions.video import PAIRS, with_pairs

_PLAIN: dict[str, Opcode] = {
    entry.name: entry
    for module in (
        integer,
        extended,
        bits,
        video,
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

_PAIRED = {name: with_pairs(entry) if name in PAIRS else entry for name, entry in _PLAIN.items()}

OPCODES: dict[str, Opcode] = {
    name: with_carry(entry) if name in WITH_CARRY else entry for name, entry in _PAIRED.items()
}
"""Instructions by mnemonic, without those that end a basic block."""

CONTROL: dict[str, ControlOpcode] = {entry.name: entry for entry in control.CONTROL_OPCODES}
"""Instructions that end a basic block."""
