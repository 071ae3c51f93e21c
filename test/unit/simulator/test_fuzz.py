"""
Mutated PTX of nvcc, Triton and Prism ends in a result or a located error, never in anything else.

20 seconds in `make test`, five minutes in `make bench`, spread over the kernels.
"""

import random
import time
from pathlib import Path

import numpy as np
import pytest

from prism.simulator import LaunchError, PtxError, Simulator, SimulatorError

HERE = Path(__file__).parent
N = 64
LAUNCHES = {
    "corpus/saxpy": ("saxpy", 2, 64, [N, 2.0, "f4", "f4"], 0),
    "corpus/tiled": ("tiled", 4, (16, 16), ["f4", "f4", "f4", 16, 16, 32], 0),
    "corpus/mma": ("mma", 1, 128, ["f2", "f2", "f4", 64, 64, 64], 0),
    "corpus/reduce": ("reduce", 1, 64, ["f4", "f4", N], 0),
    "corpus/diverge": ("collatz", 1, 64, ["u8", "i4", N, 20], 0),
    "corpus/hist": ("hist", 2, 64, ["u1", "u4", N], 0),
    "corpus/add_sm80": ("add", 1, 128, ["f4", "f4", "f4", N, 0, 0], 0),
    "corpus/softmax_sm80": ("softmax", 1, 128, ["f4", "f4", 32, 32, 2, 32, 0, 0], 4112),
    "corpus/softmax_sm90": ("softmax", 1, 128, ["f4", "f4", 32, 32, 2, 32, 0, 0], 4112),
    "corpus/matmul_sm80": ("matmul", 1, 128, ["f2", "f2", "f2", 64, 64, 64, 64, 64, 64, 0, 0], 24576),
    "corpus/layernorm_sm80": ("layernorm", 1, 128, ["f2", "f2", "f4", "f4", "f4", "f4", N, N, 1e-5, 0, 0], 16),
    "corpus/layernorm_sm90": ("layernorm", 1, 128, ["f2", "f2", "f4", "f4", "f4", "f4", N, N, 1e-5, 0, 0], 16),
    "nvcc/wmma": ("wmma_f16", 1, 32, ["f2", "f2", "f4", 16, 16, 64], 0),
    "nvcc/wide": ("wide", 1, 64, ["u8", "u8", "u8", N], 0),
    "nvcc/barrier": ("bulk", 1, 64, ["i4", "i4", "i4", 4], 0),
    "nvcc/hopper": ("v", 1, 32, ["f4", "f4", "f4"], 0),
    "nvcc/attention": ("attention", 1, 128, ["f2", "f2", "f2", "f4", "f4", 256], 71680),
}  # fmt: skip


def run_whatever(text, name):
    """Loads and launches a text; True if it ran to its end."""
    kernel_name, grid, block, arguments, dynamic_smem = LAUNCHES[name]
    simulator = Simulator(budget=3000)
    try:
        kernel = simulator.load(text, "fuzz.ptx").get(kernel_name)
        if kernel is None:
            return False
        args = [
            simulator.alloc(np.ones(1 << 15, a)) if isinstance(a, str) else a for a in arguments
        ]
        kernel.launch(grid, block, args[: len(kernel.params)], dynamic_smem=dynamic_smem)
    except PtxError as error:
        if error.line < 1 or not str(error).startswith(f"fuzz.ptx:{error.line}: error: "):
            raise AssertionError("not located") from error
    except LaunchError:
        return False
    except SimulatorError as error:
        if error.line is None:
            raise AssertionError("not located") from error
    else:
        return True
    return False


def mutate(text, rng):
    kind = rng.randrange(7)
    tokens = text.split(" ")
    if kind == 0:
        return text[: rng.randrange(len(text))]
    at, other = rng.randrange(len(text)), rng.randrange(len(tokens))
    if kind == 1:
        return (
            text[:at] + rng.choice(";,.{}[]()<>@!|%0123456789abcdefx-+\"'\\\0é ") + text[at + 1 :]
        )
    if kind == 2:
        return text[:at] + text[at + rng.randrange(1, 30) :]
    if kind == 3:
        tokens[other] = tokens[rng.randrange(len(tokens))]
        return " ".join(tokens)
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind == 4:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 5:
        del lines[i]
    else:
        lines[i] = (
            lines[i]
            .replace("b32", rng.choice(["b64", "f32", "u16", "pred"]))
            .replace("1", rng.choice("029"))
        )
    return "\n".join(lines)


def fuzz(name, seconds):
    text = (HERE / f"{name}.ptx").read_text()
    assert run_whatever(text, name)
    stop, number = time.monotonic() + seconds, 0
    while time.monotonic() < stop:
        rng = random.Random(f"{name} {number}")
        mutant = text
        for _ in range(rng.randrange(1, 4)):
            mutant = mutate(mutant, rng) or " "
        try:
            run_whatever(mutant, name)
        except Exception as error:
            raise AssertionError(f"mutant {number} of {name}") from error
        number += 1


@pytest.mark.parametrize("name", LAUNCHES)
def test_mutants(name):
    fuzz(name, 20 / len(LAUNCHES))


@pytest.mark.slow
@pytest.mark.parametrize("name", LAUNCHES)
def test_many_mutants(name):
    fuzz(name, 300 / len(LAUNCHES))
