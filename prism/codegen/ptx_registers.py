"""PTX register names for the SSA values of a kernel."""

from __future__ import annotations

from collections import Counter

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from prism.dialects.cuda import ForOp
from prism.dialects.cuda_types import REGISTER_CLASS


class Registers:
    """Names registers on demand, counting per class what must be declared."""

    def __init__(self) -> None:
        self._names: dict[SSAValue, str] = {}
        self._counts: Counter[str] = Counter()

    def fresh(self, type: Attribute) -> str:
        """A new register that can hold `type`."""
        prefix, _ = REGISTER_CLASS[type]
        self._counts[prefix] += 1
        return f"%{prefix}{self._counts[prefix]}"

    def of(self, value: SSAValue) -> str:
        """The register of a value."""
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = self.fresh(value.type)
        return name

    def share(self, value: SSAValue, register: str) -> None:
        """Gives a value the register of another."""
        self._names[value] = register

    def assigned(self, value: SSAValue) -> bool:
        """Whether the value has a register already."""
        return value in self._names

    def declarations(self) -> list[str]:
        """The `.reg` lines of all registers named so far."""
        declared = dict(REGISTER_CLASS.values())
        return [
            f".reg .{type} %{prefix}<{self._counts[prefix] + 1}>;"
            for prefix, type in sorted(declared.items())
            if self._counts[prefix]
        ]


def coalesce_carried(loop: ForOp, registers: Registers) -> None:
    """
    Lets each carried value be computed in the register that carries it, where that is safe: the
    yielded value is computed in the body's own block, and the old value is not needed after it.
    """
    block = loop.body.block
    yielded = block.last_op
    if yielded is None:
        return
    position = {op: index for index, op in enumerate(block.ops)}
    for carried, new in zip(block.args[1:], yielded.operands, strict=True):
        owner = new.owner
        if not isinstance(owner, Operation) or registers.assigned(new) or owner not in position:
            continue
        if all(
            _needed_before(use.operation, use.index, new, owner, block, position)
            for use in carried.uses
        ):
            registers.share(new, registers.of(carried))


def _needed_before(
    user: Operation,
    index: int,
    new: SSAValue,
    owner: Operation,
    block: Block,
    position: dict[Operation, int],
) -> bool:
    """Whether a use of the old value reads it before `owner` writes the new one."""
    top = block.find_ancestor_op_in_block(user)
    if top is None:
        return False
    if top is not owner:
        return position[top] < position[owner]
    if isinstance(owner, ForOp):
        # the inner loop writes its carried registers while its body runs
        return user is owner and new is owner.outs[index]
    return isinstance(owner, IRDLOperation) and user is owner and not owner.regions
