"""
The workload of a bundle as data: operators on whole arrays, one after the other.

What `workload.mlir` says for all sizes, at the sizes of the bundle, so that a machine without xDSL
can compute the reference. `prism.runtime.reference` evaluates it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from prism.runtime.dtypes import ELEMENT_TYPES
from prism.runtime.schema import SchemaError

MAX_INSTRUCTIONS = 100_000


@dataclass(frozen=True)
class Instruction:
    """
    One operator of the operator table, with its attributes at the sizes of the bundle.

    `operands` number values: the inputs of the workload first, then the result of each instruction.
    `constants` are its constant, or its lower and upper bound. `shape` and `dtype` are those of the
    result.
    """

    operator: str
    operands: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    dim: int | None
    constants: tuple[float, ...]
    permutation: tuple[int, ...] | None


@dataclass(frozen=True)
class Program:
    """Instructions in order, and the numbers of the values that the workload returns."""

    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]


def validate_program(
    program: Program, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]
) -> None:
    """
    Check that values are used after they are made and that shapes are those of the buffers.

    Raises `SchemaError` naming the instruction. Whether an operator is known is for the evaluation
    to say: a bundle runs without it.
    """
    if len(program.instructions) > MAX_INSTRUCTIONS:
        raise SchemaError(f"program: more than {MAX_INSTRUCTIONS} instructions")
    shapes = list(inputs)
    for position, instruction in enumerate(program.instructions):
        where = f"program.instructions[{position}]"
        if not instruction.operands:
            raise SchemaError(f"{where}: expected operands")
        for operand in instruction.operands:
            if not 0 <= operand < len(shapes):
                raise SchemaError(f"{where}: uses value {operand} of {len(shapes)}")
        ranks = {len(shapes[operand]) for operand in instruction.operands}
        rank = max(*ranks, len(instruction.shape))
        if rank > 16 or not all(0 < size < 2**48 for size in instruction.shape):
            raise SchemaError(f"{where}: bad shape")
        if instruction.dtype not in ELEMENT_TYPES:
            raise SchemaError(f"{where}: unknown dtype '{instruction.dtype}'")
        if instruction.dim is not None and not 0 <= instruction.dim < rank:
            raise SchemaError(f"{where}: bad dim")
        if not all(math.isfinite(constant) for constant in instruction.constants):
            raise SchemaError(f"{where}: a constant that is not finite")
        permutation = instruction.permutation
        if permutation is not None and sorted(permutation) != list(range(rank)):
            raise SchemaError(f"{where}: bad permutation")
        shapes.append(instruction.shape)
    for output in program.outputs:
        if not 0 <= output < len(shapes):
            raise SchemaError(f"program.outputs: no value {output}")
    if [shapes[output] for output in program.outputs] != list(outputs):
        raise SchemaError("program.outputs: shapes differ from those of the outputs")
