"""Buffers, kernels, launches and reports."""

import json

import numpy as np
import pytest

from prism.simulator import LaunchError, Simulator

COPY = """.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 to, .param .u64 from, .param .u32 n, .param .f32 scale)
{
  .reg .b64 %to, %from, %q; .reg .b32 %i, %n, %t, %c; .reg .f32 %x, %s; .reg .pred %p;
  .shared .align 4 .b8 unused[40];
  ld.param.u64 %to, [to]; ld.param.u64 %from, [from]; ld.param.u32 %n, [n]; ld.param.f32 %s, [scale];
  mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %c, %t;
  setp.lt.u32 %p, %i, %n;
  mul.wide.u32 %q, %i, 4; add.s64 %to, %to, %q; add.s64 %from, %from, %q;
  @%p ld.global.f32 %x, [%from];
  mul.f32 %x, %x, %s;
  @%p st.global.f32 [%to], %x;
  ret;
}"""


@pytest.mark.parametrize("n", [1, 31, 1000, 40_000])
def test_launch_and_report(n):
    simulator = Simulator()
    kernel = simulator.load(COPY, "copy.ptx")["copy"]
    x = np.arange(n, dtype=np.float32)
    source, target = simulator.alloc(x), simulator.alloc(np.full(n, np.nan, np.float32))
    blocks = -(-n // 96)
    report = kernel.launch((blocks,), (96,), [target, source, n, 2])
    assert (target.numpy() == 2 * x).all()
    assert (source.numpy() == x).all()
    threads = blocks * 96
    assert report.instructions == {
        "alu": 6 * threads,
        "branch": threads,
        "ld.global": n,
        "ld.param": 4 * threads,
        "mov": 3 * threads,
        "st.global": n,
    }
    assert report.total_instructions == sum(report.instructions.values())
    assert (report.global_read_bytes, report.global_write_bytes) == (4 * n, 4 * n)
    assert report.dram_read_bytes == report.dram_write_bytes == -(-4 * n // 32) * 32
    assert (
        json.loads(json.dumps(report.as_dict()))["total_instructions"] == report.total_instructions
    )


def test_meter_off_leaves_out_sectors():
    simulator = Simulator(meter=False)
    x = simulator.alloc(np.zeros(8, np.float32))
    report = simulator.load(COPY)["copy"].launch(1, 32, [x, x, 8, 1])
    assert (report.dram_read_bytes, report.global_read_bytes) == (0, 32)


def test_kernel_describes_itself():
    kernel = Simulator().load(COPY.replace("scale)\n", "scale) .reqntid 32\n"))["copy"]
    assert [(p.name, p.type, p.size) for p in kernel.params] == [
        ("to", "u64", 8),
        ("from", "u64", 8),
        ("n", "u32", 4),
        ("scale", "f32", 4),
    ]
    assert (kernel.reqntid, kernel.maxntid, kernel.static_smem) == ((32, 1, 1), None, 40)


@pytest.mark.parametrize(
    ("grid", "block", "smem", "args", "message"),
    [
        (1, 32, 0, ["x", "x", 1], "takes 4 arguments, found 3"),
        (1, 32, 0, ["x", "x", 1.5, 1], "cannot hold 1.5"),
        (1, 32, 0, ["x", "x", 1 << 32, 1], "cannot hold 4294967296"),
        (1, 32, 0, ["x", "x", "x", 1], "cannot hold a pointer"),
        (1, 32, 0, ["x", "x", None, 1], "unsupported argument of type NoneType"),
        (1, 32, 0, [np.zeros(3), "x", 1, 1], "through Simulator.alloc"),
        (1, 32, 0, [b"123", "x", 1, 1], "has 8 bytes, the argument 3"),
        (0, 32, 0, ["x", "x", 1, 1], "each size must be"),
        ((1, 1, 70000), 32, 0, ["x", "x", 1, 1], "each size must be"),
        (1, (32, 64), 0, ["x", "x", 1, 1], "2048 threads"),
        (1, (1, 1, 65), 0, ["x", "x", 1, 1], "each size must be"),
        ((1, 1, 1, 1), 32, 0, ["x", "x", 1, 1], "1 to 3 sizes"),
        (1, 32, 232409, ["x", "x", 1, 1], "the limit is 232448"),
        (1, 32, -1, ["x", "x", 1, 1], "the limit is 232448"),
        (1, 128, 0, ["x", "x", 1, 1], "allows blocks up to"),
    ],
)
def test_impossible_launches(grid, block, smem, args, message):
    simulator = Simulator()
    x = simulator.alloc(np.zeros(8, np.float32))
    kernel = simulator.load(COPY.replace("scale)\n", "scale) .maxntid 64\n"))["copy"]
    with pytest.raises(LaunchError, match=message.replace("(", r"\(")):
        kernel.launch(
            grid, block, [x if isinstance(a, str) else a for a in args], dynamic_smem=smem
        )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i8", "?"])
def test_buffers_keep_shape_and_type(dtype):
    simulator = Simulator()
    x = np.arange(24).astype(dtype).reshape(2, 3, 4).transpose(2, 0, 1)
    buffer = simulator.alloc(x)
    assert buffer.address % 256 == 0
    assert (buffer.shape, buffer.dtype, buffer.nbytes) == ((4, 2, 3), x.dtype, x.nbytes)
    assert (buffer.numpy() == x).all()
    buffer.write(np.ones((4, 2, 3)))
    assert (buffer.numpy() == 1).all()
    with pytest.raises(ValueError, match="expected shape"):
        buffer.write(np.ones(3))
    scalar = simulator.alloc(np.float32(3))
    assert scalar.numpy().shape == ()
    assert simulator.alloc(np.zeros((0, 4))).numpy().shape == (0, 4)


def test_memory_grows_and_buffers_stay():
    simulator = Simulator()
    small = simulator.alloc(np.arange(10))
    large = simulator.alloc(np.ones(1 << 20))
    assert small.numpy().tolist() == list(range(10))
    assert large.numpy().sum() == 1 << 20


def test_objects_are_refused():
    with pytest.raises(LaunchError, match="unsupported element type"):
        Simulator().alloc(np.array([object()]))


def test_dynamic_shared_memory_is_the_rest():
    text = """.version 7.0
    .target sm_80
    .address_size 64
    .extern .shared .align 16 .b8 dyn[];
    .entry k(.param .u64 o) { .reg .b64 %o; .reg .b32 %t, %a, %b; .shared .align 4 .b32 fixed[8];
    ld.param.u64 %o, [o]; mov.u32 %t, %tid.x; mov.u32 %a, dyn; mad.lo.u32 %a, %t, 4, %a;
    st.shared.u32 [%a], %t; mov.u32 %b, %dynamic_smem_size; st.shared.u32 [fixed], %b;
    bar.sync 0; ld.shared.u32 %a, [dyn+124]; ld.shared.u32 %b, [fixed]; st.global.v2.u32 [%o], {%a, %b}; ret; }"""
    for sanitize in (True, False):
        simulator = Simulator(sanitize=sanitize)
        kernel = simulator.load(text)["k"]
        assert kernel.static_smem == 32
        out = simulator.alloc(np.zeros(2, np.uint32))
        kernel.launch(2, 32, [out], dynamic_smem=128)
        assert out.numpy().tolist() == [31, 128]
        with pytest.raises(Exception, match="shared access"):
            kernel.launch(2, 32, [out], dynamic_smem=124)
