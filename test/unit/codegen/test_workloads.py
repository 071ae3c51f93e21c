"""Every candidate that the search gives for the 2-D workloads, lowered at random points and run."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from prism.codegen.assembler import assemble
from prism.codegen.errors import CannotLower
from prism.dialects.kernel import CANDIDATE_OF, GraphDefOp, Kernel
from prism.dialects.sym import Sym, axis_parameter, shape_of
from prism.dialects.threadblock import InputOp, Threadblock
from prism.passes.generate import GeneratePass
from prism.passes.instantiate_maps import InstantiateMapsPass
from prism.passes.prune import PrunePass
from prism.tune.target import load_target
from prism.verify.evaluate import evaluate_function

EXAMPLES = Path(__file__).parents[3] / "examples"


@cache
def searched(workload: str) -> ModuleOp:
    """The workload and its candidates with concrete maps."""
    context = Context()
    for dialect in (Builtin, func.Func, Sym, Kernel, Threadblock):
        context.load_dialect(dialect)
    module = Parser(context, (EXAMPLES / f"{workload}.mlir").read_text()).parse_module()
    for search_pass in (GeneratePass(), PrunePass(), InstantiateMapsPass()):
        search_pass.apply(context, module)
    return module


def point(graph: GraphDefOp, sizes: dict[str, int], tiles: dict[str, int]) -> dict[str, int]:
    """The parameters that cut each axis into these tiles; no dim here is cut twice."""
    params: dict[str, int] = {}
    for op in graph.body.block.ops:
        if isinstance(op, InputOp):
            shape = [int(size.evaluate(sizes)) for size in shape_of(op.tensor.type)]
            for axis, dim in (op.imap.cuts | op.fmap.cuts).items():
                params[f"tile.{axis}"] = tiles[axis]
                params[axis_parameter(axis)] = -(-shape[dim] // tiles[axis])
    return params


CHOICES = {"n": [1, 7, 8, 20, 33], "g": [1, 7, 8, 20], "b": [1, 2, 3]}
"""Sizes that dims of rows and batches are drawn from."""

QUICK = ("matmul", "rms_norm", "rms_norm_mlp", "swiglu", "attention", "geglu")
WORKLOADS = (
    *QUICK,
    "qk_norm_attention",
    "div_matmul",
    "expert_matmul",
    "layer_norm_linear",
    "ngpt_residual",
)


@pytest.mark.parametrize("workload", QUICK)
def test_candidates(lab, workload):
    """Some candidates of every workload, spread over the search's order."""
    run_candidates(lab, workload, 6)


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS)
def test_all_candidates(lab, workload):
    run_candidates(lab, workload, None)


def run_candidates(lab, workload, most):
    """Lowers and runs at most `most` candidates; few may be refused."""
    rng = np.random.default_rng(WORKLOADS.index(workload))
    module = searched(workload)
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
    original = functions[workload]
    ran = 0
    # candidates of several kernels have parameters for each
    candidates = [
        f
        for f in functions.values()
        if CANDIDATE_OF in f.attributes
        and sum(isinstance(op, GraphDefOp) for op in f.body.walk()) == 1
    ]
    if most is not None:
        candidates = candidates[:: -(-len(candidates) // most)]
    for function in candidates:
        graph = next(op for op in function.body.walk() if isinstance(op, GraphDefOp))
        symbols = sorted(
            {
                name
                for type in original.function_type.inputs
                for e in shape_of(type)
                for name in e.symbols()
            }
        )
        sizes = {name: int(rng.choice(CHOICES.get(name, [8, 17, 40, 64, 100]))) for name in symbols}
        tiles = {axis: int(rng.choice([8, 16, 32])) for axis in "xyzij"}
        params = point(graph, sizes, tiles)
        params |= {"warps": int(rng.choice([1, 2, 4, 8])), "swap": int(rng.integers(2))}
        params["stages"] = int(rng.integers(1, 5))
        inputs = [
            (rng.standard_normal([int(e.evaluate(sizes)) for e in shape_of(type)]) * scale).astype(
                np.float16
            )
            # exp of scores must not leave f16
            for type, scale in zip(
                original.function_type.inputs, (1, 0.1, 0.25, 0.25), strict=False
            )
        ]
        (expected,) = evaluate_function(original, inputs, sizes)
        try:
            lab.run(graph, sizes, params, inputs, expected)
        except CannotLower:
            continue
        ran += 1
    assert ran >= 0.9 * len(candidates)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_assembles(lab, target):
    """The fused rms_norm kernel that multiplies first and divides after the loop assembles."""
    functions = [op for op in searched("rms_norm").ops if isinstance(op, func.FuncOp)]
    graphs = [op for f in functions for op in f.body.walk() if isinstance(op, GraphDefOp)]
    looped = next(g for g in graphs if g.loop_axes and g.grid_axes)
    sizes, tiles = {"n": 8, "d": 1000}, dict.fromkeys("xyzij", 64)
    kernel = lab.emit(looped, sizes, point(looped, sizes, tiles) | {"warps": 4, "swap": 1})
    ptx = kernel.ptx.replace("sm_80", target).replace(
        ".version 7.0", f".version {load_target(target).ptx_version}"
    )
    assembled = assemble(ptx, target, kernel.name, line_origins=kernel.origins)
    assert assembled.spill_bytes == 0
    assert assembled.smem_bytes == kernel.static_smem
