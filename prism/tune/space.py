"""
The parameter space of a graph: tile extents of its axes, warps, operand order, pipeline stages.

Points are generated under the constraints, axis by axis: a tile is tried only if the smallest tiles
of the axes to come still fit the target. Tiles only add to shared memory and accumulators, so every
prefix that is tried has a point, and nothing is generated and thrown away.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from prism.dialects.sym import GRID_AXES, axis_parameter
from prism.tune.graph import Axis, Graph, SpaceError
from prism.tune.target import Target
from prism.tune.usage import MAX_ACCUMULATORS, accumulators, input_bytes

GRID_TILES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Extents of a tile along a grid axis: multiples of 8, the short side of an mma."""

BATCH_TILES = (1, 2, 4)
"""Extents of a tile along an axis that cuts no dim of a matrix."""

LOOP_TILES = (16, 32, 64, 128, 256, 512)
"""Extents of a tile along a loop axis: multiples of mma's depth of 16."""

WARPS = (1, 2, 4, 8)
SWAPS = (0, 1)
"""1 puts the columns of a product on mma's side of 16 and its rows on the side of 8."""

STAGES = (1, 2, 3, 4)
"""Tiles of a loop step that shared memory holds: 1 loads a step when it is due, n keep n - 1 on
their way by cp.async."""


@dataclass(frozen=True)
class Point:
    """
    One choice of all parameters: `tiles` and `counts` per axis, warps a block, operand order,
    pipeline stages of the loop.

    counts[A] = ceil(extent / tiles[A]), where the extent is the axis's size, or the tile of the
    grid axis that cuts the dim first.
    """

    tiles: Mapping[str, int]
    counts: Mapping[str, int]
    warps: int
    swap: int
    stages: int = 1

    def parameters(self) -> dict[str, int]:
        """The parameters by name: `grid.x`, `tile.x`, `loop.i`, `tile.i`, `warps`, `swap`, ..."""
        values: dict[str, int] = {}
        for axis, tile in self.tiles.items():
            values[axis_parameter(axis)] = self.counts[axis]
            values[f"tile.{axis}"] = tile
        return {**values, "warps": self.warps, "swap": self.swap, "stages": self.stages}


@dataclass(frozen=True)
class Tiling:
    """Tiles and counts of all axes, with the settings that they leave: warps, swap, stages."""

    tiles: Mapping[str, int]
    counts: Mapping[str, int]
    settings: tuple[tuple[int, int, int], ...]


def parameter_names(graph: Graph) -> set[str]:
    """The names of all parameters of a graph."""
    counts = {axis.parameter for axis in graph.axes}
    return {"warps", "swap", "stages"} | counts | {f"tile.{axis.name}" for axis in graph.axes}


class Space:
    """
    All points of a graph that agree with `overrides` (parameter → value) and fit `target`.

    Without a target only the graph bounds them. Raises `SpaceError` if an override names no
    parameter of the graph or has an impossible value; a space may be empty.
    """

    def __init__(
        self,
        graph: Graph,
        target: Target | None = None,
        overrides: Mapping[str, int] | None = None,
    ) -> None:
        self.graph = graph
        self._target = target
        self._overrides = dict(overrides or {})
        known = parameter_names(graph)
        for name in self._overrides:
            if name not in known:
                options = ", ".join(sorted(known))
                raise SpaceError(f"@{graph.name} has no parameter '{name}' (known: {options})")
        self._warps = self._chosen("warps", WARPS)
        self._swaps = self._chosen("swap", SWAPS if graph.products else (0,))
        self._stages = self._chosen("stages", STAGES if graph.loops else (1,))

    @cached_property
    def tilings(self) -> tuple[Tiling, ...]:
        """All tilings that leave at least one setting."""
        return tuple(self._extend(self.graph.axes, {}, {}))

    @property
    def count(self) -> int:
        """The exact number of points."""
        return self._ends[-1] if self._ends else 0

    def points(self) -> Iterator[Point]:
        """All points, in one order."""
        for tiling in self.tilings:
            for setting in tiling.settings:
                yield Point(tiling.tiles, tiling.counts, *setting)

    def point(self, index: int) -> Point:
        """The point of an index in the order of `points`."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        at = bisect.bisect_right(self._ends, index)
        tiling = self.tilings[at]
        before = self._ends[at - 1] if at else 0
        return Point(tiling.tiles, tiling.counts, *tiling.settings[index - before])

    def sample(self, random: Random, number: int) -> list[Point]:
        """Distinct points, each equally likely; all of them if there are no more."""
        return [self.point(i) for i in random.sample(range(self.count), min(number, self.count))]

    def dimensions(self) -> dict[str, tuple[int, ...]]:
        """The values of each parameter that occur in some point, by name."""
        found: dict[str, set[int]] = {}
        for tiling in self.tilings:
            for setting in tiling.settings:
                for name, value in (
                    Point(tiling.tiles, tiling.counts, *setting).parameters().items()
                ):
                    found.setdefault(name, set()).add(value)
        return {name: tuple(sorted(values)) for name, values in found.items()}

    def values(self, name: str) -> tuple[int, ...]:
        """The values of one parameter that occur in some point."""
        return self._dimensions[name]

    def find(self, tiles: tuple[int, ...], setting: tuple[int, int, int]) -> Point | None:
        """The point with these tiles, in the order of the axes, and warps, swap and stages."""
        tiling = self._by_tiles.get(tiles)
        if tiling is None or setting not in tiling.settings:
            return None
        return Point(tiling.tiles, tiling.counts, *setting)

    @cached_property
    def _dimensions(self) -> dict[str, tuple[int, ...]]:
        return self.dimensions()

    @cached_property
    def _by_tiles(self) -> dict[tuple[int, ...], Tiling]:
        return {tuple(tiling.tiles.values()): tiling for tiling in self.tilings}

    @cached_property
    def _ends(self) -> list[int]:
        """The number of points up to and with each tiling."""
        return list(itertools.accumulate(len(tiling.settings) for tiling in self.tilings))

    def _chosen(self, name: str, values: tuple[int, ...]) -> tuple[int, ...]:
        if name not in self._overrides:
            return values
        every = {"warps": WARPS, "swap": SWAPS, "stages": STAGES}[name]
        if self._overrides[name] not in every:
            options = ", ".join(map(str, every))
            raise SpaceError(f"parameter {name}={self._overrides[name]}: expected one of {options}")
        return (self._overrides[name],)

    def _extend(
        self, axes: Sequence[Axis], tiles: Mapping[str, int], counts: Mapping[str, int]
    ) -> Iterator[Tiling]:
        """Grid axes come before the loop axes that divide their tiles."""
        if not axes:
            steps = math.prod(counts[axis] for axis in self.graph.loops)
            yield Tiling(tiles, counts, tuple(self._settings(tiles, steps)))
            return
        axis, *rest = axes
        extent = axis.size if axis.outer is None else tiles[axis.outer]
        for tile in self._tiles_of(axis, extent):
            grown = {**tiles, axis.name: tile}
            if not self._fits(rest, grown):
                if self._overrides:
                    continue  # a larger tile may leave an axis inside it the count asked for
                break  # larger tiles take more still
            counted = {**counts, axis.name: math.ceil(extent / tile)}
            yield from self._extend(rest, grown, counted)

    def _fits(self, rest: Sequence[Axis], tiles: Mapping[str, int]) -> bool:
        """Whether some point has these tiles: the one with the least of all that is open."""
        least = dict(tiles)
        for axis in rest:
            extent = axis.size if axis.outer is None else least[axis.outer]
            options = self._tiles_of(axis, extent)
            if not options:
                return False
            least[axis.name] = options[0]
        return next(iter(self._settings(least, 1)), None) is not None

    def _settings(self, tiles: Mapping[str, int], steps: int) -> Iterator[tuple[int, int, int]]:
        """Warps, swap and stages with which the tiles fit the target; no more stages than steps."""
        if self._target is None:
            yield from itertools.product(self._warps, self._swaps, self._stages)
            return
        once, looped = input_bytes(self.graph, tiles)
        memory = self._target.max_shared_bytes_per_block
        held = {swap: accumulators(self.graph, tiles, swap) for swap in self._swaps}
        for warps, swap in itertools.product(self._warps, self._swaps):
            threads = 32 * warps
            if threads > self._target.max_threads_per_block:
                break
            if held[swap] > MAX_ACCUMULATORS * threads:
                continue
            for stages in self._stages:
                if stages > max(steps, self._stages[0]):
                    break
                if once + stages * looped > memory:
                    break
                yield warps, swap, stages

    def _tiles_of(self, axis: Axis, extent: int) -> tuple[int, ...]:
        """
        The extents of tiles to try, growing; none if none of this extent agrees with the overrides.
        """
        tile = self._overrides.get(f"tile.{axis.name}")
        count = self._overrides.get(axis.parameter)
        if tile is not None or count is not None:
            if tile is None:
                tile = math.ceil(extent / count) if count is not None and count > 0 else 0
            agrees = 1 <= tile <= extent and count in (None, math.ceil(extent / tile))
            return (tile,) if agrees else ()
        options = LOOP_TILES
        if axis.is_grid:
            options = BATCH_TILES if axis.batch else GRID_TILES
        limit = self._grid_limit(axis)
        return tuple(
            option
            for option in (*(option for option in options if option < extent), extent)
            if math.ceil(extent / option) <= limit
        )

    def _grid_limit(self, axis: Axis) -> int:
        if self._target is None or axis.name not in GRID_AXES:
            return 2**31 - 1
        return self._target.max_grid[GRID_AXES.index(axis.name)]
