"""Random small workloads: what the enumerative engine finds computes what the workload does."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from prism.search.enumerative.engine import enumerate_graphs
from prism.search.enumerative.problem import Bounds
from prism.search.from_ir import read_workload, workload_funcs
from prism.search.to_ir import concrete_candidate
from prism.verify.evaluate import evaluate_candidate, evaluate_function

SIZES = {"n": 4, "k": 6, "m": 2}
INPUTS = {"x": ("n", "k"), "y": ("n", "k"), "w": ("k", "m"), "c": ("n", "1")}
UNARY = ("neg", "exp", "square", "relu")
BINARY = ("add", "sub", "mul", "div")


def type_of(shape: tuple[str, str]) -> str:
    static = "x".join(size if size == "1" else "?" for size in shape)
    return f"tensor<{static}xf32, #sym.shape<[{', '.join(shape)}]>>"


def broadcast(left: tuple[str, str], right: tuple[str, str]) -> tuple[str, str] | None:
    if any(a != b and "1" not in (a, b) for a, b in zip(left, right, strict=True)):
        return None
    return tuple(b if a == "1" else a for a, b in zip(left, right, strict=True))


@st.composite
def workloads(draw) -> str:
    """A function of one to four operators, each on any values before it that fit."""
    shapes = dict(INPUTS)
    lines = []
    for index in range(draw(st.integers(1, 4))):
        # Most operators take what was computed last, so that little of the function is dead.
        recent = [f"v{index - 1}"] if index else list(INPUTS)
        left = draw(st.sampled_from(recent))
        kind = draw(st.sampled_from(("unary", "binary", "matmul", "sum", "scale")))
        a = shapes[left]
        if kind == "unary":
            name, operands, shape, tail = draw(st.sampled_from(UNARY)), [left], a, ""
        elif kind == "sum":
            dim = draw(st.integers(0, 1))
            shape = (a[0], "1") if dim else ("1", a[1])
            name, operands, tail = "sum", [left], f" dim {dim}"
        elif kind == "scale":
            name, operands, shape, tail = "scale", [left], a, " by <1 / k>"
        else:
            right = draw(st.sampled_from(list(shapes)))
            b = shapes[right]
            operands, tail = [left, right], ""
            name = "matmul" if kind == "matmul" else draw(st.sampled_from(BINARY))
            if kind == "matmul":
                shape = (a[0], b[1]) if a[1] == b[0] else None
            else:
                shape = broadcast(a, b)
        assume(shape is not None)
        types = ", ".join(type_of(shapes[o]) for o in operands)
        names = ", ".join(f"%{o}" for o in operands)
        lines.append(f"  %v{index} = kernel.{name} {names}{tail} : ({types}) -> {type_of(shape)}")
        shapes[f"v{index}"] = shape
    arguments = ", ".join(f"%{name}: {type_of(shape)}" for name, shape in INPUTS.items())
    last = f"v{len(lines) - 1}"
    return "\n".join(
        [
            f"func.func @random({arguments}) -> {type_of(shapes[last])} {{",
            *lines,
            f"  func.return %{last} : {type_of(shapes[last])}",
            "}",
        ]
    )


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(workloads())
def test_every_graph_computes_its_workload(parse, text):
    module = parse(text)
    (func,) = workload_funcs(module)
    found = enumerate_graphs(read_workload(func), bounds=Bounds(operators=7, seconds=2.0))
    assert found.graphs or not found.complete
    random = np.random.default_rng(0)
    inputs = [
        random.uniform(0.5, 1.5, [SIZES.get(size, 1) for size in shape])
        for shape in INPUTS.values()
    ]
    (expected,) = evaluate_function(func, inputs, SIZES)
    for one in found.graphs[:12]:
        for maps in one.maps[-3:]:
            candidate = concrete_candidate("candidate", func, one.graph, maps)
            candidate.verify()
            counts = dict.fromkeys(("x", "y", "z", "i"), 2)
            (result,) = evaluate_candidate(candidate, inputs, SIZES, counts)
            np.testing.assert_allclose(result, expected, rtol=1e-9, err_msg=text)
