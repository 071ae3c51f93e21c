"""Helpers of the simulator's tests: small kernels around one instruction, and exact rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from prism.simulator import Simulator

Array = npt.NDArray[Any]
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
NAMES = "abcefg"


def lanes_kernel(body: str, inputs: list[np.dtype[Any]], out: np.dtype[Any]) -> str:
    """
    A kernel whose thread i loads element i of each input to %a, %b, ..., runs `body`, stores %d.

    Bool inputs become predicates %a, ...; a bool output is %d as a predicate.
    """
    lines = [HEADER, ".visible .entry lanes(.param .u64 po, .param .u32 pn"]
    lines += [f", .param .u64 p{name}" for name, _ in zip(NAMES, inputs, strict=False)]
    lines += [") {", ".reg .b64 %adr, %off; .reg .b32 %i, %n, %t0, %t1; .reg .pred %in;"]
    for name, dtype in [*zip(NAMES, inputs, strict=False), ("d", out)]:
        kind = ".pred" if dtype == np.bool_ else f".b{max(16, 8 * dtype.itemsize)}"
        lines.append(f".reg {kind} %{name};")
    lines.append(
        "mov.u32 %i, %ctaid.x; mov.u32 %t0, %ntid.x; mov.u32 %t1, %tid.x;"
        "mad.lo.u32 %i, %i, %t0, %t1; ld.param.u32 %n, [pn]; setp.lt.u32 %in, %i, %n; @!%in bra DONE;"
    )
    for name, dtype in zip(NAMES, inputs, strict=False):
        size = 4 if dtype == np.bool_ else dtype.itemsize
        lines.append(
            f"ld.param.u64 %adr, [p{name}]; mul.wide.u32 %off, %i, {size}; add.s64 %adr, %adr, %off;"
        )
        if dtype == np.bool_:
            lines.append(f"ld.global.u32 %t0, [%adr]; setp.ne.u32 %{name}, %t0, 0;")
        else:
            lines.append(f"ld.global.b{8 * size} %{name}, [%adr];")
    lines.append("\n" + body + "\n")
    size = 4 if out == np.bool_ else out.itemsize
    lines.append(
        f"ld.param.u64 %adr, [po]; mul.wide.u32 %off, %i, {size}; add.s64 %adr, %adr, %off;"
    )
    if out == np.bool_:
        lines.append("selp.u32 %t0, 1, 0, %d; st.global.u32 [%adr], %t0;")
    else:
        lines.append(f"st.global.b{8 * size} [%adr], %d;")
    lines.append("DONE: ret; }")
    return "\n".join(lines)


Evaluate = Callable[..., Array]


@pytest.fixture(scope="session")
def evaluate() -> Evaluate:
    """evaluate(body, *arrays, out=dtype): what the body leaves in %d for each element."""

    def run(body: str, *inputs: npt.ArrayLike, out: npt.DTypeLike) -> Array:
        arrays = [np.asarray(a) for a in inputs]
        count = max([a.size for a in arrays], default=1)
        arrays = [np.broadcast_to(a, (count,)).copy() for a in arrays]
        simulator = Simulator()
        kernel = simulator.load(lanes_kernel(body, [a.dtype for a in arrays], np.dtype(out)))[
            "lanes"
        ]
        kept = np.uint32 if np.dtype(out) == np.bool_ else np.dtype(out)
        result = simulator.alloc(np.zeros(count, kept))
        loaded = [
            simulator.alloc(a.astype(np.uint32) if a.dtype == np.bool_ else a) for a in arrays
        ]
        kernel.launch(-(-count // 64), 64, [result, count, *loaded])
        return result.numpy().astype(out)

    return run


FORMATS = {
    "f16": (10, -14, 15),
    "bf16": (7, -126, 127),
    "f32": (23, -126, 127),
    "f64": (52, -1022, 1023),
}


def round_exactly(value: Fraction, name: str, mode: str) -> float:
    """Rounds an exact value to a float format; modes rn, rz, rm, rp. The sign of zero is not kept."""
    mantissa, least, most = FORMATS[name]
    if value == 0:
        return 0.0
    exponent = (
        math.floor(math.log2(abs(value)))
        if abs(value) < 2**900 and abs(value) > Fraction(1, 2**900)
        else 0
    )
    while Fraction(2) ** exponent > abs(value):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    unit = Fraction(2) ** (max(exponent, least) - mantissa)
    scaled = value / unit
    low = math.floor(scaled)
    rest = scaled - low
    if mode == "rn":
        low += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1)
    elif mode == "rp" or (mode == "rz" and value < 0):
        low += rest > 0
    result = low * unit
    largest = (2 - Fraction(1, 2**mantissa)) * Fraction(2) ** most
    if abs(result) > largest:
        inward = mode == "rz" or (mode == "rm" and value > 0) or (mode == "rp" and value < 0)
        return (float(largest) if inward else math.inf) * (1 if value > 0 else -1)
    return float(result)


@pytest.fixture(scope="session")
def rounding() -> Callable[[Fraction, str, str], float]:
    """rounding(value, format, mode): `round_exactly`."""
    return round_exactly
