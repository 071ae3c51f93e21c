"""Graphs with maxima, rescaled sums and new dims: what they compute, tile by tile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from prism.verify.evaluate import EvaluationError, evaluate_candidate, evaluate_function, shape_at

GRAPHS = Path(__file__).parents[2] / "dialects"

SOFT_PRODUCT = """
!x = tensor<?x?xf32, #sym.shape<[n, h]>>
!v = tensor<?x?xf32, #sym.shape<[h, m]>>
!o = tensor<?x?xf32, #sym.shape<[n, m]>>
!xt = !threadblock.tile<[n, h / loop.i], f32>
!vt = !threadblock.tile<[h / loop.i, m], f32>
!sh = !threadblock.tile<[n, h / loop.i], f32, shift [i]>
!et = !threadblock.tile<[n, h / loop.i], f32, scaled [i]>
!mt = !threadblock.tile<[n, 1], f32, partial_max [i]>
!lt = !threadblock.tile<[n, 1], f32, partial_exp [i]>
!pt = !threadblock.tile<[n, m], f32, partial_exp [i]>
!rt = !threadblock.tile<[n, 1], f32>
!ot = !threadblock.tile<[n, m], f32>

func.func @w(%x: !x, %v: !v) -> !o {
  %p = kernel.softmax %x dim 1 : (!x) -> !x
  %o = kernel.matmul %p, %v : (!x, !v) -> !o
  func.return %o : !o
}
func.func @g(%x: !x, %v: !v) -> !o {
  %o = kernel.graph_def grid [] loop [i] (%xg = %x : !x, %vg = %v : !v) -> !o {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %vt = threadblock.input %vg imap {} fmap {i = 0} : !v -> !vt
    %m = threadblock.max %xt dim 1 : (!xt) -> !mt
    %d = threadblock.sub %xt, %m : (!xt, !mt) -> !sh
    %e = threadblock.exp %d : (!sh) -> !et
    %l = threadblock.sum %e dim 1 : (!et) -> !lt
    %p = threadblock.matmul %e, %vt : (!et, !vt) -> !pt
    %la = threadblock.accum %l over i rescaled %m : !lt, !mt -> !rt
    %pa = threadblock.accum %p over i rescaled %m : !pt, !mt -> !ot
    %r = threadblock.div %pa, %la : (!ot, !rt) -> !ot
    %w = threadblock.output %r omap {} : !ot -> !o
    threadblock.yield %w : !o
  }
  func.return %o : !o
}
"""


def inputs_of(function: FuncOp, sizes: dict[str, int], seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape_at(a, sizes)) for a in function.body.block.args]


@pytest.mark.parametrize(
    ("file", "workload", "sizes", "counts"),
    [
        ("stable_attention", "gqa_decode", {"b": 3, "g": 2, "h": 12}, {"x": 3, "i": 4}),
        ("stable_attention", "gqa_decode", {"b": 3, "g": 2, "h": 7}, {"x": 2, "i": 3}),
        ("stable_attention", "gqa_decode", {"b": 1, "g": 2, "h": 3}, {"x": 1, "i": 1}),
        ("split_kv", "gqa_decode", {"b": 2, "g": 5, "h": 12}, {"x": 2, "y": 3, "i": 2}),
        ("split_kv", "gqa_decode", {"b": 3, "g": 1, "h": 13}, {"x": 2, "y": 2, "i": 3}),
        # the last block of y has no keys: what it leaves counts nothing
        ("split_kv", "gqa_decode", {"b": 1, "g": 2, "h": 3}, {"x": 1, "y": 4, "i": 1}),
        ("split_k", "matmul", {"n": 3, "k": 12, "m": 4}, {"x": 2, "y": 3, "i": 2}),
        ("split_k", "matmul", {"n": 3, "k": 7, "m": 5}, {"x": 2, "y": 4, "i": 3}),
    ],
)
def test_the_graph_computes_its_workload(
    functions, example, file: str, workload: str, sizes: dict[str, int], counts: dict[str, int]
) -> None:
    (graph,) = functions((GRAPHS / f"{file}.mlir").read_text()).values()
    inputs = inputs_of(graph, sizes)
    (found,) = evaluate_candidate(graph, inputs, sizes, counts)
    (expected,) = evaluate_function(example(workload), inputs, sizes)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
def test_masked_keys_and_rows(functions, count: int) -> None:
    sizes = {"n": 4, "h": 6, "m": 3}
    found = functions(SOFT_PRODUCT)
    x, v = inputs_of(found["w"], sizes)
    x[1, :4] = -np.inf  # the first iterations see nothing of row 1
    x[2, 3:] = -np.inf  # the last ones nothing of row 2
    x[3, :] = -np.inf
    (expected,) = evaluate_function(found["w"], [x, v], sizes)
    (tiles,) = evaluate_candidate(found["g"], [x, v], sizes, {"i": count})
    assert np.isfinite(expected[:3]).all()
    assert np.isnan(expected[3]).all()
    np.testing.assert_allclose(tiles, expected, rtol=1e-12)


def test_large_scores_do_not_overflow(functions) -> None:
    sizes = {"n": 1, "h": 4, "m": 1}
    x, v = np.array([[1000.0, 2000.0, 2000.0, -1000.0]]), np.array([[1.0], [2.0], [4.0], [8.0]])
    (found,) = evaluate_candidate(functions(SOFT_PRODUCT)["g"], [x, v], sizes, {"i": 4})
    np.testing.assert_array_equal(found, [[3.0]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # the correction is by the same maximum, not by one that only has its type
        ("%pa = threadblock.accum %p over i rescaled %m",
         "%m2 = threadblock.relu %m : (!mt) -> !mt\n"
         "    %pa = threadblock.accum %p over i rescaled %m2",
         "corrected by one maximum over axis i"),
        ("%e = threadblock.exp %d : (!sh) -> !et",
         "%m2 = threadblock.relu %m : (!mt) -> !mt\n"
         "    %d2 = threadblock.sub %xt, %m2 : (!xt, !mt) -> !sh\n"
         "    %e0 = threadblock.exp %d : (!sh) -> !et\n"
         "    %e1 = threadblock.exp %d2 : (!sh) -> !et\n"
         "    %e = threadblock.add %e0, %e1 : (!et, !et) -> !et",
         "corrected by one maximum over axis i"),
        ("accum %l over i rescaled %m : !lt, !mt", "accum %l over i : !lt",
         "expected layout partial on axis i, found partial_exp"),
        ("accum %l over i rescaled %m : !lt, !mt", "accum %l over i kind max : !lt",
         "expected layout partial_max on axis i, found partial_exp"),
        ("accum %l over i rescaled %m : !lt, !mt", "accum %m over i rescaled %m : !mt, !mt",
         "expected layout partial_exp on axis i, found partial_max"),
        ("accum %l over i rescaled %m : !lt, !mt", "accum %l over i rescaled %l : !lt, !lt",
         "expected a maximum that fits layout partial_exp of the tile on axis i"),
        ("accum %l over i rescaled %m : !lt, !mt", "accum %l over i kind min : !lt",
         "kind: expected sum, max or rescaled, found min"),
        ("accum %l over i rescaled %m : !lt, !mt", "accum %l over i kind rescaled : !lt",
         "expected a maximum"),
        ("!et = !threadblock.tile<[n, h / loop.i], f32, scaled [i]>",
         "!et = !threadblock.tile<[n, h / loop.i], f32>",
         r"expected layout scaled\(1\) on axis i, found shard\(1\)"),
        ("!sh = !threadblock.tile<[n, h / loop.i], f32, shift [i]>",
         "!sh = !threadblock.tile<[n, h], f32, shift [i]>",
         "axis i: expected a cut for shift, found none"),
        ("!mt = !threadblock.tile<[n, 1], f32, partial_max [i]>",
         "!mt = !threadblock.tile<[n, 1], f32, partial [i]>",
         "expected layout partial_max on axis i, found partial"),
    ],
)  # fmt: skip
def test_refused_corrections(functions, old: str, new: str, message: str) -> None:
    assert old in SOFT_PRODUCT
    with pytest.raises(VerifyException, match=message):
        functions(SOFT_PRODUCT.replace(old, new))


SPLIT = (GRAPHS / "split_k.mlir").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("omap {y = new, x = 1}", "omap {x = 1}", "expected tiles of"),
        ("omap {y = new, x = 1}", "omap {x = new, y = 1}",
         "expected layout partial, partial_max, partial_exp on axis x for a new dim"),
        ("omap {y = new, x = 1}", "omap {z = new, x = 1}", "expected a grid axis of"),
        ("omap {y = new, x = 1}", "omap {i = new, x = 1}", "expected a grid axis of"),
        ("[split.y, n, m]", "[n, n, m]", r"expected a leading size that is a parameter split\."),
        ("imap {y = 1}", "imap {y = new}", "imap: expected dims of the tensor, found a new dim"),
    ],
)  # fmt: skip
def test_refused_new_dims(functions, old: str, new: str, message: str) -> None:
    assert old in SPLIT
    with pytest.raises(VerifyException, match=message):
        functions(SPLIT.replace(old, new))


def test_a_split_size_of_two_counts_is_an_error(functions) -> None:
    (graph,) = functions(SPLIT).values()
    sizes = {"n": 2, "k": 4, "m": 2, "split.y": 3}
    with pytest.raises(EvaluationError, match=r"the size split\.y is that of several axes"):
        evaluate_candidate(graph, inputs_of(graph, sizes), sizes, {"x": 1, "y": 2, "i": 1})


def test_a_size_that_is_no_integer_is_an_error(functions) -> None:
    text = """func.func @f(%x: tensor<?xf32, #sym.shape<[d]>>) -> tensor<?xf32, #sym.shape<[d / 2]>> {
      %r = kernel.slice %x dim 0 from <0> to <d / 2> : (tensor<?xf32, #sym.shape<[d]>>) -> tensor<?xf32, #sym.shape<[d / 2]>>
      func.return %r : tensor<?xf32, #sym.shape<[d / 2]>>
    }"""
    function = functions(text)["f"]
    (found,) = evaluate_function(function, [np.arange(6.0)], {"d": 6})
    np.testing.assert_array_equal(found, [0, 1, 2])
    with pytest.raises(EvaluationError, match="expected an integer"):
        evaluate_function(function, [np.arange(5.0)], {"d": 5})
