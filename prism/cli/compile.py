"""The pipeline as a library call: a workload's IR in; proven graphs, and PTX for a shape, out."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from prism.cli.source import Source, one_line
from prism.codegen.assembler import Assembled
from prism.codegen.emit import EmittedKernel
from prism.dialects.kernel import VERDICT, GraphDefOp, VerdictAttr
from prism.dialects.operator_op import OperatorOp
from prism.dialects.operators import Kind
from prism.dialects.sym import as_tensor
from prism.errors import PrismError
from prism.runtime.manifest import GraphEntry
from prism.tune.bindings import BindingError
from prism.tune.choose import Choice

ELEMENT_TYPES = ("f16", "bf16", "f32")
"""Element types of tensors that kernels can read and write."""

ELEMENT_TYPES_OF_PRODUCTS = ("f16", "bf16")
"""Element types of tensors that matrix products can take."""

Progress = Callable[[str], None]


class InvalidIRError(RuntimeError):
    """A pass left IR that does not verify: a bug in Prism, not of the user."""


@dataclass(frozen=True)
class GraphCounts:
    """How many candidate graphs were found, and how many have which verdict."""

    found: int
    proven: int
    not_proven: int
    unknown: int


@dataclass(frozen=True)
class Family:
    """A candidate graph: the names of its axes, and its verdict."""

    grid: tuple[str, ...]
    loops: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel's PTX with its cubin."""

    emitted: EmittedKernel
    assembled: Assembled


@dataclass
class Compilation:
    """
    One workload on its way through the pipeline.

    `stages` has the seconds of each stage by name, `families` the candidates by name. What needs a
    shape stays empty without one: `choice` and all after it.
    """

    source: Source
    module: ModuleOp
    workload: FuncOp
    stages: dict[str, float] = field(default_factory=dict[str, float])
    families: dict[str, Family] = field(default_factory=dict[str, "Family"])
    choice: Choice | None = None
    graph: GraphEntry | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    target: str = ""
    kernels: tuple[CompiledKernel, ...] = ()
    measured: Mapping[str, Any] | None = None
    """What measured tuning did, for the report."""

    @property
    def counts(self) -> GraphCounts:
        """The verdicts counted."""
        kinds = [family.verdict for family in self.families.values()]
        return GraphCounts(
            len(kinds), kinds.count("equal"), kinds.count("not_proven"), kinds.count("unknown")
        )


class Pipeline:
    """Runs the passes on one workload and keeps the time of each stage."""

    def __init__(self, context: Context, source: Source, progress: Progress) -> None:
        self._context = context
        self._progress = progress
        workload = only_workload(source)
        self.result = Compilation(source, source.module, workload)

    def search(self) -> Compilation:
        """Find and verify the candidate graphs of the workload."""
        for name in ("generate", "prune", "instantiate-maps"):
            self._run(name)
        self._run("verify")
        self._note_families()
        return self.result

    def take(self, candidate: FuncOp) -> str:
        """Verify one given candidate in place of a search; its name."""
        self.result.module.body.block.add_op(candidate)
        self._run("verify")
        self._note_families()
        return candidate.sym_name.data

    def copy(self) -> Pipeline:
        """A pipeline on a copy of the module as it stands, to lower for one of several shapes."""
        result = self.result
        module = result.module.clone()
        (workload,) = (
            op
            for op in module.ops
            if isinstance(op, FuncOp) and op.sym_name == result.workload.sym_name
        )
        other = copy(self)
        other.result = Compilation(result.source, module, workload, families=result.families)
        return other

    def compile(self, shape: str, target: str, graph: str = "", overrides: str = "") -> Compilation:
        """
        Choose a proven graph for a shape and target, and lower it to PTX and cubins.

        Raises `PrismError` at a place in the source, `JobFailedError` if nothing is proven or fits.
        """
        from prism.codegen.emit import emit_module
        from prism.tune.bindings import parse_sizes
        from prism.tune.tune import tune_module

        result = self.result
        result.sizes, result.target = parse_sizes(shape, result.workload), target
        with self.stage("tune"), self._located():
            (result.choice,) = tune_module(result.module, shape, target, graph, overrides)
        self._verify("tune")
        # Described now: lowering replaces the graph by launches.
        result.graph = describe_graph(result.choice)
        self._run("lower-to-thread")
        self._run("lower-to-cuda")
        with self.stage("emit-ptx"):
            emitted = emit_module(result.module)
        self._run("emit-ptx", more=True)
        with self.stage("assemble"):
            per_sm = result.choice.cost.blocks_per_sm
            kernels = [CompiledKernel(each, _assemble(each, target, per_sm)) for each in emitted]
        result.kernels = tuple(kernels)
        return result

    def _note_families(self) -> None:
        for function in self.candidates():
            verdict = function.attributes.get(VERDICT)
            kind = verdict.data.kind if isinstance(verdict, VerdictAttr) else "unknown"
            # A candidate of several kernels shows the axes of all of them.
            graphs = [op for op in function.walk() if isinstance(op, GraphDefOp)]
            grid = tuple(dict.fromkeys(axis for graph in graphs for axis in graph.grid_axes))
            loops = tuple(dict.fromkeys(axis for graph in graphs for axis in graph.loop_axes))
            family = Family(grid, loops, kind)
            self.result.families[function.sym_name.data] = family

    def candidates(self) -> list[FuncOp]:
        """The candidate graphs as they stand."""
        from prism.verify.api import is_candidate

        functions = (op for op in self.result.module.ops if isinstance(op, FuncOp))
        return [function for function in functions if is_candidate(function)]

    def _run(self, name: str, *, more: bool = False) -> None:
        """Run the pass `prism-NAME`; with `more` its time adds to a stage that began before."""
        with self.stage(name, more=more), self._located():
            load_pass(f"prism-{name}")().apply(self._context, self.result.module)
        self._verify(name)

    def _verify(self, name: str) -> None:
        try:
            self.result.module.verify()
        except VerifyException as error:
            raise InvalidIRError(f"prism-{name} left invalid IR: {one_line(str(error))}") from error

    @contextmanager
    def stage(self, name: str, *, more: bool = False) -> Generator[None]:
        """Shows a stage while its body runs, and notes its seconds; `more` adds to those before."""
        self._progress(name)
        start = time.perf_counter()
        yield
        before = self.result.stages.get(name, 0.0) if more else 0.0
        self.result.stages[name] = before + time.perf_counter() - start

    @contextmanager
    def _located(self) -> Generator[None]:
        """Give every diagnostic of a stage a place in the source."""
        try:
            yield
        except PrismError as error:
            locate(error, self.result.source, self.result.workload)
            raise
        except DiagnosticException as error:
            place = self.result.source.location_of(self.result.workload)
            raise PrismError(one_line(str(error)), place) from error


def _assemble(kernel: EmittedKernel, target: str, blocks_per_sm: int) -> Assembled:
    """Assemble for as many blocks of an SM as the tuner expects, or fewer if registers spill."""
    from prism.codegen.assembler import AssemblerError, assemble

    while True:
        try:
            cubin = assemble(
                kernel.ptx,
                target,
                kernel.name,
                kernel.origins,
                min_blocks_per_sm=blocks_per_sm,
            )
        except AssemblerError as error:
            raise InvalidIRError(f"prism-emit-ptx printed bad PTX: {error.message}") from error
        if not cubin.spill_bytes or blocks_per_sm <= 1:
            return cubin
        blocks_per_sm //= 2


def locate(error: PrismError, source: Source, workload: FuncOp) -> None:
    """Give a diagnostic without a place that of the symbol it is about, or of the workload."""
    if error.location is not None:
        return
    symbol = error.symbol if isinstance(error, BindingError) else None
    found = None if symbol is None else source.location_of_symbol(symbol)
    error.location = found or source.location_of(workload)


def describe_graph(choice: Choice) -> GraphEntry:
    """A chosen graph to read: operators in order, and the maps of its inputs and outputs."""
    from prism.dialects.threadblock import AccumOp, InputOp, OutputOp, TileOperatorOp
    from prism.tune.graph import graph_def

    graph = graph_def(choice.candidate)
    sources = dict[SSAValue, SSAValue](zip(graph.body.block.args, graph.inputs, strict=True))
    operators: list[str] = []
    maps: dict[str, str] = {}
    for op in graph.body.block.ops:
        match op:
            case InputOp():
                name = sources[op.tensor].name_hint or f"input{len(maps)}"
                maps[name] = f"imap {op.imap.data} fmap {op.fmap.data}"
            case OutputOp():
                maps[op.result.name_hint or f"output{len(maps)}"] = f"omap {op.omap.data}"
            case TileOperatorOp():
                operators.append(op.operator.name)
            case AccumOp():
                operators.append(f"accum {op.axis.data}")
            case _:
                pass
    verdict = choice.candidate.attributes.get(VERDICT)
    if not isinstance(verdict, VerdictAttr):
        raise InvalidIRError("prism-tune chose a graph without a verdict")
    return GraphEntry(
        name=choice.candidate.sym_name.data,
        text=str(choice.candidate),
        operators=tuple(operators),
        maps=maps,
        parameters=choice.parameters,
        verdict=verdict.data.kind,
        digest=verdict.data.digest,
    )


def load_pass(name: str) -> type[ModulePass]:
    """The class of one of Prism's passes."""
    from prism.universe import PRISM_UNIVERSE

    return PRISM_UNIVERSE.all_passes[name]()


def only_workload(source: Source) -> FuncOp:
    """The one workload function of a file; raises `PrismError` if there is none or another."""
    from prism.verify.api import is_candidate

    functions = [op for op in source.module.ops if isinstance(op, FuncOp)]
    workloads = [function for function in functions if not is_candidate(function)]
    if not workloads:
        place = source.location_of(source.module)
        raise PrismError("expected a workload function (func.func), found none", place)
    for function in functions:
        if function is not workloads[0]:
            message = f"expected one workload function, found also @{function.sym_name.data}"
            raise PrismError(message, source.location_of(function))
    if workloads[0].is_declaration:
        message = f"@{workloads[0].sym_name.data} has no body"
        raise PrismError(message, source.location_of(workloads[0]))
    return workloads[0]


def check_target(source: Source, target: str) -> None:
    """Refuse an unknown target; raises `PrismError` located in the source."""
    from prism.tune.target import load_target

    workload = only_workload(source)
    try:
        load_target(target)
    except PrismError as error:
        locate(error, source, workload)
        raise


def check_request(source: Source, shape: str, target: str, overrides: str | None = None) -> None:
    """Refuse a bad option before any work; raises `PrismError` located in the source."""
    from prism.tune.bindings import parse_bindings, parse_sizes

    workload = only_workload(source)
    _check_element_types(source, workload)
    check_target(source, target)
    try:
        parse_sizes(shape, workload)
        if overrides:
            parse_bindings(overrides, "--set")
    except PrismError as error:
        locate(error, source, workload)
        raise


def _check_element_types(source: Source, workload: FuncOp) -> None:
    """Refuse tensors that code generation has no kernels for, at the op that makes or takes one."""
    for op in workload.walk():
        if not isinstance(op, OperatorOp):
            continue
        supported = ELEMENT_TYPES_OF_PRODUCTS if op.operator.kind is Kind.MATMUL else ELEMENT_TYPES
        for value in (*op.inputs, op.result):
            found = str(as_tensor(value.type).element_type)
            if found not in supported:
                expected = " or ".join(supported)
                message = f"{op.name}: no kernels for element type {found}: expected {expected}"
                raise PrismError(message, source.location_of(op))
