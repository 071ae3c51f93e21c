"""Programs of several kernels: covers of a workload as candidates, and the maps of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from xdsl.ir import Attribute

from prism.dialects.sym import as_tensor, tensor_type
from prism.search.cost import CostModel, Family, assumed_sizes
from prism.search.cover import Cover, Library, Priced
from prism.search.from_ir import Workload
from prism.search.graphs import Graph
from prism.search.maps import Maps, assignments
from prism.search.program import ARGUMENT, Choice, Kernel, Plain, Program, Ref
from prism.search.sgraph import constrain

MARGIN = 1.1
"""How much dearer one kernel must be than a cover by several: prices are rough."""

MAX_CHOICES = 16
"""How many maps of each kernel of a program of several are tried."""


def covers(
    workload: Workload,
    loops: Sequence[str],
    single: Sequence[Graph],
    sizes: Mapping[str, int] | None = None,
) -> list[Program]:
    """
    The cheapest programs of several kernels at the sizes that are assumed, each once.

    `single` are the graphs that compute the workload in one kernel. Nothing is cut where one of
    them is no dearer than the workload's products and sums in a kernel each, or not `MARGIN` dearer
    than the cheapest cover; nor where the tiles of some kernel fit at no size.
    """
    table, outputs = workload.table, workload.outputs
    library = Library(loops)
    order = table.topological(outputs)
    families = [Family(graph) for graph in single]
    found: dict[object, Program] = {}
    for assumed in assumed_sizes(
        [table.shapes[term] for term in order], table.shapes[outputs[0]], sizes or {}
    ):
        model = CostModel(assumed)
        cover = Cover(table, outputs, model, library)
        apart, alone = cover.apart(), inf
        for family in families:
            alone = min(alone, *model.prices(family))
            if alone <= apart:
                break
        if alone <= apart:
            continue
        kernels = cover.kernels()
        if kernels is None or len(kernels) == 1 or all(k.graph is None for k in kernels):
            continue
        if MARGIN * sum(kernel.seconds for kernel in kernels) < alone:
            key = tuple((kernel.graph, kernel.leaves, kernel.results) for kernel in kernels)
            found.setdefault(key, _program(workload, kernels))
    return list(found.values())


def cheapest(
    workload: Workload, graphs: Sequence[Graph], count: int, sizes: Mapping[str, int] | None = None
) -> list[int]:
    """The positions of the `count` cheapest graphs at the last of the assumed sizes, in order."""
    table, outputs = workload.table, workload.outputs
    shapes = [table.shapes[term] for term in table.topological(outputs)]
    model = CostModel(assumed_sizes(shapes, table.shapes[outputs[0]], sizes or {})[-1])
    prices = [min(model.prices(Family(graph)), default=inf) for graph in graphs]
    return sorted(sorted(range(len(graphs)), key=lambda i: (prices[i], i))[:count])


def _program(workload: Workload, kernels: Sequence[Priced]) -> Program:
    table = workload.table
    returned = dict(zip(workload.outputs, workload.func.function_type.outputs, strict=True))
    element_type = as_tensor(next(iter(returned.values()))).element_type
    refs: dict[int, Ref] = {
        term: Ref(ARGUMENT, argument) for argument, term in table.inputs.items()
    }
    made: list[Kernel | Plain] = []
    for priced in kernels:
        operands = tuple(refs[leaf] for leaf in priced.leaves)
        types: list[Attribute] = []
        for number, term in enumerate(priced.results):
            refs[term] = Ref(len(made), number)
            known = returned.get(term)
            types.append(known or tensor_type(table.shapes[term], element_type))
        if priced.graph is None:
            name, attribute, _ = table.nodes[priced.results[0]]
            made.append(Plain(name, attribute, operands, tuple(types)))
        else:
            made.append(Kernel(constrain(priced.graph), operands, tuple(types)))
    return Program(tuple(made), tuple(refs[term] for term in workload.outputs))


def choices(program: Program) -> list[Choice]:
    """
    Maps for all kernels at once, such that each map of each kernel is in one choice; of several
    kernels only of the `MAX_CHOICES` cheapest maps of each.

    Of several kernels the first choice has the cheapest maps of each at the sizes that are
    assumed, and so on; a kernel with fewer maps than another repeats its last. Empty if some kernel
    has none.
    """
    alone = len(program.kernels) == 1
    of_kernels = [_ranked(kernel, alone) for kernel in program.kernels]
    if not all(of_kernels):
        return []
    count = max(map(len, of_kernels))
    if not alone:
        count = min(count, MAX_CHOICES)
    return [tuple(maps[min(k, len(maps) - 1)] for maps in of_kernels) for k in range(count)]


def _ranked(kernel: Kernel | Plain, alone: bool) -> list[Maps]:
    """The maps that a kernel admits; if it is not alone, the cheapest first."""
    if isinstance(kernel, Plain):
        return [((), ())]
    admitted = list(assignments(kernel.sgraph))
    if alone:
        return admitted
    graph = kernel.sgraph.graph
    rows = graph.shapes[graph.outputs[0]]
    model = CostModel(assumed_sizes(graph.shapes, rows, {})[-1])
    family = Family(graph)
    maps = [placement.maps for placement in family.placements]
    price = dict(zip(maps, model.prices(family), strict=True))
    return sorted(admitted, key=lambda one: price[one])
