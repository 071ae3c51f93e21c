"""Barriers: where two threads would race on a shared tile, and nowhere else."""

from xdsl.dialects import test
from xdsl.dialects.builtin import TensorType, f16

from prism.codegen.block_builder import BlockBuilder
from prism.dialects.thread import ReturnOp
from prism.dialects.thread_types import SharedType

TILE = SharedType((8, 8), f16, 8)


def ops_of(build, loop=None):
    """The names of the ops that `build(builder, tile, other)` appends."""
    builder = BlockBuilder([TensorType(f16, (8, 8))])
    build(builder, builder.alloc(TILE), builder.alloc(TILE))
    names = []
    for op in builder.finish(ReturnOp()).block.ops:
        names.append(op.name)
        names += [f"  {inner.name}" for region in op.regions for inner in region.block.ops]
    return [name for name in names if name not in ("thread.alloc", "thread.return")]


def write(builder, *tiles):
    builder.add(test.TestOp(), writes=tiles)


def read(builder, *tiles):
    builder.add(test.TestOp(), reads=tiles)


def test_write_then_read():
    def build(builder, tile, other):
        write(builder, tile)
        write(builder, other)
        read(builder, tile)
        read(builder, other)

    assert ops_of(build) == ["test.op", "test.op", "thread.barrier", "test.op", "test.op"]


def test_read_then_overwrite():
    def build(builder, tile, other):
        read(builder, tile)
        write(builder, other)
        write(builder, tile)

    assert ops_of(build) == ["test.op", "test.op", "thread.barrier", "test.op"]


def test_write_twice():
    def build(builder, tile, other):
        write(builder, tile)
        write(builder, tile)

    assert ops_of(build) == ["test.op", "thread.barrier", "test.op"]


def test_reads_alone_need_none():
    def build(builder, tile, other):
        read(builder, tile)
        read(builder, tile, other)

    assert ops_of(build) == ["test.op", "test.op"]


def test_loop_that_refills_a_tile():
    """The next index overwrites what this one reads: a barrier ends the body."""

    def build(builder, tile, other):
        def body(carried):
            write(builder, tile)
            read(builder, tile)
            return ()

        builder.loop("i", 4, (), body)
        read(builder, tile)

    body = ["  test.op", "  thread.barrier", "  test.op", "  thread.barrier", "  thread.yield"]
    assert ops_of(build) == ["thread.for", *body, "test.op"]


def test_loop_that_only_reads():
    """What was written before the loop is read in each index: one barrier, none at the end."""

    def build(builder, tile, other):
        write(builder, tile)

        def body(carried):
            read(builder, tile)
            return ()

        builder.loop("i", 4, (), body)

    assert ops_of(build) == [
        "test.op",
        "thread.for",
        "  thread.barrier",
        "  test.op",
        "  thread.yield",
    ]


def test_loop_that_only_writes():
    def build(builder, tile, other):
        def body(carried):
            write(builder, tile)
            return ()

        builder.loop("i", 4, (), body)

    assert ops_of(build) == ["thread.for", "  test.op", "  thread.barrier", "  thread.yield"]
