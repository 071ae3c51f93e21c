"""The emitter's sharing, hoisting and folding keep values."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Block, Region

from prism.codegen.emit import emit_kernel
from prism.codegen.emitter import Emitter
from prism.dialects.cuda import ConstantOp, ForOp, KernelOp, ReturnOp
from prism.dialects.cuda_kernel_ops import launch_properties
from prism.dialects.cuda_types import GLOBAL


def kernel_of(build):
    """A kernel of 32 threads with one tensor, its body built by `build(emitter, pointer)`."""
    block = Block(arg_types=[GLOBAL])
    build(Emitter(block), block.args[0])
    block.add_op(ReturnOp())
    kernel = KernelOp(launch_properties("k0", (1, 1, 1), 32, 0, "sm_80", "7.0"), Region(block))
    kernel.verify()
    return kernel


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "mul", "div", "rem", "minimum"]), st.integers(1, 40)),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_integer_arithmetic(lab, steps):
    """Constants fold, powers of two become shifts: each thread gets what Python computes."""

    def build(e, pointer):
        value = e.op("tid.x")
        for name, number in steps:
            value = getattr(e, name)(value, number)
        offset = e.op("mul.wide.u32", e.op("tid.x"), e.constant(4))
        e.store([value], e.op("advance.global", pointer, offset))

    python = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a // b,
        "rem": lambda a, b: a % b,
        "minimum": min,
    }
    expected = []
    for thread in range(32):
        value = thread
        for name, number in steps:
            value = python[name](value, number)
            # the helpers are for 32-bit integers that are not negative
            assume(value < 2**31)
        expected.append(value & 0xFFFFFFFF)
    kernel = emit_kernel(kernel_of(build))
    (found,) = lab.simulate(kernel, [], [np.zeros(32, np.uint32)])
    np.testing.assert_array_equal(found, np.array(expected, np.uint32))


def test_equal_instructions_are_made_once_and_outside_loops():
    def build(e, pointer):
        zero = e.f32(0.0)

        def body(index, carried):
            hoisted = e.mul(e.op("tid.x"), 24)
            again = e.mul(e.op("tid.x"), 24)
            assert hoisted is again
            e.add(index, hoisted)
            return [e.op("add.f32", carried[0], e.f32(1.0))]

        e.loop(5, [zero], body)

    kernel = kernel_of(build)
    names = [op.name for op in kernel.body.block.ops]
    assert names.count("cuda.mul.lo.s32") == 1
    (loop,) = (op for op in kernel.body.block.ops if isinstance(op, ForOp))
    assert [op.name for op in loop.body.block.ops] == ["cuda.add.s32", "cuda.add.f32", "cuda.yield"]


def test_constants_fold():
    def build(e, pointer):
        two = e.constant(2)
        for value in (e.add(two, 3), e.sub(e.mul(two, 5), e.constant(5)), e.div(e.constant(11), 2)):
            assert isinstance(value.owner, ConstantOp)
            assert value.owner.value.value.data == 5
        assert e.add(e.op("tid.x"), 0) is e.op("tid.x")
        assert e.less(two, e.constant(3)) is None
        assert e.f32(0.0) is not e.f32(-0.0)
        assert e.constant(1, i32) is not e.constant(1, f32)

    kernel_of(build)


def test_a_loop_of_one_step_is_no_loop():
    def build(e, pointer):
        e.loop(1, [e.f32(0.0)], lambda index, carried: carried)

    assert not any(isinstance(op, ForOp) for op in kernel_of(build).body.block.ops)
