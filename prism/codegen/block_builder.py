"""Appends `thread` ops and puts barriers where threads would race on a shared tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from prism.dialects.thread import (
    AllocOp,
    BarrierOp,
    CommitOp,
    CopyOp,
    ForOp,
    SumWarpsOp,
    WaitOp,
    YieldOp,
)
from prism.dialects.thread_ops import Window
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
        self._copying = False

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
        """
        All threads wait, first for their own asynchronous copies; what was read and written before
        no longer matters.
        """
        if self._copying:
            self.commit()
            self._block.add_op(WaitOp(0))
        self._block.add_op(BarrierOp())
        self._read, self._written = set(), set()

    def copy(self, op: CopyOp) -> None:
        """Appends a copy; an asynchronous one is waited for at the next barrier."""
        self.add(op, writes=[op.tile])
        self._copying = self._copying or op.asynchronous is not None

    def commit(self) -> None:
        """Ends a group of asynchronous copies."""
        self._block.add_op(CommitOp())
        self._copying = False

    def loop(
        self,
        axis: str,
        count: int,
        inits: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """Appends a loop whose body is built by `body(carried) -> next`."""
        return self._loop(axis, count, inits, body, closed=True)

    def _loop(
        self,
        axis: str,
        count: int,
        inits: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
        *,
        closed: bool,
    ) -> Sequence[SSAValue]:
        """`closed` puts the barrier that the next index needs at the end of the body."""
        outer, before = self._block, self._ever_written
        self._block = Block(arg_types=[init.type for init in inits])
        self._ever_written = set()
        carried = body(self._block.args)
        if closed and (self._written or self._read & self._ever_written):
            self.barrier()
        self._block.add_op(YieldOp(*carried))
        op = ForOp(axis, count, inits, Region(self._block))
        self._block = outer
        self._ever_written |= before
        self._block.add_op(op)
        return op.outs

    def pipelined_loop(
        self,
        axis: str,
        count: int,
        stages: int,
        copies: Sequence[tuple[SSAValue, Window, SSAValue]],
        inits: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """
        Appends a loop whose copies (tensor, window, tile with `stages`) run stages - 1 ahead.

        A barrier at the start of each index makes the copies of that index visible to all threads
        and says that nobody reads the tiles of the index before, which are filled next.
        """
        ahead = stages - 1
        for index in range(ahead):
            if index < count:
                for tensor, window, tile in copies:
                    self._block.add_op(
                        CopyOp(tensor, window, tile, asynchronous=True, at=(axis, index))
                    )
            self.commit()

        def whole_body(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._block.add_op(WaitOp(ahead - 1))
            self._block.add_op(BarrierOp())
            self._read, self._written = set(), set()
            for tensor, window, tile in copies:
                self._block.add_op(CopyOp(tensor, window, tile, asynchronous=True, ahead=ahead))
            self.commit()
            return body(carried)

        results = self._loop(axis, count, inits, whole_body, closed=False)
        self._ever_written |= {tile for _, _, tile in copies}
        return results

    def finish(self, terminator: Operation) -> Region:
        """The finished body: tiles first, the terminator last."""
        self.entry.add_op(terminator)
        first = self.entry.first_op
        if first is not None and self._allocs:
            self.entry.insert_ops_before(self._allocs, first)
        return Region(self.entry)
