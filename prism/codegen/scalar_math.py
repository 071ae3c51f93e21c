"""
Elementwise mathematics, twice a table: operators as `arith` and `math` ops on f32, and those as
PTX instructions.

The approximate functions of PTX are used where they hold for the full range of f32 (PTX ISA 9.7.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Block, Operation, SSAValue

from prism.codegen.emitter import Emitter

Rule = Callable[["ScalarBuilder", Sequence[SSAValue], float], SSAValue]


class ScalarBuilder:
    """Appends f32 ops of `arith` and `math` to a block."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def op(self, op: Operation) -> SSAValue:
        """Appends an op and gives its result."""
        self._block.add_op(op)
        return op.results[0]

    def constant(self, value: float) -> SSAValue:
        """An f32 constant."""
        return self.op(arith.ConstantOp(FloatAttr(value, f32)))


def _sigmoid(build: ScalarBuilder, x: SSAValue) -> SSAValue:
    """1 / (1 + exp(-x)): exp overflows to inf for large -x, and the quotient to the limit 0."""
    one = build.constant(1.0)
    power = build.op(math_dialect.ExpOp(build.op(arith.NegfOp(x))))
    return build.op(arith.DivfOp(one, build.op(arith.AddfOp(one, power))))


def _tanh(build: ScalarBuilder, x: SSAValue) -> SSAValue:
    """1 - 2 / (1 + exp(2 x)): both limits are reached without overflow to NaN."""
    one, two = build.constant(1.0), build.constant(2.0)
    power = build.op(math_dialect.ExpOp(build.op(arith.AddfOp(x, x))))
    ratio = build.op(arith.DivfOp(two, build.op(arith.AddfOp(one, power))))
    return build.op(arith.SubfOp(one, ratio))


def _gelu_tanh(build: ScalarBuilder, x: SSAValue) -> SSAValue:
    """x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3), for 1 + tanh(u) = 2 sigmoid(2 u)."""
    square = build.op(arith.MulfOp(x, x))
    cubic = build.op(arith.MulfOp(square, build.constant(2 * 0.044715 * math.sqrt(2 / math.pi))))
    factor = build.op(arith.AddfOp(cubic, build.constant(2 * math.sqrt(2 / math.pi))))
    return build.op(arith.MulfOp(x, _sigmoid(build, build.op(arith.MulfOp(x, factor)))))


def _normal_tail(build: ScalarBuilder, x: SSAValue) -> SSAValue:
    """
    1 - Phi(x) for x >= 0: half of erfc(x / sqrt 2), by formula 7.1.26 of Abramowitz and Stegun,
    whose error is below 1.5e-7.
    """
    half = build.op(arith.MulfOp(x, build.constant(math.sqrt(0.5))))
    scaled = build.op(arith.MulfOp(half, build.constant(0.3275911)))
    t = build.op(
        arith.DivfOp(build.constant(1.0), build.op(arith.AddfOp(build.constant(1.0), scaled)))
    )
    total = build.constant(1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = build.op(arith.MulfOp(total, t))
        total = build.op(arith.AddfOp(total, build.constant(coefficient)))
    total = build.op(arith.MulfOp(build.op(arith.MulfOp(total, t)), build.constant(0.5)))
    square = build.op(arith.NegfOp(build.op(arith.MulfOp(half, half))))
    return build.op(arith.MulfOp(total, build.op(math_dialect.ExpOp(square))))


def _gelu(build: ScalarBuilder, x: SSAValue) -> SSAValue:
    """
    x Phi(x) = max(x, 0) - |x| (1 - Phi(|x|)).

    Beyond 40 the product is 0: |x| is kept below, so that infinity times 0 is no NaN.
    """
    size = build.op(arith.MaximumfOp(x, build.op(arith.NegfOp(x))))
    size = build.op(arith.MinimumfOp(size, build.constant(40.0)))
    lost = build.op(arith.MulfOp(size, _normal_tail(build, size)))
    return build.op(arith.SubfOp(build.op(arith.MaximumfOp(x, build.constant(0.0))), lost))


LARGEST_POWER = 8
"""Integer powers up to this are products, which hold for negative bases too."""


def _pow(build: ScalarBuilder, x: SSAValue, exponent: float) -> SSAValue:
    """x to a constant: products for small integers, else exp(c log x)."""
    if not exponent.is_integer() or abs(exponent) > LARGEST_POWER:
        scaled = build.op(arith.MulfOp(build.op(math_dialect.LogOp(x)), build.constant(exponent)))
        return build.op(math_dialect.ExpOp(scaled))
    one = build.constant(1.0)
    result = one
    for index in range(abs(int(exponent))):
        result = x if index == 0 else build.op(arith.MulfOp(result, x))
    return result if exponent >= 0 else build.op(arith.DivfOp(one, result))


OPERATOR_RULES: Mapping[str, Rule] = {
    "neg": lambda b, x, _: b.op(arith.NegfOp(x[0])),
    "exp": lambda b, x, _: b.op(math_dialect.ExpOp(x[0])),
    "log": lambda b, x, _: b.op(math_dialect.LogOp(x[0])),
    "sqrt": lambda b, x, _: b.op(math_dialect.SqrtOp(x[0])),
    "rsqrt": lambda b, x, _: b.op(math_dialect.RsqrtOp(x[0])),
    "square": lambda b, x, _: b.op(arith.MulfOp(x[0], x[0])),
    "reciprocal": lambda b, x, _: b.op(arith.DivfOp(b.constant(1.0), x[0])),
    "sigmoid": lambda b, x, _: _sigmoid(b, x[0]),
    # for x to -inf the second factor is 0 long before x is infinite
    "silu": lambda b, x, _: b.op(arith.MulfOp(x[0], _sigmoid(b, x[0]))),
    "relu": lambda b, x, _: b.op(arith.MaximumfOp(x[0], b.constant(0.0))),
    "tanh": lambda b, x, _: _tanh(b, x[0]),
    "gelu": lambda b, x, _: _gelu(b, x[0]),
    "pow": lambda b, x, c: _pow(b, x[0], c),
    "add": lambda b, x, _: b.op(arith.AddfOp(x[0], x[1])),
    "sub": lambda b, x, _: b.op(arith.SubfOp(x[0], x[1])),
    "mul": lambda b, x, _: b.op(arith.MulfOp(x[0], x[1])),
    "div": lambda b, x, _: b.op(arith.DivfOp(x[0], x[1])),
    "maximum": lambda b, x, _: b.op(arith.MaximumfOp(x[0], x[1])),
    # min(x, c) = -max(-x, -c)
    "at_least": lambda b, x, c: b.op(arith.MaximumfOp(x[0], b.constant(c))),
    "at_most": lambda b, x, c: b.op(
        arith.NegfOp(b.op(arith.MaximumfOp(b.op(arith.NegfOp(x[0])), b.constant(-c))))
    ),
    "gelu_tanh": lambda b, x, _: _gelu_tanh(b, x[0]),
    "scale": lambda b, x, c: b.op(arith.MulfOp(x[0], b.constant(c))),
    "shift": lambda b, x, c: b.op(arith.AddfOp(x[0], b.constant(c))),
}
"""Per elementwise operator: its f32 ops, from operands and the constant of a scalar operator."""


def _exp(e: Emitter, x: SSAValue) -> SSAValue:
    return e.op("ex2.approx.f32", e.op("mul.f32", x, e.f32(math.log2(math.e))))


def _log(e: Emitter, x: SSAValue) -> SSAValue:
    return e.op("mul.f32", e.op("lg2.approx.f32", x), e.f32(math.log(2.0)))


PTX_RULES: Mapping[type[Operation], Callable[[Emitter, Sequence[SSAValue]], SSAValue]] = {
    arith.AddfOp: lambda e, x: e.op("add.f32", x[0], x[1]),
    arith.SubfOp: lambda e, x: e.op("sub.f32", x[0], x[1]),
    arith.MulfOp: lambda e, x: e.op("mul.f32", x[0], x[1]),
    arith.DivfOp: lambda e, x: e.op("div.full.f32", x[0], x[1]),
    arith.NegfOp: lambda e, x: e.op("neg.f32", x[0]),
    arith.MinimumfOp: lambda e, x: e.op("min.NaN.f32", x[0], x[1]),
    arith.MaximumfOp: lambda e, x: e.op("max.NaN.f32", x[0], x[1]),
    math_dialect.ExpOp: lambda e, x: _exp(e, x[0]),
    math_dialect.LogOp: lambda e, x: _log(e, x[0]),
    math_dialect.SqrtOp: lambda e, x: e.op("sqrt.approx.f32", x[0]),
    math_dialect.RsqrtOp: lambda e, x: e.op("rsqrt.approx.f32", x[0]),
}
"""Per `arith` or `math` op on f32: its PTX instructions."""


def emit_scalars(e: Emitter, body: Block, arguments: Sequence[SSAValue]) -> SSAValue:
    """Emits the ops of a map's body for one element; its last op yields the result."""
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, arguments, strict=True))
    for op in body.ops:
        operands = [values[operand] for operand in op.operands]
        if op is body.last_op:
            return operands[0]
        if isinstance(op, arith.ConstantOp):
            constant = op.value
            assert isinstance(constant, FloatAttr)  # by check_scalars
            values[op.result] = e.f32(constant.value.data)
        else:
            values[op.results[0]] = PTX_RULES[type(op)](e, operands)
    raise ValueError("a map's body ends with a yield")


def unknown_scalar(body: Block) -> Operation | None:
    """The first op of a map's body that has no rule here, None if all have."""
    for op in body.ops:
        if op is body.last_op or type(op) in PTX_RULES:
            continue
        if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, FloatAttr):
            return op
    return None
