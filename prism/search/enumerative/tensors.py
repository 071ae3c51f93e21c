"""Tiles with symbolic dims: which axes cut each dim, and how operators match and pass dims on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prism.dialects.operators import OPERATORS, Attributes, Kind
from prism.dialects.shapes import ONE, Shape
from prism.search.enumerative.cuts import NEVER, Cuts
from prism.search.terms import Attribute

Dim = tuple[int, ...]
"""Per axis, the literal that says whether it cuts the dim: the dim's coefficients."""


@dataclass(frozen=True, slots=True)
class Tile:
    """
    What the search knows of a value: its whole shape and, per dim and axis, a literal.

    `summed` are the literals, on the loop axis, of the dims that were summed away on the way from
    the inputs; `read` those of all dims of these inputs. `after` says that it is known only when
    the loop has ended.
    """

    shape: Shape
    dims: tuple[Dim, ...]
    summed: frozenset[int]
    read: frozenset[int]
    after: bool = False


def supported(name: str) -> bool:
    """Whether the dims of the operator's result are known here."""
    return name in OPERATORS and OPERATORS[name].kind in _RULES


def apply(
    cuts: Cuts, name: str, attribute: Attribute, operands: Sequence[Tile], shape: Shape, loop: bool
) -> Tile | None:
    """
    The tile that an operator computes, its operands' dims matched in `cuts`; None if they differ.

    A tile of the loop meets one that is known only after it if it is loop-invariant: the loop cuts
    no input that it reads. A function of each element takes a sum that the loop still owes only if
    it is linear; the loop cuts no dim that was summed away before any other. Nor does it cut a dim
    of which the maximum is taken, for accums sum.
    """
    after = any(tile.after for tile in operands)
    if after:
        for tile in operands:
            if not tile.after and not all(cuts.equate(literal, NEVER) for literal in tile.read):
                return None
    operator = OPERATORS[name]
    dim = attribute if isinstance(attribute, int) else None
    uncut: list[int] = []
    if operator.kind in (Kind.UNARY, Kind.SCALAR, Kind.MAX) and not operator.linear:
        uncut += sorted(operands[0].summed)
    if operator.kind is Kind.MAX and loop and dim is not None:
        uncut.append(operands[0].dims[dim][-1])
    if not all(cuts.equate(literal, NEVER) for literal in uncut):
        return None
    result = _RULES[operator.kind](cuts, operands, attribute)
    if result is None:
        return None
    dims, contracted = result
    # The paper's constraint (1) on what is computed: an axis cuts one dim of a tile, or none.
    if len(operands) > 1 and not all(
        cuts.exclude(literals) for literals in zip(*dims, strict=True)
    ):
        return None
    if not cuts.consistent():
        return None
    summed = frozenset(d[-1] for d in contracted) if loop else frozenset[int]()
    return Tile(
        shape,
        dims,
        frozenset[int]() if after else summed.union(*(tile.summed for tile in operands)),
        frozenset[int]().union(*(tile.read for tile in operands)),
        after,
    )


def accumulate(cuts: Cuts, tile: Tile) -> Tile | None:
    """
    The sum of a tile over the loop; None if that is not the whole: the loop must cut a dim that
    was summed away, and none that the tile still has.
    """
    if not all(cuts.equate(dim[-1], NEVER) for dim in tile.dims):
        return None
    if not cuts.require(sorted(tile.summed)):
        return None
    return Tile(tile.shape, tile.dims, frozenset(), tile.read, after=True)


Result = tuple[tuple[Dim, ...], tuple[Dim, ...]]
"""The dims of a result, and the dims that the operator sums away."""


def _same(cuts: Cuts, operands: Sequence[Tile], given: Attribute) -> Result | None:
    return operands[0].dims, ()


def _elementwise(cuts: Cuts, operands: Sequence[Tile], given: Attribute) -> Result | None:
    """Sizes of 1 broadcast; all others match."""
    left, right = operands
    dims: list[Dim] = []
    for size_a, a, size_b, b in zip(left.shape, left.dims, right.shape, right.dims, strict=True):
        if size_a == ONE or size_b == ONE:
            dims.append(b if size_a == ONE else a)
        elif size_a == size_b and cuts.match(a, b):
            dims.append(a)
        else:
            return None
    return tuple(dims), ()


def _matmul(cuts: Cuts, operands: Sequence[Tile], given: Attribute) -> Result | None:
    """Batch dims and the contracted dims match."""
    left, right = operands
    pairs = [(d, d) for d in range(len(left.dims) - 2)]
    pairs.append((len(left.dims) - 1, len(left.dims) - 2))
    for a, b in pairs:
        if left.shape[a] != right.shape[b] or not cuts.match(left.dims[a], right.dims[b]):
            return None
    return (*left.dims[:-1], right.dims[-1]), left.dims[-1:]


def _sum(cuts: Cuts, operands: Sequence[Tile], given: Attribute) -> Result | None:
    """The summed dim has size 1, and no axis cuts it."""
    if not isinstance(given, int):
        return None
    dims = operands[0].dims
    return _without_cut(dims, given), (dims[given],)


def _max(cuts: Cuts, operands: Sequence[Tile], given: Attribute) -> Result | None:
    """As of a sum, but nothing is summed away."""
    result = _sum(cuts, operands, given)
    return None if result is None else (result[0], ())


def _transpose(cuts: Cuts, operands: Sequence[Tile], given: Attribute) -> Result | None:
    """A dim is where the permutation puts it."""
    if not isinstance(given, Attributes) or given.permutation is None:
        return None
    dims = operands[0].dims
    return tuple(dims[d] for d in given.permutation), ()


def _slice(cuts: Cuts, operands: Sequence[Tile], given: Attribute) -> Result | None:
    """No axis cuts the dim that is sliced: a part of it is no part of the slice."""
    if not isinstance(given, Attributes) or given.dim is None:
        return None
    dims = operands[0].dims
    if not all(cuts.equate(literal, NEVER) for literal in dims[given.dim]):
        return None
    return _without_cut(dims, given.dim), ()


def _without_cut(dims: tuple[Dim, ...], dim: int) -> tuple[Dim, ...]:
    return (*dims[:dim], (NEVER,) * len(dims[dim]), *dims[dim + 1 :])


_RULES: Mapping[Kind, Callable[[Cuts, Sequence[Tile], Attribute], Result | None]] = {
    Kind.UNARY: _same,
    Kind.SCALAR: _same,
    Kind.BINARY: _elementwise,
    Kind.MATMUL: _matmul,
    Kind.SUM: _sum,
    Kind.MAX: _max,
    Kind.TRANSPOSE: _transpose,
    Kind.SLICE: _slice,
}
