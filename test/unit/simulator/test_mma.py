"""mma.sync of every element type and shape, fragments by the formulas of PTX ISA 9.7.14.5."""

import numpy as np
import pytest

from prism.simulator import Simulator

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"

CASES = [
    *(("f16", shape) for shape in ("m16n8k8", "m16n8k16")),
    *(("bf16", shape) for shape in ("m16n8k8", "m16n8k16")),
    *(("tf32", shape) for shape in ("m16n8k4", "m16n8k8")),
    *((kind, shape) for kind in ("s8", "u8") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")),
    *((kind, shape) for kind in ("s4", "u4") for shape in ("m8n8k32", "m16n8k32", "m16n8k64")),
    *(("f64", shape) for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
]
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "f64": 64}


def a_place(lane, i, bits, rows):
    """Row and column of element i that a lane holds of A; i counts through the registers."""
    each = max(32 // bits, 1)
    group, inside = divmod(i, each)
    if rows == 8:
        return lane // 4, lane % 4 * each + inside + 4 * each * group
    return lane // 4 + 8 * (group % 2), lane % 4 * each + inside + 4 * each * (group // 2)


def b_place(lane, i, bits):
    each = max(32 // bits, 1)
    return lane % 4 * each + i % each + 4 * each * (i // each), lane // 4


def c_place(lane, i):
    return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2


def registers(matrix, place, bits):
    """(32, registers) words of a matrix given as unsigned bit patterns."""
    each = max(32 // bits, 1)
    count = matrix.size // 32
    words = np.zeros((32, count // each), "u8")
    for lane in range(32):
        for i in range(count):
            words[lane, i // each] |= np.uint64(int(matrix[place(lane, i)]) << (bits * (i % each)))
    return words


def pattern(kind, values):
    """Bit patterns of values that the type holds exactly."""
    if kind == "f64":
        return values.astype("f8").view("u8")
    if kind == "tf32":
        return values.astype("f4").view("u4")
    if kind == "bf16":
        return values.astype("f4").view("u4") >> 16
    if kind == "f16":
        return values.astype("f2").view("u2")
    return values.astype("i8") & ((1 << BITS[kind]) - 1)


def run(mnemonic, a, b, c, wide):
    """One warp; registers come from memory and d goes there."""
    size = 8 if wide else 4
    counts = [part.shape[1] for part in (a, b, c)]
    names = [[f"%{n}{i}" for i in range(k)] for n, k in zip("abc", counts, strict=True)]
    d = [f"%d{i}" for i in range(counts[2])]
    kind = {8: ".f64" if wide else ".b64", 4: ".b32"}[size]
    body = f".reg {kind} {', '.join([*names[0], *names[1], *names[2], *d])};"
    if "f32" in mnemonic.split(".")[-1]:
        body = f".reg .b32 {', '.join([*names[0], *names[1]])}; .reg .f32 {', '.join([*names[2], *d])};"
    body += ".reg .b64 %p, %q; .reg .b32 %t; mov.u32 %t, %tid.x;"
    for which, regs in zip("abc", names, strict=True):
        body += f"ld.param.u64 %p, [{which}]; mul.wide.u32 %q, %t, {size * len(regs)}; add.s64 %p, %p, %q;"
        body += "".join(f"ld.global.b{8 * size} {r}, [%p+{size * i}];" for i, r in enumerate(regs))
    a_, b_, c_, d_ = ("{" + ", ".join(regs) + "}" for regs in (*names, d))
    body += f"{mnemonic} {d_}, {a_}, {b_}, {c_};"
    body += "".join(f"st.global.b{8 * size} [%p+{size * i}], {r};" for i, r in enumerate(d))
    simulator = Simulator()
    text = f"{HEADER}.entry k(.param .u64 a, .param .u64 b, .param .u64 c) {{ {body} ret; }}"
    buffers = [simulator.alloc(part.astype(f"u{size}")) for part in (a, b, c)]
    report = simulator.load(text)["k"].launch(1, 32, buffers)
    return buffers[2].numpy(), report


@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_fragments(kind, shape):
    m, n, k = (int(part) for part in shape.replace("n", "m").replace("k", "m").split("m")[1:])
    bits, rng = BITS[kind], np.random.default_rng(3)
    low, high = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16)}.get(kind, (-8, 9))
    a, b = rng.integers(low, high, (m, k)), rng.integers(low, high, (k, n))
    c = rng.integers(-100, 100, (m, n))
    acc = {"f64": "f64", "f16": "f32", "bf16": "f32", "tf32": "f32"}.get(kind, "s32")
    c_bits = {"f64": c.astype("f8").view("u8"), "f32": c.astype("f4").view("u4")}.get(acc, c & 0xFFFFFFFF)  # fmt: skip
    found, report = run(
        f"mma.sync.aligned.{shape}.row.col.{acc}.{kind}.{kind}.{acc}",
        registers(pattern(kind, a), lambda lane, i: a_place(lane, i, bits, m), bits),
        registers(pattern(kind, b), lambda lane, i: b_place(lane, i, bits), bits),
        registers(c_bits, c_place, 64 if kind == "f64" else 32),
        kind == "f64",
    )
    expected = registers(
        {
            "f64": (a @ b + c).astype("f8").view("u8"),
            "f32": (a @ b + c).astype("f4").view("u4"),
        }.get(acc, (a @ b + c) & 0xFFFFFFFF),
        c_place,
        64 if kind == "f64" else 32,
    )
    assert (found == expected).all()
    assert report.mma_flops == 2 * m * n * k
    assert report.warp_instructions["mma"] == 1


def test_mixed_signs_and_saturation():
    a, b = np.full((8, 16), 255), np.full((16, 8), -128)
    c = np.full((8, 8), -(1 << 31) + 5)
    args = [
        registers(pattern("u8", a), lambda lane, i: a_place(lane, i, 8, 8), 8),
        registers(pattern("s8", b), lambda lane, i: b_place(lane, i, 8), 8),
        registers(c & 0xFFFFFFFF, c_place, 32),
        False,
    ]
    mnemonic = "mma.sync.aligned.m8n8k16.row.col{}.s32.u8.s8.s32"
    found, _ = run(mnemonic.format(".satfinite"), *args)
    assert (found.view("i4") == -(1 << 31)).all()
    found, _ = run(mnemonic.format(""), *args)
    assert (found.view("i4") == (-(1 << 31) + 5 - 255 * 128 * 16 + (1 << 32))).all()


def test_tf32_ignores_the_lower_bits():
    a = np.full((16, 4), np.float32(1).view("u4") | 0x1FFF, "u4")
    b = np.full((4, 8), np.float32(2).view("u4"), "u4")
    found, _ = run(
        "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
        registers(a, lambda lane, i: a_place(lane, i, 32, 16), 32),
        registers(b, lambda lane, i: b_place(lane, i, 32), 32),
        np.zeros((32, 4), "u8"),
        False,
    )
    assert (found.view("f4") == 8).all()
