"""Only candidates proven equal as they stand, and tuned, are lowered."""

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from prism.codegen.errors import CannotLower
from prism.dialects.cuda import BinaryOp
from prism.dialects.kernel import Kernel, LaunchOp
from prism.dialects.sym import Sym
from prism.dialects.thread import KernelOp
from prism.dialects.threadblock import Threadblock
from prism.passes.emit_ptx import EmitPtxPass
from prism.passes.lower_to_cuda import LowerToCudaPass
from prism.passes.lower_to_thread import LowerToThreadPass
from prism.passes.verify import VerifyPass

TEXT = """
!t = tensor<?x?xf16, #sym.shape<[n, d]>>
!tile = !threadblock.tile<[n, d / grid.x], f32>
func.func @w(%x: !t) -> !t {
  %y = kernel.exp %x : (!t) -> !t
  func.return %y : !t
}
func.func @w__g0(%x: !t) -> !t attributes {kernel.candidate_of = @w, kernel.sizes = {n = 3 : i64, d = 32 : i64}, kernel.target = "sm_90"} {
  %y = kernel.graph_def grid [x] loop [] params {"grid.x" = 2 : i64, "tile.x" = 16 : i64, warps = 1 : i64} (%a = %x : !t) -> !t {
    %b = threadblock.input %a imap {x = 1} fmap {} : !t -> !threadblock.tile<[n, d / grid.x], f16>
    %c = threadblock.exp %b : (!threadblock.tile<[n, d / grid.x], f16>) -> !tile
    %o = threadblock.output %c omap {x = 1} : !tile -> !t
    threadblock.yield %o : !t
  }
  func.return %y : !t
}
"""


@pytest.fixture
def context():
    context = Context()
    for dialect in (Builtin, func.Func, Sym, Kernel, Threadblock):
        context.load_dialect(dialect)
    return context


def verified(context, text=TEXT):
    module = Parser(context, text).parse_module()
    VerifyPass().apply(context, module)
    return module


def candidate(module):
    return next(op for op in module.ops if "kernel.candidate_of" in op.attributes)


def test_whole_lowering(context):
    module = verified(context)
    LowerToThreadPass().apply(context, module)
    module.verify()
    kernel = next(op for op in module.ops if isinstance(op, KernelOp))
    assert kernel.sym_name.data == "w__g0_k0"
    assert kernel.target.data == "sm_90"
    launches = [op for op in candidate(module).walk() if isinstance(op, LaunchOp)]
    assert [op.kernel.string_value() for op in launches] == ["w__g0_k0"]
    LowerToCudaPass().apply(context, module)
    EmitPtxPass().apply(context, module)
    module.verify()
    binary = next(op for op in module.ops if isinstance(op, BinaryOp))
    assert binary.grid_size == (2, 1, 1)
    assert binary.ptx.data.startswith(".version 7.8\n.target sm_90\n")


def test_no_verdict(context):
    module = Parser(context, TEXT).parse_module()
    with pytest.raises(CannotLower, match="@w__g0: expected a verdict equal, found no verdict"):
        LowerToThreadPass().apply(context, module)


def test_wrong_graph(context):
    module = verified(context, TEXT.replace("threadblock.exp", "threadblock.neg"))
    with pytest.raises(CannotLower, match="expected a verdict equal, found not_proven"):
        LowerToThreadPass().apply(context, module)


def test_edited_after_the_verdict(context):
    module = verified(context)
    edited = Parser(context, str(module).replace("threadblock.exp", "threadblock.neg"))
    with pytest.raises(CannotLower, match="changed after the verdict"):
        LowerToThreadPass().apply(context, edited.parse_module())


def test_workload_edited_after_the_verdict(context):
    module = verified(context)
    edited = Parser(context, str(module).replace("kernel.exp", "kernel.neg"))
    with pytest.raises(CannotLower, match="changed after the verdict"):
        LowerToThreadPass().apply(context, edited.parse_module())


@pytest.mark.parametrize("name", ["kernel.sizes", "kernel.target"])
def test_not_tuned(context, name):
    module = verified(context)
    del candidate(module).attributes[name]
    with pytest.raises(CannotLower, match="@w__g0: not tuned: run prism-tune first"):
        LowerToThreadPass().apply(context, module)


def test_no_workload(context):
    module = verified(context)
    module.body.block.first_op.detach()
    with pytest.raises(CannotLower, match="the workload @w is not in the module"):
        LowerToThreadPass().apply(context, module)


def test_message_names_the_op(context):
    module = verified(context, TEXT.replace('"grid.x" = 2', '"grid.x" = 3'))
    with pytest.raises(CannotLower, match=r"%b = threadblock.input: axis x: 3 parts of 16"):
        LowerToThreadPass().apply(context, module)
