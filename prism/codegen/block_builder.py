"""Appends `thread` ops and puts barriers where threads would race on a shared tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from prism.dialects.thread import AllocOp, BarrierOp, ForOp, SumWarpsOp, YieldOp
from prism.dialects.thread_types import SharedType

OpT = TypeVar("OpT", bound=Operation)


class BlockBuilder:
    """
    Builds the body of a `thread.kernel`.

    Since the last barrier some tiles were read and some written. A barrier is due before a written
    tile is used and before a read one is overwritten; at the end of a loop's body also for what
    the next index does.
    """

    def __init__(self, arguments: Sequence[Attribute]) -> None:
        self.entry = Block(arg_types=arguments)
        self._block = self.entry
        self._allocs: list[AllocOp] = []
        self._read: set[SSAValue] = set()
        self._written: set[SSAValue] = set()
        self._ever_written: set[SSAValue] = set()

    def alloc(self, type: SharedType) -> SSAValue:
        """A new shared tile, at the kernel's start."""
        op = AllocOp(type)
        self._allocs.append(op)
        return op.result

    def add(self, op: OpT, reads: Sequence[SSAValue] = (), writes: Sequence[SSAValue] = ()) -> OpT:
        """Appends an op that reads and writes shared tiles."""
        if self._written & {*reads, *writes} or self._read & {*writes}:
            self.barrier()
        self._block.add_op(op)
        if isinstance(op, SumWarpsOp):
            # it waits for all threads between writing its scratch and reading it
            self._read, self._written = set(), set()
        else:
            self._written |= {*writes}
        self._read |= {*reads}
        self._ever_written |= {*writes}
        return op

    def barrier(self) -> None:
        """All threads wait; what was read and written before no longer matters."""
        self._block.add_op(BarrierOp())
        self._read, self._written = set(), set()

    def loop(
        self,
        axis: str,
        count: int,
        inits: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """Appends a loop whose body is built by `body(carried) -> next`."""
        outer, before = self._block, self._ever_written
        self._block = Block(arg_types=[init.type for init in inits])
        self._ever_written = set()
        carried = body(self._block.args)
        if self._written or self._read & self._ever_written:
            self.barrier()
        self._block.add_op(YieldOp(*carried))
        op = ForOp(axis, count, inits, Region(self._block))
        self._block = outer
        self._ever_written |= before
        self._block.add_op(op)
        return op.outs

    def finish(self, terminator: Operation) -> Region:
        """The finished body: tiles first, the terminator last."""
        self.entry.add_op(terminator)
        first = self.entry.first_op
        if first is not None and self._allocs:
            self.entry.insert_ops_before(self._allocs, first)
        return Region(self.entry)
