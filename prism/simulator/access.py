"""Loads and stores: data between registers and the memories, with the checks and counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.errors import OutOfBoundsError, RaceError
from prism.simulator.memory import LOCAL_WINDOW, SHARED_WINDOW, SHIFT, first
from prism.simulator.sanitizer import WRITTEN
from prism.simulator.types import Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.machine import Machine


@dataclass(frozen=True)
class AccessPlan:
    """What is known of a load or store when it is decoded; `space` is '' for a generic address."""

    space: str
    type: ScalarType
    count: int
    line: int

    @property
    def bytes(self) -> int:
        return self.type.bytes * self.count

    def in_space(self, space: str) -> AccessPlan:
        return replace(self, space=space)


def load(x: Machine, plan: AccessPlan, address: Array, shift: int) -> list[Array]:
    """Reads `plan.count` values (raw bits of the type's width) at address + shift in every lane."""
    if plan.space == "shared":
        data = _load_shared(x, plan, address, shift)
    elif plan.space in ("global", "const"):
        offset = x.memory.offsets(x, address, shift, plan.bytes, plan.line)
        if plan.space == "global":
            x.meter.read(x, offset, plan.bytes)
            x.memory.check_written(x, offset, plan.bytes, plan.line)
        data = x.memory.views[plan.bytes].take(offset >> SHIFT[plan.bytes])
    elif plan.space == "local":
        offset = x.local.offsets(x, address, shift, plan.bytes, plan.line) + x.local.row
        data = x.local.views[plan.bytes].take(offset >> SHIFT[plan.bytes])
    else:
        return _load_generic(x, plan, address, shift)
    bits = np.dtype(f"u{plan.type.bytes}")
    if plan.count == 1:
        return [data.view(bits)]
    parts = data.view(bits).reshape(*data.shape, plan.count)
    # One contiguous array per register: instructions to come are faster on them.
    return list(np.ascontiguousarray(np.moveaxis(parts, -1, 0)))


def _load_shared(x: Machine, plan: AccessPlan, address: Array, shift: int) -> Array:
    width = plan.bytes
    offset = x.shared.offsets(x, address, shift, width, plan.line)
    x.meter.shared(x, offset, width)
    if x.shared_state is not None:
        x.shared_state.check_read(x, offset, width, plan.line)
    if x.races is not None:
        x.races.read(x, offset, width, plan.line)
    view = x.shared.views[width]
    if offset.shape[0] == 1 and x.blocks > 1:
        # The same places in every block: no index per block is needed.
        rows = view.reshape(x.blocks, -1)
        return rows.take(offset[0] >> SHIFT[width], axis=1)
    return view.take((offset + x.shared.row) >> SHIFT[width])


def store(x: Machine, plan: AccessPlan, address: Array, shift: int, values: list[Array]) -> None:
    """Writes values (raw bits of the type's width) at address + shift in the active lanes."""
    width = plan.bytes
    clash: Array | None = None
    if plan.space == "shared":
        offset = x.shared.offsets(x, address, shift, width, plan.line)
        x.meter.shared(x, offset, width)
        if x.shared_state is not None:
            x.shared_state.mark(x, offset, width, WRITTEN, plan.line)
        if x.races is not None:
            clash = x.races.write(x, offset, width, plan.line)
        offset = offset + x.shared.row
        view = x.shared.views[width]
    elif plan.space == "global":
        offset = x.memory.offsets(x, address, shift, width, plan.line)
        x.meter.write(x, offset, width)
        x.memory.mark_written(x, offset, width)
        view = x.memory.views[width]
    elif plan.space == "local":
        offset = x.local.offsets(x, address, shift, width, plan.line) + x.local.row
        view = x.local.views[width]
    else:
        _store_generic(x, plan, address, shift, values)
        return
    slots = offset >> SHIFT[width]
    data = values[0]
    if len(values) > 1:
        shape = np.broadcast_shapes(*[value.shape for value in values])
        data = np.stack([np.broadcast_to(value, shape) for value in values], axis=-1)
        data = data.view(view.dtype)[..., 0]
    scatter(x, view, slots, data)
    if clash is not None:
        _expect_same(x, plan.line, view, slots, data, clash)


def _expect_same(
    x: Machine, line: int, view: Array, slots: Array, data: Array, clash: Array
) -> None:
    """Faults if a lane that wrote at once with another warp does not find its value."""
    slots, data, lanes = np.broadcast_arrays(slots, data, clash)
    found, written = view[slots[lanes]], np.ascontiguousarray(data[lanes])
    # As bytes: wide values move as complex numbers, of which a NaN equals nothing.
    bad = (found.view(np.uint8) != written.view(np.uint8)).reshape(len(found), -1).any(axis=1)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(lanes)[int(np.argmax(bad))])
        message = "shared write races: another warp writes another value there at the same time"
        x.fault(RaceError, line, message, where)


def scatter(x: Machine, view: Array, slots: Array, data: Array) -> None:
    """Writes data to slots of a view in the lanes that take part; of equal slots one lane wins."""
    if x.exact is not None:
        slots, data, lanes = np.broadcast_arrays(slots, data, x.exact)
        view[slots[lanes]] = data[lanes]
    elif slots.shape == data.shape:
        view[slots.ravel()] = data.ravel()
    else:
        slots, data = np.broadcast_arrays(slots, data)
        view[slots.ravel()] = data.ravel()


def spaces_of(x: Machine, address: Array, line: int) -> list[tuple[str, Array]]:
    """
    The spaces that generic addresses lie in, each with the addresses in it.

    With several spaces, `x.exact` must be narrowed to the lanes of each before its turn.
    """
    shared, local = np.uint64(SHARED_WINDOW), np.uint64(LOCAL_WINDOW)
    window = address >> np.uint64(56)
    lanes = np.ones((1, 1), np.bool_) if x.exact is None else x.exact
    found: list[tuple[str, Array]] = []
    for number, space, base in (
        (0, "global", np.uint64(0)),
        (1, "shared", shared),
        (2, "local", local),
    ):
        inside = (window == number) & lanes
        if inside.any():
            found.append((space, address - base))
    outside = (window > 2) & lanes
    if outside.any():
        where = first(outside)
        place = int(np.broadcast_to(address, outside.shape)[where])
        x.fault(OutOfBoundsError, line, f"generic access at {hex(place)}", where)
    return found


def _lanes_in(x: Machine, space: str, address: Array) -> Array:
    number = ("global", "shared", "local").index(space)
    inside = (address >> np.uint64(56)) == number
    return inside if x.exact is None else inside & x.exact


def _load_generic(x: Machine, plan: AccessPlan, address: Array, shift: int) -> list[Array]:
    spaces = spaces_of(x, address, plan.line)
    if len(spaces) == 1:
        space, within = spaces[0]
        return load(x, plan.in_space(space), within, shift)
    result: list[Array] | None = None
    exact, active = x.exact, x.active
    for space, within in spaces:
        lanes = _lanes_in(x, space, address)
        x.exact, x.active = lanes, x.lanes(lanes)
        part = load(x, plan.in_space(space), within, shift)
        x.exact, x.active = exact, active
        if result is None:
            result = part
        else:
            result = [np.where(lanes, new, old) for new, old in zip(part, result, strict=True)]
    return result or []


def _store_generic(
    x: Machine, plan: AccessPlan, address: Array, shift: int, values: list[Array]
) -> None:
    spaces = spaces_of(x, address, plan.line)
    exact, active = x.exact, x.active
    for space, within in spaces:
        if len(spaces) > 1:
            lanes = _lanes_in(x, space, address)
            x.exact, x.active = lanes, x.lanes(lanes)
        store(x, plan.in_space(space), within, shift, values)
        x.exact, x.active = exact, active
