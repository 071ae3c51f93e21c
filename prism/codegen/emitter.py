"""
Builds the body of a `cuda.kernel`, sharing equal register instructions and hoisting them out of
loops.

Every pure instruction is placed in the outermost block where its operands are known and made once
there, so lowerings can compute addresses where they need them; constants fold. Ops with effects
stay where they are emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from prism.dialects.cuda import (
    BarrierOp,
    CommitOp,
    ConstantOp,
    CopyAsyncOp,
    ForOp,
    IfOp,
    LdMatrixOp,
    LoadOp,
    MmaOp,
    ShuffleOp,
    StoreOp,
    WaitOp,
    YieldOp,
)
from prism.dialects.cuda_register_ops import INSTRUCTION_OPS, constant_value

Key = tuple[object, ...]


@dataclass
class _Scope:
    """An open block and the pure values made in it."""

    block: Block
    known: dict[Key, tuple[SSAValue, ...]] = field(default_factory=dict[Key, tuple[SSAValue, ...]])


class Emitter:
    """Appends to the innermost open block; see the module's text for where pure ops go."""

    def __init__(self, block: Block) -> None:
        self._scopes = [_Scope(block)]

    # placement

    def depth(self, value: SSAValue) -> int:
        """The index of the open scope that holds the value."""
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        for depth in range(len(self._scopes) - 1, -1, -1):
            if self._scopes[depth].block is block:
                return depth
        raise ValueError(f"{value} is not visible from the open block")

    def _pure(
        self, key: Key, operands: Sequence[SSAValue], make: Callable[[], Operation]
    ) -> tuple[SSAValue, ...]:
        depth = max((self.depth(operand) for operand in operands), default=0)
        scope = self._scopes[depth]
        found = scope.known.get(key)
        if found is None:
            op = make()
            scope.block.add_op(op)
            found = scope.known[key] = tuple(op.results)
        return found

    def _append(self, op: Operation) -> Operation:
        self._scopes[-1].block.add_op(op)
        return op

    # register instructions

    def constant(self, value: float, type: Attribute = i32) -> SSAValue:
        """A constant of type i32, i64 or f32."""
        # repr tells -0.0 from 0.0, which are equal as keys
        key = ("constant", repr(value), type)
        return self._pure(key, (), lambda: ConstantOp(value, type))[0]

    def ops(self, name: str, *operands: SSAValue) -> tuple[SSAValue, ...]:
        """The results of an instruction of the table."""
        make = INSTRUCTION_OPS[name]
        return self._pure((name, *operands), operands, lambda: make(*operands))

    def op(self, name: str, *operands: SSAValue) -> SSAValue:
        """The only result of an instruction of the table."""
        (result,) = self.ops(name, *operands)
        return result

    def f32(self, value: float) -> SSAValue:
        """An f32 constant."""
        return self.constant(float(value), f32)

    def add(self, left: SSAValue, right: SSAValue | int) -> SSAValue:
        """left + right, i32."""
        a, b = constant_value(left), _known(right)
        if a is not None and b is not None:
            return self.constant(a + b)
        if b == 0:
            return left
        if a == 0 and isinstance(right, SSAValue):
            return right
        return self.op("add.s32", left, self._value(right))

    def sub(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """left - right, i32."""
        a, b = constant_value(left), constant_value(right)
        if b is not None:
            return self.add(left, -b) if a is None else self.constant(a - b)
        return self.op("sub.s32", left, right)

    def mul(self, left: SSAValue, right: int) -> SSAValue:
        """left * right, i32; a shift for a power of two."""
        a = constant_value(left)
        if a is not None:
            return self.constant(a * right)
        if right == 1:
            return left
        if right == 0:
            return self.constant(0)
        if right & (right - 1) == 0 and right > 0:
            return self.op("shl.b32", left, self.constant(right.bit_length() - 1))
        return self.op("mul.lo.s32", left, self.constant(right))

    def div(self, left: SSAValue, right: int) -> SSAValue:
        """left // right for left >= 0, i32; a shift for a power of two."""
        a = constant_value(left)
        if a is not None:
            return self.constant(a // right)
        if right == 1:
            return left
        if right & (right - 1) == 0:
            return self.op("shr.u32", left, self.constant(right.bit_length() - 1))
        return self.op("div.u32", left, self.constant(right))

    def rem(self, left: SSAValue, right: int) -> SSAValue:
        """left % right for left >= 0, i32; a mask for a power of two."""
        a = constant_value(left)
        if a is not None:
            return self.constant(a % right)
        if right & (right - 1) == 0:
            return (
                self.constant(0)
                if right == 1
                else self.op("and.b32", left, self.constant(right - 1))
            )
        return self.op("rem.u32", left, self.constant(right))

    def xor(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """left ^ right, i32."""
        a, b = constant_value(left), constant_value(right)
        if a is not None and b is not None:
            return self.constant(a ^ b)
        if a == 0 or b == 0:
            return right if a == 0 else left
        return self.op("xor.b32", left, right)

    def minimum(self, left: SSAValue, right: int) -> SSAValue:
        """min(left, right), i32."""
        a = constant_value(left)
        if a is not None:
            return self.constant(min(a, right))
        return self.op("min.s32", left, self.constant(right))

    def less(self, left: SSAValue, right: SSAValue) -> SSAValue | None:
        """left < right as a predicate, None if it always holds."""
        a, b = constant_value(left), constant_value(right)
        if a is not None and b is not None and a < b:
            return None
        return self.op("setp.lt.s32", left, right)

    def both(self, left: SSAValue | None, right: SSAValue | None) -> SSAValue | None:
        """left and right; None is a predicate that always holds."""
        if left is None or right is None:
            return left or right
        return left if left is right else self.op("and.pred", left, right)

    def _value(self, value: SSAValue | int) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.constant(value)

    # effects

    def load(
        self,
        pointer: SSAValue,
        types: Sequence[Attribute],
        offset: int = 0,
        predicate: SSAValue | None = None,
    ) -> tuple[SSAValue, ...]:
        """Loads registers; zeros where the predicate is false."""
        return tuple(self._append(LoadOp(pointer, types, offset, predicate)).results)

    def store(
        self,
        values: Sequence[SSAValue],
        pointer: SSAValue,
        offset: int = 0,
        predicate: SSAValue | None = None,
    ) -> None:
        """Stores registers where the predicate is true."""
        self._append(StoreOp(values, pointer, offset, predicate))

    def ldmatrix(
        self, pointer: SSAValue, count: int, *, trans: bool, offset: int = 0
    ) -> tuple[SSAValue, ...]:
        """Loads 8x8 matrices from shared memory."""
        return tuple(self._append(LdMatrixOp(pointer, count, trans=trans, offset=offset)).results)

    def mma(
        self,
        a: Sequence[SSAValue],
        b: Sequence[SSAValue],
        c: Sequence[SSAValue],
        *,
        bf16: bool = False,
    ) -> tuple[SSAValue, ...]:
        """One m16n8k16 product of f16, or bf16."""
        return tuple(self._append(MmaOp(a, b, c, bf16=bf16)).results)

    def shuffle(self, value: SSAValue, mask: int) -> SSAValue:
        """The value of the lane at number xor mask."""
        return self._append(ShuffleOp(value, mask)).results[0]

    def copy_async(
        self,
        bytes: int,
        source: tuple[SSAValue, int],
        target: tuple[SSAValue, int],
        inside: SSAValue | None,
        predicate: SSAValue | None,
    ) -> None:
        """Starts a copy from global to shared memory; zeros instead where `inside` is false."""
        size: SSAValue | None = None
        if inside is not None:
            size = self.op("selp.b32", self.constant(bytes), self.constant(0), inside)
        self._append(CopyAsyncOp(bytes, source, target, size, predicate))

    def commit(self) -> None:
        """Ends a group of asynchronous copies."""
        self._append(CommitOp())

    def wait(self, pending: int) -> None:
        """Waits until at most `pending` groups of copies are incomplete."""
        self._append(WaitOp(pending))

    def barrier(self) -> None:
        """Waits for all threads of the block."""
        self._append(BarrierOp())

    # control

    def loop(
        self,
        stop: int,
        inits: Sequence[SSAValue],
        body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
        step: int = 1,
    ) -> tuple[SSAValue, ...]:
        """
        Emits `body(index, carried) -> next` for index = 0, step, .. below stop and returns the
        last carried values. A loop of one step is emitted without a loop.
        """
        if stop <= step:
            return tuple(body(self.constant(0), inits))
        block = Block(arg_types=[i32, *(value.type for value in inits)])
        self._scopes.append(_Scope(block))
        carried = body(block.args[0], block.args[1:])
        block.add_op(YieldOp(*carried))
        self._scopes.pop()
        return tuple(self._append(ForOp(0, stop, step, inits, Region(block))).results)

    def when(self, predicate: SSAValue | None, body: Callable[[], None]) -> None:
        """Emits `body()` for the threads where the predicate is true; None is always true."""
        if predicate is None:
            return body()
        block = Block()
        self._scopes.append(_Scope(block))
        body()
        block.add_op(YieldOp())
        self._scopes.pop()
        self._append(IfOp(predicate, Region(block)))


def _known(value: SSAValue | int) -> int | None:
    return constant_value(value) if isinstance(value, SSAValue) else value
