"""The program of a bundle against the evaluation of its MLIR text, and against the operator table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from prism.cli.environment import make_context
from prism.cli.pack import reduction_lengths, workload_program
from prism.dialects.operators import OPERATORS
from prism.runtime.program import Instruction, Program
from prism.runtime.reference import MEANINGS, NoReferenceError, NumpyArrays, evaluate
from prism.tune.bindings import symbols_of
from prism.verify.evaluate import evaluate_function, shape_at

EXAMPLES = Path(__file__).parents[3] / "examples"
SIZE = 8
"""Of every symbol: sizes are also divided by 2 and 4."""

OPERATORS_TEXT = """
!t = tensor<?x?x?xf32, #sym.shape<[b, n, d]>>
!row = tensor<1x1x?xf32, #sym.shape<[1, 1, d]>>
func.func @all(%x: !t, %w: !row, %y: !t)
    -> (!t, !t, !t, !t, tensor<?x?x?xf32, #sym.shape<[d, n, b]>>,
        tensor<?x?x?xf32, #sym.shape<[b, n, d / 2]>>, tensor<?x?x?xf32, #sym.shape<[b, n, 2 * d]>>,
        tensor<?x?xf32, #sym.shape<[b, n * d]>>, !t, !t, !t) {
  %gelu = kernel.gelu %x : (!t) -> !t
  %gelu_tanh = kernel.gelu_tanh %x : (!t) -> !t
  %square = kernel.square %x : (!t) -> !t
  %pow = kernel.pow %square by <3/2> : (!t) -> !t
  %least = kernel.at_least %x by <1/4> : (!t) -> !t
  %most = kernel.at_most %least by <1/2> : (!t) -> !t
  %scaled = kernel.scale %most by <1 / d> : (!t) -> !t
  %transposed = kernel.transpose %x perm [2, 1, 0] : (!t) -> tensor<?x?x?xf32, #sym.shape<[d, n, b]>>
  %slice = kernel.slice %x dim 2 from <d / 4> to <3 * d / 4> : (!t) -> tensor<?x?x?xf32, #sym.shape<[b, n, d / 2]>>
  %concat = kernel.concat %x, %y dim 2 : (!t, !t) -> tensor<?x?x?xf32, #sym.shape<[b, n, 2 * d]>>
  %wide = kernel.broadcast %w shape [b, n, d] : (!row) -> !t
  %product = kernel.mul %wide, %x : (!t, !t) -> !t
  %flat = kernel.reshape %product shape [b, n * d] : (!t) -> tensor<?x?xf32, #sym.shape<[b, n * d]>>
  %softmax = kernel.softmax %x dim 1 : (!t) -> !t
  %log = kernel.log_softmax %y dim 2 : (!t) -> !t
  %layer = kernel.layer_norm %x, %w, %w eps <1.0e-5> : (!t, !row, !row) -> !t
  func.return %gelu, %gelu_tanh, %pow, %scaled, %transposed, %slice, %concat, %flat, %softmax, %log,
    %layer : !t, !t, !t, !t, tensor<?x?x?xf32, #sym.shape<[d, n, b]>>,
    tensor<?x?x?xf32, #sym.shape<[b, n, d / 2]>>, tensor<?x?x?xf32, #sym.shape<[b, n, 2 * d]>>,
    tensor<?x?xf32, #sym.shape<[b, n * d]>>, !t, !t, !t
}
"""


def check(text: str) -> None:
    module = Parser(make_context(), text).parse_module()
    (workload,) = (op for op in module.ops if isinstance(op, FuncOp))
    workload.verify()
    sizes = dict.fromkeys(symbols_of(workload), SIZE)
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(shape_at(value, sizes)) for value in workload.args]
    expected = evaluate_function(workload, inputs, sizes)
    found = evaluate(workload_program(workload, sizes), inputs, NumpyArrays())
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.mlir")), ids=lambda path: path.stem)
def test_examples(path: Path):
    check(path.read_text())


def test_operators_with_attributes():
    check(OPERATORS_TEXT)


def test_reduction_lengths():
    module = Parser(make_context(), OPERATORS_TEXT).parse_module()
    (workload,) = (op for op in module.ops if isinstance(op, FuncOp))
    lengths = reduction_lengths(workload, {"b": 2, "n": 3, "d": 8})
    # only softmax over n, log_softmax over d and layer_norm over the last dim sum anything
    assert lengths == [1, 1, 1, 1, 1, 1, 1, 1, 3, 8, 8]


def test_every_operator_has_a_meaning():
    assert sorted(set(OPERATORS) - set(MEANINGS)) == []


def test_unknown_operators_and_missing_attributes():
    instruction = Instruction("sum", (0,), (2, 1), "f32", None, (), None)
    x = np.ones((2, 3))
    for broken, message in (
        (instruction, "operator 'sum' without its dim"),
        (replace(instruction, operator="scale"), "operator 'scale' without its constant"),
        (replace(instruction, operator="transpose"), "without its permutation"),
        (replace(instruction, operator="fft"), "no reference for operator 'fft'"),
    ):
        with pytest.raises(NoReferenceError, match=message):
            evaluate(Program((broken,), (1,)), [x], NumpyArrays())


def test_an_override_replaces_a_meaning():
    program = Program((Instruction("exp", (0,), (2,), "f32", None, (), None),), (1,))
    (found,) = evaluate(program, [np.ones(2)], NumpyArrays(), {"exp": lambda lib, a, i: a[0] * 7})
    np.testing.assert_array_equal(found, [7, 7])
