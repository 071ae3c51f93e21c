"""Graphs with one thing changed: none is proven unless execution agrees at several sizes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from prism.dialects import threadblock
from prism.dialects.operators import OPERATORS, Kind
from prism.dialects.sym import ExprAttr, MapAttr
from prism.dialects.sym_expr import SymExpr
from prism.passes.generate import GeneratePass
from prism.passes.instantiate_maps import InstantiateMapsPass
from prism.verify.api import verify_candidates
from prism.verify.evaluate import EvaluationError, evaluate_candidate, evaluate_function, shape_at
from prism.verify.refute import size_names
from prism.verify.verdict import Limits


@dataclass(frozen=True)
class Mutant:
    what: str
    function: FuncOp


def mutants(function: FuncOp) -> Iterator[Mutant]:
    """Each operator replaced, map entry moved, accum dropped or doubled, operands swapped, constant changed."""
    for index, op in enumerate(tile_ops(function)):
        for what, change in changes(op):
            clone = function.clone()
            change(tile_ops(clone)[index])
            yield Mutant(f"{op.name} {index}: {what}", clone)


def tile_ops(function: FuncOp) -> list[Operation]:
    return [op for op in function.walk() if op.name.startswith("threadblock.")]


def changes(op: Operation):
    if isinstance(op, threadblock.TileOperatorOp):
        kind, name = op.operator.kind, op.operator.name
        if kind in (Kind.UNARY, Kind.BINARY):
            others = [n for n in threadblock.OPS if OPERATORS[n].kind is kind and n != name]
            for other in others:
                yield f"becomes {other}", lambda o, other=other: replace(o, other)
        if kind in (Kind.BINARY, Kind.MATMUL):
            yield "swapped", lambda o: setattr(o, "operands", list(reversed(o.operands)))
        if op.constant_value is not None:
            for value in (op.constant_value + 1, op.constant_value * 2, SymExpr.constant(1)):
                yield f"by {value}", lambda o, v=value: o.properties.update(constant=ExprAttr(v))
        if op.bounds is not None:
            first, last = op.attribute_values.bounds
            for start in (first + 1, first + SymExpr.symbol("k"), last):
                ends = [ExprAttr(start), ExprAttr(start + last - first)]
                yield (
                    f"from {start}",
                    lambda o, e=ends: o.properties.update(bounds=ArrayAttr(e)),
                )
        if op.dim_value is not None:
            yield "other dim", lambda o: o.properties.update(dim=type(o.dim)(1 - o.dim.data))
        yield "dropped", drop
    elif isinstance(op, threadblock.AccumOp):
        yield "dropped", drop
        yield "doubled", double
    elif isinstance(op, threadblock.InputOp):
        for which in ("imap", "fmap"):
            yield from map_changes(which, op.properties[which])
    elif isinstance(op, threadblock.OutputOp):
        yield from map_changes("omap", op.omap)


def map_changes(which: str, attribute: MapAttr):
    cuts = attribute.cuts
    for axis, dim in cuts.items():
        moved = {**cuts, axis: 1 - dim}
        removed = {a: d for a, d in cuts.items() if a != axis}
        for entries in (moved, removed):
            yield (
                f"{which} {entries}",
                lambda o, e=entries: o.properties.update({which: MapAttr.of(e)}),
            )
    for axis in {"imap": "xy", "fmap": "i", "omap": "xy"}[which]:
        if axis not in cuts:
            for dim in (0, 1):
                entries = {**cuts, axis: dim}
                yield (
                    f"{which} {entries}",
                    lambda o, e=entries: o.properties.update({which: MapAttr.of(e)}),
                )


def replace(op, name: str) -> None:
    other = threadblock.OPS[name](list(op.inputs), op.result.type)
    op.parent.insert_op_before(other, op)
    op.result.replace_all_uses_with(other.result)
    op.detach()


def drop(op: Operation) -> None:
    op.results[0].replace_all_uses_with(op.operands[0])
    op.detach()


def double(op: threadblock.AccumOp) -> None:
    again = threadblock.AccumOp.create(
        operands=[op.result],
        result_types=[op.result.type],
        properties={"axis": StringAttr(op.axis.data)},
    )
    op.parent.insert_op_after(again, op)
    op.result.replace_uses_with_if(again.result, lambda use: use.operation is not again)


COUNTS = (
    {"x": 2, "y": 2, "z": 2, "i": 2, "j": 2, "k": 2},
    {"x": 2, "y": 3, "z": 2, "i": 3, "j": 2, "k": 2},
)


def agrees(workload: FuncOp, mutant: FuncOp) -> bool:
    """Whether execution of a graph gives what the workload gives, at every point."""
    for seed, counts in enumerate(COUNTS):
        sizes = {name: 3 + (2 * i + 3 * seed) % 5 for i, name in enumerate(size_names(workload))}
        state = np.random.default_rng(seed)
        inputs = [state.normal(size=shape_at(a, sizes)) for a in workload.body.block.args]
        expected = evaluate_function(workload, inputs, sizes)
        try:
            found = evaluate_candidate(mutant, inputs, sizes, counts)
        except EvaluationError:
            return False
        for left, right in zip(found, expected, strict=True):
            if left.shape != right.shape or not np.allclose(
                left, right, 1e-8, 1e-8, equal_nan=True
            ):
                return False
    return True


@pytest.mark.parametrize(
    "name",
    [
        "matmul",
        "rms_norm",
        "swiglu",
        "rms_norm_mlp",
        "softmax",
        "lora",
        "geglu",
        "layer_norm_linear",
    ],
)
def test_no_mutant_is_proven_unless_execution_agrees(candidates, name: str) -> None:
    workload, graphs = candidates(name)
    chosen = graphs[:: max(1, len(graphs) // 4)]
    found = [mutant for graph in chosen for mutant in mutants(graph)]
    patient = Limits(seconds=300)
    verdicts = verify_candidates(workload, [mutant.function for mutant in found], patient)
    assert all(verdict.kind != "unknown" for verdict in verdicts)
    unsound = []
    equal = 0
    for mutant, verdict in zip(found, verdicts, strict=True):
        if verdict.kind == "equal":
            equal += 1
            if not agrees(workload, mutant.function):
                unsound.append(mutant.what)
        else:
            assert verdict.reason
    assert not unsound
    assert len(found) >= 70
    assert equal < len(found) / 4


SLICING = """
!wqkv = tensor<?x?xf16, #sym.shape<[d, q + 2 * k]>>
!qkv = tensor<?x?xf16, #sym.shape<[n, q + 2 * k]>>
!q = tensor<?x?xf16, #sym.shape<[n, q]>>
!k = tensor<?x?xf16, #sym.shape<[n, k]>>
func.func @qkv(%x: !x, %w_qkv: !wqkv) -> (!q, !k) {
  %qkv = kernel.matmul %x, %w_qkv : (!x, !wqkv) -> !qkv
  %q = kernel.slice %qkv dim 1 from <0> to <q> : (!qkv) -> !q
  %k = kernel.slice %qkv dim 1 from <q> to <q + k> : (!qkv) -> !k
  %e = kernel.exp %k : (!k) -> !k
  func.return %q, %e : !q, !k
}
"""

TRANSPOSING = """
!y = tensor<?x?xf16, #sym.shape<[m, d]>>
!yt = tensor<?x?xf16, #sym.shape<[d, m]>>
!p = tensor<?x?xf16, #sym.shape<[n, m]>>
func.func @scores(%x: !x, %y: !y) -> !x {
  %yt = kernel.transpose %y perm [1, 0] : (!y) -> !yt
  %s = kernel.matmul %x, %yt : (!x, !yt) -> !p
  %e = kernel.exp %s : (!p) -> !p
  %o = kernel.matmul %e, %y : (!p, !y) -> !x
  func.return %o : !x
}
"""


@pytest.mark.parametrize("text", [TRANSPOSING, SLICING], ids=["transpose", "slice"])
def test_no_mutant_that_moves_data_is_proven_unless_execution_agrees(module_of, text: str) -> None:
    module = module_of(text)
    for module_pass in (GeneratePass(), InstantiateMapsPass()):
        module_pass.apply(Context(), module)
    workload, *graphs = (op for op in module.ops if isinstance(op, FuncOp))
    assert all(verdict.kind == "equal" for verdict in verify_candidates(workload, graphs))
    found = [mutant for graph in graphs for mutant in mutants(graph)]
    verdicts = verify_candidates(workload, [m.function for m in found], Limits(seconds=300))
    equal = [m for m, verdict in zip(found, verdicts, strict=True) if verdict.kind == "equal"]
    assert not [mutant.what for mutant in equal if not agrees(workload, mutant.function)]
    assert len(found) >= 50
    assert len(equal) < len(found) / 4
