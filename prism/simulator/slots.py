"""Slots: where the registers, constants and special registers of a program are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.special import SPECIAL
from prism.simulator.syntax import Function, Register
from prism.simulator.types import POISON, STORAGE, Array

if TYPE_CHECKING:
    from prism.simulator.machine import Machine


@dataclass
class Frame:
    """
    One expansion of a function: what its registers, variables and labels stand for.

    Slots by register index, addresses by id of the variable, flat positions by label.
    """

    function: Function
    is_kernel: bool
    slots: dict[int, int] = field(default_factory=dict[int, int])
    variables: dict[int, int] = field(default_factory=dict[int, int])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    end: int = -1


class Slots:
    """The slots of one program; each starts as an array, or as what makes one for a machine."""

    def __init__(self) -> None:
        self.initial: list[Array | Callable[[Machine], Array]] = []
        self._constants: dict[tuple[int, int], int] = {}
        self._specials: dict[str, int] = {}

    def add(self, initial: Array | Callable[[Machine], Array]) -> int:
        self.initial.append(initial)
        return len(self.initial) - 1

    def register(self, frame: Frame, register: Register) -> int:
        """The slot of a register in a frame."""
        slot = frame.slots.get(register.index)
        if slot is None:
            bits = register.type.bits
            slot = self.add(np.full((1, 1), POISON[bits], STORAGE[bits]))
            frame.slots[register.index] = slot
        return slot

    def constant(self, pattern: int, bits: int) -> int:
        """A slot that holds the same bits in all lanes."""
        key = (pattern & ((1 << bits) - 1), bits)
        slot = self._constants.get(key)
        if slot is None:
            slot = self._constants[key] = self.add(np.full((1, 1), key[0], STORAGE[bits]))
        return slot

    def special(self, name: str) -> int:
        """The slot of a special register of the table."""
        slot = self._specials.get(name)
        if slot is None:
            slot = self._specials[name] = self.add(SPECIAL[name][1])
        return slot
