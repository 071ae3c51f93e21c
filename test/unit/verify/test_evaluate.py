"""The reference interpreter on exact values."""

import numpy as np
import pytest

from prism.verify.evaluate import (
    EvaluationError,
    chunk,
    evaluate_candidate,
    evaluate_function,
    shape_at,
)

GRAPH = """
!xt = !threadblock.tile<[n, d / loop.i], f16>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!ot = !threadblock.tile<[n, d / grid.x], f32>

func.func @g(%x: !x, %w: !w) -> !x {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %r = threadblock.output %a omap {x = 1} : !ot -> !x
    threadblock.yield %r : !x
  }
  func.return %o : !x
}
"""

OPERATORS = {
    "neg": lambda x: -x,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: x**-0.5,
    "square": lambda x: x**2,
    "reciprocal": lambda x: x**-1.0,
    "sigmoid": lambda x: np.exp(x) / (1 + np.exp(x)),
    "silu": lambda x: x * np.exp(x) / (1 + np.exp(x)),
    "relu": lambda x: (x + np.abs(x)) / 2,
    "tanh": lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_unary_operators(functions, name: str) -> None:
    text = (
        f"func.func @f(%x: !x) -> !x {{ %r = kernel.{name} %x : (!x) -> !x func.return %r : !x }}"
    )
    x = (
        np.array([[-1.5, 0.25, 2.0]])
        if name not in ("log", "sqrt", "rsqrt")
        else np.array([[0.25, 1.0, 4.0]])
    )
    (found,) = evaluate_function(functions(text)["f"], [x], {"n": 1, "d": 3})
    np.testing.assert_allclose(found, OPERATORS[name](x), rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", [[11, 12], [23, 24]]),
        ("sub", [[-9, -8], [-17, -16]]),
        ("mul", [[10, 20], [60, 80]]),
        ("div", [[0.1, 0.2], [0.15, 0.2]]),
        ("maximum", [[10, 10], [20, 20]]),
    ],
)
def test_binary_operators_broadcast(functions, name: str, expected: list[list[float]]) -> None:
    text = f"""func.func @f(%x: !x, %s: !s) -> !x {{
      %r = kernel.{name} %x, %s : (!x, !s) -> !x
      func.return %r : !x
    }}"""
    inputs = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[10.0], [20.0]])]
    (found,) = evaluate_function(functions(text)["f"], inputs, {"n": 2, "d": 2})
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_constants_and_reductions(functions) -> None:
    text = """func.func @f(%x: !x) -> (!x, !x, !s, !s, !x) {
      %a = kernel.scale %x by <1 / d> : (!x) -> !x
      %b = kernel.shift %x by <n + 1> : (!x) -> !x
      %c = kernel.sum %x dim 1 : (!x) -> !s
      %e = kernel.mean %x dim 1 : (!x) -> !s
      %g = kernel.rms_norm %x eps <1/2> : (!x) -> !x
      func.return %a, %b, %c, %e, %g : !x, !x, !s, !s, !x
    }"""
    x = np.array([[1.0, 3.0]])
    a, b, c, e, g = evaluate_function(functions(text)["f"], [x], {"n": 1, "d": 2})
    np.testing.assert_array_equal(a, [[0.5, 1.5]])
    np.testing.assert_array_equal(b, [[3.0, 5.0]])
    np.testing.assert_array_equal(c, [[4.0]])
    np.testing.assert_array_equal(e, [[2.0]])
    np.testing.assert_allclose(g, x / np.sqrt(5.5), rtol=1e-15)


def test_float16_inputs_are_computed_in_float64(functions) -> None:
    text = "func.func @f(%x: !x) -> !x { %r = kernel.square %x : (!x) -> !x func.return %r : !x }"
    (found,) = evaluate_function(
        functions(text)["f"], [np.array([[300.0]], np.float16)], {"n": 1, "d": 1}
    )
    assert found.dtype == np.float64
    assert found[0, 0] == 90000.0


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def rms(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


REFERENCES = {
    "matmul": lambda a, b: a @ b,
    "rms_norm": lambda x, w: rms(x) @ w,
    "rms_norm_mlp": lambda x, u, g: (rms(x) @ u) * (rms(x) @ g),
    "swiglu": lambda x, g, u: (x @ g) / (1 + np.exp(-(x @ g))) * (x @ u),
    "attention": lambda q, k, v: softmax(q @ k) @ v,
    "qk_norm_attention": lambda q, k, v: softmax(rms(q) @ k) @ v,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_examples(example, name: str) -> None:
    function = example(name)
    sizes = {"n": 3, "d": 5, "k": 4, "m": 6, "b": 2, "g": 3, "h": 7}
    state = np.random.default_rng(0)
    inputs = [state.normal(size=shape_at(a, sizes)) / 4 for a in function.body.block.args]
    (found,) = evaluate_function(function, inputs, sizes)
    np.testing.assert_allclose(found, REFERENCES[name](*inputs), rtol=1e-12)


def test_chunks_are_cut_by_ceil() -> None:
    assert [chunk(10, 4, k) for k in range(4)] == [
        slice(0, 3),
        slice(3, 6),
        slice(6, 9),
        slice(9, 10),
    ]
    assert [chunk(2, 3, k) for k in range(3)] == [slice(0, 1), slice(1, 2), slice(2, 2)]


@pytest.mark.parametrize(("x", "i"), [(1, 1), (2, 2), (3, 2), (2, 4), (7, 6)])
def test_candidates_run_tile_by_tile(functions, x: int, i: int) -> None:
    state = np.random.default_rng(1)
    a, w = state.normal(size=(3, 5)), state.normal(size=(5, 5))
    (found,) = evaluate_candidate(
        functions(GRAPH)["g"], [a, w], {"n": 3, "d": 5}, {"grid.x": x, "loop.i": i}
    )
    np.testing.assert_allclose(found, a @ w, rtol=1e-12)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("accum %m over i : !op -> !ot", "exp %m : (!op) -> !ot"),
        ("imap {} fmap {i = 1}", "imap {x = 0} fmap {i = 1}"),
        ("omap {x = 1}", "omap {}"),
        ("omap {x = 1}", "omap {x = 0}"),
    ],
)
def test_wrong_graphs_compute_something_else(functions, old: str, new: str) -> None:
    graph = functions(GRAPH.replace(old, new), verify=False)["g"]
    a, w = np.ones((4, 4)), np.arange(16.0).reshape(4, 4)
    try:
        (found,) = evaluate_candidate(graph, [a, w], {"n": 4, "d": 4}, {"x": 2, "i": 2})
    except EvaluationError:
        return
    assert not np.allclose(found, a @ w)


def test_blocks_that_disagree_give_nan(functions) -> None:
    text = """func.func @g(%x: !x) -> !x {
      %o = kernel.graph_def grid [x] loop [] (%xg = %x : !x) -> !x {
        %t = threadblock.input %xg imap {x = 0} fmap {} : !x -> !threadblock.tile<[n / grid.x, d], f16>
        %s = threadblock.sum %t dim 0 : (!threadblock.tile<[n / grid.x, d], f16>) -> !threadblock.tile<[1, d], f32>
        %r = threadblock.output %s omap {} : !threadblock.tile<[1, d], f32> -> !x
        threadblock.yield %r : !x
      }
      func.return %o : !x
    }"""
    graph = functions(text, verify=False)["g"]
    (found,) = evaluate_candidate(graph, [np.array([[1.0, 5.0]])], {"n": 1, "d": 2}, {"x": 1})
    np.testing.assert_array_equal(found, [[1.0, 5.0]])
    (found,) = evaluate_candidate(graph, [np.array([[1.0, 5.0]])], {"n": 1, "d": 2}, {"x": 2})
    assert np.isnan(found).all()


def test_inputs_are_checked(functions) -> None:
    graph = functions(GRAPH)["g"]
    a, w = np.ones((3, 5)), np.ones((5, 5))
    with pytest.raises(EvaluationError, match="expected 2 inputs, found 1"):
        evaluate_function(graph, [a], {"n": 3, "d": 5})
    with pytest.raises(
        EvaluationError, match=r"input %w: expected the shape \(5, 5\), found \(3, 5\)"
    ):
        evaluate_function(graph, [a, a], {"n": 3, "d": 5})
    with pytest.raises(EvaluationError, match="the size d is not bound"):
        evaluate_function(graph, [a, w], {"n": 3})
    with pytest.raises(EvaluationError, match="axis i: expected a size"):
        evaluate_candidate(graph, [a, w], {"n": 3, "d": 5}, {"x": 1})
    with pytest.raises(EvaluationError, match="axis x: expected a size of at least 1, found 0"):
        evaluate_candidate(graph, [a, w], {"n": 3, "d": 5}, {"x": 0, "i": 1})
