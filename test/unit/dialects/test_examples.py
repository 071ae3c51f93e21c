"""Every example against a formula written down apart from the operators that it is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from prism.verify.evaluate import evaluate_function, shape_at

EXAMPLES = Path(__file__).parents[3] / "examples"

Array = np.ndarray
EXAMPLES_AT: dict[str, dict[str, int]] = {
    "add_rms_norm": {"n": 3, "d": 5},
    "attention": {"b": 2, "g": 3, "h": 5},
    "causal_attention": {"b": 2, "g": 4, "h": 4},
    "div_matmul": {"n": 3, "d": 4, "m": 5},
    "expert_matmul": {"e": 2, "n": 3, "d": 4, "m": 5},
    "fused_qkv": {"n": 2, "d": 3, "q": 4, "k": 2},
    "gated_mlp": {"n": 2, "d": 3, "f": 5},
    "geglu": {"n": 2, "d": 3, "m": 4},
    "gqa_decode": {"b": 2, "g": 7, "h": 5},
    "layer_norm_linear": {"n": 2, "d": 6, "m": 3},
    "llama_layer": {"b": 2, "d": 6, "g": 3, "k": 2, "h": 4, "f": 5},
    "log_softmax": {"n": 3, "d": 5},
    "lora": {"n": 2, "d": 5, "m": 3},
    "matmul": {"n": 2, "k": 3, "m": 4},
    "mla_decode": {"b": 2, "h": 3},
    "ngpt_residual": {"n": 3, "d": 5},
    "qk_norm_attention": {"b": 2, "g": 3, "h": 5},
    "rms_norm": {"n": 3, "d": 5},
    "rms_norm_mlp": {"n": 3, "d": 5},
    "softmax": {"n": 3, "d": 5},
    "swiglu": {"n": 3, "d": 5},
}


def rms(x: Array) -> Array:
    return np.array([row / math.sqrt(row @ row / len(row) + 1e-5) for row in x])


def silu(x: Array) -> Array:
    return x * (1 + np.tanh(x / 2)) / 2


def soft(scores: Array) -> Array:
    """Softmax of one row by the definition, without a maximum."""
    powers = [math.exp(s) for s in scores]
    return np.array(powers) / sum(powers)


def attend(q: Array, k: Array, v: Array, scale: float, mask: Array | None = None) -> Array:
    """Attention of every batch and query, one at a time; keys are rows."""
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for place in np.ndindex(q.shape[:-1]):
        *batch, row = place
        scores = scale * (k[tuple(batch)] @ q[place])
        if mask is not None:
            scores = scores + mask[0, row]
        out[place] = soft(scores) @ v[tuple(batch)]
    return out


def unit(x: Array) -> Array:
    return np.array([row / np.linalg.norm(row) for row in x])


def layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    return np.array([(r - r.mean()) / math.sqrt(r.var() + 1e-5) * gain[0] + bias[0] for r in x])


def turn(x: Array, cos: Array, sin: Array) -> Array:
    """Rotary embedding: coordinates i and i + 64 as a complex number times its angle."""
    z = x[..., :64] + 1j * x[..., 64:]
    low = z.real * cos[..., :64] - z.imag * sin[..., :64]
    high = z.imag * cos[..., 64:] + z.real * sin[..., 64:]
    return np.concatenate([low, high], axis=-1)


def llama(
    x: Array, ag: Array, wq: Array, wk: Array, wv: Array, wo: Array, cos: Array, sin: Array,
    kc: Array, vc: Array, mg: Array, gate: Array, up: Array, down: Array,
) -> list[Array]:  # fmt: skip
    b, heads, _, _ = kc.shape
    n = rms(x) * ag
    q = turn((n @ wq).reshape(b, heads, -1, 128), cos, sin)
    k_new = turn((n @ wk).reshape(b, heads, 1, 128), cos, sin)
    v_new = (n @ wv).reshape(b, heads, 1, 128)
    keys, values = np.concatenate([kc, k_new], 2), np.concatenate([vc, v_new], 2)
    h = x + attend(q, keys, values, 128**-0.5).reshape(b, -1) @ wo
    m = rms(h) * mg
    return [h + (silu(m @ gate) * (m @ up)) @ down, k_new, v_new]


def qkv(x: Array, w: Array) -> list[Array]:
    return [x @ w[:, :4], x @ w[:, 4:6], x @ w[:, 6:]]


def mla(qc: Array, qr: Array, c: Array, kr: Array) -> Array:
    q, k = np.concatenate([qc, qr], axis=-1), np.concatenate([c, kr], axis=-1)
    return attend(q, k, c, 192**-0.5)


FORMULAS: Mapping[str, Callable[..., Array | Sequence[Array]]] = {
    "add_rms_norm": lambda x, r, g: [x + r, rms(x + r) * g],
    "attention": lambda q, kt, v: attend(q, kt.swapaxes(1, 2), v, 1.0),
    "causal_attention": lambda q, kt, v, m: attend(q, kt.swapaxes(1, 2), v, 128**-0.5, m),
    "div_matmul": lambda a, b, c: np.einsum("nd,dm->nm", a / b, c),
    "expert_matmul": lambda x, w: np.einsum("end,edm->enm", x, w),
    "fused_qkv": qkv,
    "gated_mlp": lambda x, g, u, d: (silu(x @ g) * (x @ u)) @ d,
    "geglu": lambda x, g, u: (
        (x @ g) * np.vectorize(lambda t: math.erfc(-t / math.sqrt(2)) / 2)(x @ g) * (x @ u)
    ),
    "gqa_decode": lambda q, kt, v: attend(q, kt.swapaxes(1, 2), v, 128**-0.5),
    "layer_norm_linear": lambda x, g, b, w: layer_norm(x, g, b) @ w,
    "llama_layer": llama,
    "log_softmax": lambda x: np.log(np.array([soft(row) for row in x])),
    "lora": lambda x, w, a, b: x @ (w + a @ b),
    "matmul": lambda x, w: np.einsum("nk,km->nm", x, w),
    "mla_decode": mla,
    "ngpt_residual": lambda h, a, alpha: unit((1 - alpha) * h + alpha * unit(a)),
    "qk_norm_attention": lambda q, kt, v: attend(
        np.array([rms(rows) for rows in q]), kt.swapaxes(1, 2), v, 1.0
    ),
    "rms_norm": lambda x, w: rms(x) @ w,
    "rms_norm_mlp": lambda x, u, g: (rms(x) @ u) * (rms(x) @ g),
    "softmax": lambda x: np.array([soft(row) for row in x]),
    "swiglu": lambda x, g, u: silu(x @ g) * (x @ u),
}


def test_every_example_has_a_formula() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.mlir")}
    assert names == set(FORMULAS) == set(EXAMPLES_AT)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_the_example_is_its_formula(example, name: str) -> None:
    function, sizes = example(name), EXAMPLES_AT[name]
    random = np.random.default_rng(7)
    inputs = [
        random.standard_normal(shape_at(argument, sizes)) * 0.3
        for argument in function.body.block.args
    ]
    if name == "causal_attention":
        inputs[3] = np.where(np.tril(np.ones((4, 4))), 0.0, -np.inf)[None]
    found = evaluate_function(function, inputs, sizes)
    expected = FORMULAS[name](*inputs)
    expected = [expected] if isinstance(expected, np.ndarray) else expected
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_masked_row_gives_nan_and_disturbs_no_other_row(example) -> None:
    function, sizes = example("causal_attention"), EXAMPLES_AT["causal_attention"]
    random = np.random.default_rng(7)
    inputs = [
        random.standard_normal(shape_at(argument, sizes)) for argument in function.body.block.args
    ]
    inputs[3] = np.zeros((1, 4, 4))
    (whole,) = evaluate_function(function, inputs, sizes)
    inputs[3][0, 2] = -np.inf
    (masked,) = evaluate_function(function, inputs, sizes)
    assert np.isnan(masked[:, 2]).all()
    np.testing.assert_array_equal(np.delete(masked, 2, axis=1), np.delete(whole, 2, axis=1))
