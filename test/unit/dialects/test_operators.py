"""The operators of the table: exact values, expansions, shapes that are refused."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from prism.dialects.expansions import EXPANSIONS, expand
from prism.dialects.operators import OPERATORS, Attributes
from prism.dialects.shapes import Shape, is_nonnegative, kept_dims, result_shape
from prism.dialects.sym_expr import SymExpr
from prism.verify.evaluate import evaluate_function
from prism.verify.operator_values import OPERATOR_VALUES, Values

C = SymExpr.constant
N, D, H = (SymExpr.symbol(name) for name in ("n", "d", "h"))
NAN = math.nan
X23 = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]


def test_every_operator_has_a_value_and_only_composites_expand() -> None:
    assert set(OPERATOR_VALUES) == set(OPERATORS)
    assert {name for name, op in OPERATORS.items() if not op.threadblock} == set(EXPANSIONS)
    assert all(op.flops >= 0 for op in OPERATORS.values())


@pytest.mark.parametrize(
    ("text", "operand", "expected"),
    [
        ("gelu %x : (2x3) -> 2x3", [[0, 1, -1], [2, -2, 9]],
         [[0, 0.8413447460685429, -0.15865525393145707],
          [1.9544997361036416, -0.04550026389635842, 9]]),
        ("gelu_tanh %x : (2x3) -> 2x3", [[0, 1, -1], [2, -2, 9]],
         [[0, 0.8411919906082768, -0.15880800939172324],
          [1.954597694087775, -0.045402305912225, 9]]),
        ("pow %x by <3 / 2> : (2x3) -> 2x3", [[0, 1, 4], [9, -4, 2.25]],
         [[0, 1, 8], [27, NAN, 3.375]]),
        ("at_least %x by <2> : (2x3) -> 2x3", X23, [[2, 2, 3], [4, 5, 2]]),
        ("at_most %x by <2> : (2x3) -> 2x3", X23, [[1, -2, 2], [2, 2, -6]]),
        ("clamp %x from <-1> to <3> : (2x3) -> 2x3", X23, [[1, -1, 3], [3, 3, -1]]),
        ("max %x dim 0 : (2x3) -> 1x3", X23, [[4, 5, 3]]),
        ("max %x dim 1 : (2x3) -> 2x1", X23, [[3], [5]]),
        ("transpose %x perm [1, 0] : (2x3) -> 3x2", X23, [[1, 4], [-2, 5], [3, -6]]),
        ("slice %x dim 1 from <1> to <3> : (2x3) -> 2x2", X23, [[-2, 3], [5, -6]]),
        ("slice %x dim 0 from <1> to <2> : (2x3) -> 1x3", X23, [[4, 5, -6]]),
        ("concat %x, %x dim 0 : (2x3, 2x3) -> 4x3", X23, X23 + X23),
        ("concat %x, %x, %x dim 1 : (2x3, 2x3, 2x3) -> 2x9", X23, [r * 3 for r in X23]),
        ("reshape %x shape [3, 2] : (2x3) -> 3x2", X23, [[1, -2], [3, 4], [5, -6]]),
        ("reshape %x shape [2, 3, 1] : (2x3) -> 2x3x1", X23, [[[a] for a in r] for r in X23]),
        ("cast %x : (2x3) -> 2x3", X23, X23),
        ("softmax %x dim 1 : (2x3) -> 2x3", [[0, 0, math.log(2)], [-math.inf, 5, 5]],
         [[0.25, 0.25, 0.5], [0, 0.5, 0.5]]),
        ("softmax %x dim 0 : (2x3) -> 2x3", [[0, 1, math.log(3)], [0, 1, 0]],
         [[0.5, 0.5, 0.75], [0.5, 0.5, 0.25]]),
        ("log_softmax %x dim 1 : (2x3) -> 2x3", [[0, 0, math.log(2)], [1000, 0, -1000]],
         [[math.log(0.25), math.log(0.25), math.log(0.5)], [0, -1000, -2000]]),
    ],
)  # fmt: skip
def test_values(functions, text: str, operand, expected) -> None:
    operands, _, result = text.rpartition("->")
    text = operands.replace("(2x3", "(tensor<2x3xf16>").replace(" 2x3", " tensor<2x3xf16>")
    text = text.replace("shape [tensor<2x3xf16>", "shape [2, 3")
    result = f"tensor<{result.strip()}x{'f32' if 'cast' in text else 'f16'}>"
    source = f"""func.func @f(%x: tensor<2x3xf16>) -> {result} {{
      %r = kernel.{text} -> {result}
      func.return %r : {result}
    }}"""
    (found,) = evaluate_function(functions(source)["f"], [np.array(operand, dtype=float)], {})
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-13, atol=1e-300)


def test_broadcast_and_layer_norm(functions) -> None:
    source = """
    !x = tensor<?x2xf32, #sym.shape<[n, 2]>>
    !r = tensor<1x2xf32>
    func.func @f(%x: !x, %w: !r, %b: !r) -> (!x, !x) {
      %r = kernel.broadcast %w shape [n, 2] : (!r) -> !x
      %l = kernel.layer_norm %x, %w, %b eps <3> : (!x, !r, !r) -> !x
      func.return %r, %l : !x, !x
    }"""
    x, w, b = np.array([[1.0, 3.0], [5.0, 5.0]]), np.array([[4.0, 6.0]]), np.array([[0.5, 1.0]])
    first, second = evaluate_function(functions(source)["f"], [x, w, b], {"n": 2})
    np.testing.assert_array_equal(first, [[4, 6], [4, 6]])
    # mean 2, variance 1, root of 1 + 3
    np.testing.assert_allclose(second, [[-0.5 * 4 + 0.5, 0.5 * 6 + 1], [0.5, 1.0]], rtol=1e-15)


class Numbers:
    """A builder whose terms are arrays."""

    def apply(
        self, name: str, operands: Sequence[np.ndarray], attributes: Attributes
    ) -> np.ndarray:
        constant = attributes.constant
        values = Values(
            dim=attributes.dim or 0,
            constant=0.0 if constant is None else float(constant.evaluate({})),
        )
        return OPERATOR_VALUES[name](operands, values)

    def shape(self, value: np.ndarray) -> Shape:
        return tuple(C(size) for size in value.shape)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("mean", Attributes(dim=0)),
        ("mean", Attributes(dim=1)),
        ("cast", Attributes()),
        ("clamp", Attributes(bounds=(C(-1) / 2, C(1) / 3))),
        ("softmax", Attributes(dim=1)),
        ("softmax", Attributes(dim=0)),
        ("log_softmax", Attributes(dim=1)),
        ("rms_norm", Attributes(constant=C(1) / 1000)),
        ("rms_norm", Attributes(constant=C(0))),
        ("layer_norm", Attributes(constant=C(1) / 10)),
    ],
)
def test_an_expansion_has_the_value_of_its_operator(name: str, attributes: Attributes) -> None:
    random = np.random.default_rng(1)
    operands = [random.standard_normal((3, 4))]
    operands += [random.standard_normal((1, 4)) for _ in range(2 * (name == "layer_norm"))]
    values = Values(
        dim=attributes.dim or 0,
        constant=float((attributes.constant or C(0)).evaluate({})),
        bounds=(-0.5, 1 / 3),
    )
    expected = OPERATOR_VALUES[name](operands, values)
    np.testing.assert_allclose(expand(Numbers(), name, operands, attributes), expected, rtol=1e-12)


def test_what_is_no_composite_expands_to_itself() -> None:
    class Names:
        def apply(self, name: str, operands: Sequence[str], attributes: Attributes) -> str:
            return f"{name}({', '.join(operands)})"

        def shape(self, value: str) -> Shape:
            return ()

    assert expand(Names(), "add", ["a", "b"], Attributes()) == "add(a, b)"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (C(0), True), (C(-1), False), (D / 2, True), (D - 1, True), (D - 2, False), (D - N, False),
        (N * D - 1, True), (N * D - N, True), (N / D - 1, False), (D * 2 - D, True), (D * D - D, True),
    ],
)  # fmt: skip
def test_nonnegative_for_all_sizes(expression: SymExpr, expected: bool) -> None:
    assert is_nonnegative(expression) is expected


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ((N, D * H), (N, H, D), {0: 0}),
        ((N, H, D), (N, H * D), {0: 0}),
        ((N, H, D), (N * H, D), {2: 1}),
        ((C(1), N, D), (N, D), {1: 0, 2: 1}),
        ((N, D), (N, C(1), D), {0: 0, 1: 2}),
        ((N, D), (D, N), {}),
        ((N, N), (N, N), {0: 0, 1: 1}),
        ((N, D, D), (N * D, D), {2: 1}),
        ((C(4), C(6)), (C(4), C(2), C(3)), {0: 0}),
    ],
)
def test_the_dims_that_a_reshape_keeps(source: Shape, target: Shape, kept: dict[int, int]) -> None:
    assert kept_dims(source, target) == kept


@pytest.mark.parametrize(
    ("name", "operands", "attributes", "message"),
    [
        ("slice", [(N, D)], Attributes(dim=1, bounds=(C(0), D + 1)), "bounds: expected a part"),
        ("slice", [(N, D)], Attributes(dim=1, bounds=(C(-1), D)), "bounds: expected a part"),
        ("slice", [(N, D)], Attributes(dim=1, bounds=(D / 2, D / 2)), "bounds: expected a part"),
        ("slice", [(N, D)], Attributes(dim=1, bounds=(C(0), N)), "bounds: expected a part"),
        ("slice", [(N, D)], Attributes(dim=2, bounds=(C(0), D)), "dim: expected one of"),
        ("concat", [(N, D), (H, D)], Attributes(dim=1), "operand input1: expected the sizes"),
        ("concat", [(N, D), (N, D, D)], Attributes(dim=1), "operand input1: expected rank 2"),
        ("reshape", [(N, D)], Attributes(shape=(N, H)), "shape: expected d . n elements"),
        ("broadcast", [(N, C(1))], Attributes(shape=(C(1), D)), "shape: expected the sizes"),
        ("broadcast", [(N, C(1))], Attributes(shape=(N, D, D)), "shape: expected the sizes"),
        ("transpose", [(N, D)], Attributes(permutation=(0, 0)), "perm: expected each"),
        ("transpose", [(N, D)], Attributes(permutation=(0,)), "perm: expected each"),
        ("layer_norm", [(N, D), (N, H), (C(1), D)], Attributes(constant=C(0)), "operand weight"),
        ("layer_norm", [(C(1), D), (C(1), D), (N, D)], Attributes(constant=C(0)), "operand bias"),
        ("max", [(N, D)], Attributes(), "dim: expected one of"),
        ("slice", [(N, D)], Attributes(dim=1), "bounds: expected a value"),
    ],
)
def test_refused_shapes(
    name: str, operands: list[Shape], attributes: Attributes, message: str
) -> None:
    with pytest.raises(VerifyException, match=message):
        result_shape(OPERATORS[name], operands, attributes)


def test_shapes() -> None:
    shape = result_shape(OPERATORS["slice"], [(N, D)], Attributes(dim=1, bounds=(D / 4, D / 2)))
    assert shape == (N, D / 4)
    shape = result_shape(OPERATORS["concat"], [(N, D), (N, C(1)), (N, H)], Attributes(dim=1))
    assert shape == (N, D + H + 1)
    permuted = result_shape(OPERATORS["transpose"], [(N, D, H)], Attributes(permutation=(2, 0, 1)))
    assert permuted == (H, N, D)
