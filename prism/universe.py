"""
The dialects, passes and targets that Prism contributes to `xdsl-opt` and `prism-opt`.

This module is imported at every start of `xdsl-opt`: each entry imports its module only when it is
used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

_DIALECTS = {
    "sym": "prism.dialects.sym:Sym",
    "kernel": "prism.dialects.kernel:Kernel",
    "threadblock": "prism.dialects.threadblock:Threadblock",
    "thread": "prism.dialects.thread:Thread",
    "cuda": "prism.dialects.cuda:Cuda",
}

_PASSES = {
    "prism-generate": "prism.passes.generate:GeneratePass",
    "prism-prune": "prism.passes.prune:PrunePass",
    "prism-instantiate-maps": "prism.passes.instantiate_maps:InstantiateMapsPass",
    "prism-verify": "prism.passes.verify:VerifyPass",
    "prism-tune": "prism.passes.prism_tune:TunePass",
    "prism-lower-to-thread": "prism.passes.lower_to_thread:LowerToThreadPass",
    "prism-lower-to-cuda": "prism.passes.lower_to_cuda:LowerToCudaPass",
    "prism-emit-ptx": "prism.passes.emit_ptx:EmitPtxPass",
    "prism-superoptimize": "prism.passes.superoptimize:SuperoptimizePass",
}

_TARGETS = {"prism-ptx": "prism.codegen.ptx_target:PtxTarget"}


def _lazy(path: str) -> Callable[[], object]:
    module, _, name = path.partition(":")
    return lambda: getattr(import_module(module), name)


def _dialect(path: str) -> Callable[[], Dialect]:
    load = _lazy(path)

    def factory() -> Dialect:
        dialect = load()
        assert isinstance(dialect, Dialect)
        return dialect

    return factory


def _pass(path: str) -> Callable[[], type[ModulePass]]:
    load = _lazy(path)

    def factory() -> type[ModulePass]:
        loaded = load()
        assert isinstance(loaded, type)
        assert issubclass(loaded, ModulePass)
        return loaded

    return factory


def _target(path: str) -> Callable[[], type[Target]]:
    load = _lazy(path)

    def factory() -> type[Target]:
        loaded = load()
        assert isinstance(loaded, type)
        assert issubclass(loaded, Target)
        return loaded

    return factory


PRISM_UNIVERSE = Universe(
    all_dialects={name: _dialect(path) for name, path in _DIALECTS.items()},
    all_passes={name: _pass(path) for name, path in _PASSES.items()},
    all_targets={name: _target(path) for name, path in _TARGETS.items()},
)
"""What the entry point `xdsl.universe` names."""
