"""
Ranges of shapes: which graph and parameters serve which sizes of one symbol.

Sizes are constants of the PTX, so every size has kernels of its own; what a range shares is the
choice. A section of the range keeps one choice as long as it costs, by the model, at most `SLACK`
times the best of each of its sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from prism.dialects.sym import axis_parameter
from prism.tune.bindings import MAX_SIZE, BindingError
from prism.tune.choose import Choice, TuneError, choose
from prism.tune.graph import SpaceError
from prism.tune.target import Target

SLACK = 1.05
"""What a size may cost, over its own best by the model."""

MAX_SIZES = 64
"""Sizes of a range: each is compiled, and has its kernels in the bundle."""

_RANGE = re.compile(r"\s*([A-Za-z_][\w$.]*)\s*=\s*(\d{1,10})\.\.(\d{1,10})\s*")


@dataclass(frozen=True)
class ShapeRange:
    """`n=1..64,d=4096`: the symbol that varies, its ends (both included), the text of the rest."""

    symbol: str
    first: int
    last: int
    others: str

    @property
    def sizes(self) -> range:
        """Every size of the symbol."""
        return range(self.first, self.last + 1)

    def shape(self, size: int) -> str:
        """The text of `--shape` for one size."""
        own = f"{self.symbol}={size}"
        return f"{own},{self.others}" if self.others else own


@dataclass(frozen=True)
class Section:
    """Sizes from `first` to `last` that share a graph and parameters; a choice for each size."""

    first: int
    last: int
    graph: str
    parameters: Mapping[str, int]
    choices: Mapping[int, Choice]
    best_seconds: Mapping[int, float]

    @property
    def worst(self) -> float:
        """The largest cost of a size over its own best, by the model."""
        return max(self.choices[size].cost.seconds / self.best_seconds[size] for size in self.sizes)

    @property
    def sizes(self) -> range:
        """Every size of the section."""
        return range(self.first, self.last + 1)


def parse_range(text: str, option: str = "--shape") -> ShapeRange | None:
    """
    The range in a text of sizes, None if all are single sizes.

    Raises `BindingError` for two ranges, an empty one, or one of more than `MAX_SIZES` sizes.
    """
    parts = text.split(",")
    found = [(part, match) for part in parts if (match := _RANGE.fullmatch(part))]
    if not found:
        return None
    if len(found) > 1:
        raise BindingError(f"{option}: expected one range, found {len(found)}", found[1][1][1])
    part, match = found[0]
    symbol, first, last = match[1], int(match[2]), int(match[3])
    where = f"{option}: {symbol}={first}..{last}"
    if not 1 <= first <= last <= MAX_SIZE:
        raise BindingError(f"{where} is no range of sizes from 1", symbol)
    if last - first + 1 > MAX_SIZES:
        raise BindingError(
            f"{where} has {last - first + 1} sizes; a bundle takes at most {MAX_SIZES}, since each "
            "has kernels of its own; split the range",
            symbol,
        )
    return ShapeRange(symbol, first, last, ",".join(each for each in parts if each != part))


def shared_parameters(choice: Choice) -> dict[str, int]:
    """
    What makes choices at two sizes the same: tiles, warps, operand order and stages.

    An axis in one piece stays in one piece, whatever its extent; otherwise its tile is kept.
    """
    point = choice.point
    shared = {
        axis_parameter(axis) if point.counts[axis] == 1 else f"tile.{axis}": 1
        if point.counts[axis] == 1
        else tile
        for axis, tile in point.tiles.items()
    }
    return {**shared, "warps": point.warps, "swap": point.swap, "stages": point.stages}


def plan(
    candidates: Sequence[FuncOp],
    shape: ShapeRange,
    sizes_at: Callable[[int], Mapping[str, int]],
    target: Target,
) -> list[Section]:
    """
    Sections that cover every size of a range once, in order, each within `SLACK` of its best.

    `sizes_at` gives the sizes of all symbols. Raises what `choose` raises for a size that nothing
    fits.
    """

    def serve(choice: Choice, size: int) -> Choice | None:
        try:
            return choose([choice.candidate], sizes_at(size), target, shared_parameters(choice))
        except (TuneError, SpaceError):
            return None

    best = {size: choose(candidates, sizes_at(size), target) for size in shape.sizes}
    return divide(best, serve)


def divide(
    best: Mapping[int, Choice], serve: Callable[[Choice, int], Choice | None]
) -> list[Section]:
    """
    Cut consecutive sizes into as few sections as the best choices of the sizes allow.

    `serve` is a choice carried over to another size, or None where it does not fit. From the left
    each section takes the choice that reaches farthest, which no other order of cuts beats.
    """
    sections: list[Section] = []
    known: dict[tuple[str, tuple[tuple[str, int], ...], int], Choice | None] = {}
    size, last = min(best), max(best)

    def carried(choice: Choice, to: int) -> Choice | None:
        if choice is best[to]:
            return choice
        key = (
            choice.candidate.sym_name.data,
            tuple(shared_parameters(choice).items()),
            to,
        )
        if key not in known:
            known[key] = serve(choice, to)
        found = known[key]
        if found is None or found.cost.seconds > SLACK * best[to].cost.seconds:
            return None
        return found

    while size <= last:
        longest: tuple[Choice, dict[int, Choice]] | None = None
        tried: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
        for choice in (best[each] for each in (*range(size, last + 1), *range(min(best), size))):
            signature = (
                choice.candidate.sym_name.data,
                tuple(shared_parameters(choice).items()),
            )
            if signature in tried:
                continue
            tried.add(signature)
            reached: dict[int, Choice] = {}
            for each in range(size, last + 1):
                found = carried(choice, each)
                if found is None:
                    break
                reached[each] = found
            if longest is None or len(reached) > len(longest[1]):
                longest = choice, reached
        if longest is None or not longest[1]:
            raise ValueError(f"the best choice of size {size} does not serve it")
        choice, reached = longest
        sections.append(
            Section(
                size,
                size + len(reached) - 1,
                choice.candidate.sym_name.data,
                shared_parameters(choice),
                reached,
                {each: best[each].cost.seconds for each in reached},
            )
        )
        size += len(reached)
    return sections
