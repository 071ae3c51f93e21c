"""Programs in torch: the float64 reference, and the baselines eager and `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from prism.runtime.program import Instruction, Program
from prism.runtime.reference import ArrayLibrary, Meaning, evaluate


class TorchArrays:
    """`prism.runtime.reference.ArrayLibrary` of torch; tensors keep their type and device."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}

    def exp(self, x: Any) -> Any:
        return self._torch.exp(x)

    def log(self, x: Any) -> Any:
        return self._torch.log(x)

    def sqrt(self, x: Any) -> Any:
        return self._torch.sqrt(x)

    def tanh(self, x: Any) -> Any:
        return self._torch.tanh(x)

    def erf(self, x: Any) -> Any:
        return self._torch.erf(x)

    def matmul(self, x: Any, y: Any) -> Any:
        return self._torch.matmul(x, y)

    def maximum(self, x: Any, y: Any) -> Any:
        return self._torch.maximum(x, y)

    def clip(self, x: Any, lower: float | None, upper: float | None) -> Any:
        return self._torch.clamp(x, lower, upper)

    def sum(self, x: Any, dim: int) -> Any:
        return self._torch.sum(x, dim=dim, keepdim=True)

    def mean(self, x: Any, dim: int) -> Any:
        return self._torch.mean(x, dim=dim, keepdim=True)

    def max(self, x: Any, dim: int) -> Any:
        return self._torch.amax(x, dim=dim, keepdim=True)

    def transpose(self, x: Any, permutation: tuple[int, ...]) -> Any:
        return self._torch.permute(x, permutation)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        return self._torch.broadcast_to(x, shape)

    def concat(self, arrays: Sequence[Any], dim: int) -> Any:
        return self._torch.cat(list(arrays), dim=dim)

    def cast(self, x: Any, dtype: str) -> Any:
        """A cast is the identity over the reals: a float64 reference stays float64."""
        return x if x.dtype == self._torch.float64 else x.to(self._types[dtype])


def _whole_operators(torch: Any) -> dict[str, Meaning]:
    """torch's own functions for whole operators, as one would write the workload in torch."""
    functions = torch.nn.functional

    def rms_norm(lib: ArrayLibrary, a: Sequence[Any], i: Instruction) -> Any:
        return functions.rms_norm(a[0], (i.shape[-1],), eps=i.constants[0])

    def softmax(lib: ArrayLibrary, a: Sequence[Any], i: Instruction) -> Any:
        return functions.softmax(a[0], dim=i.dim)

    def log_softmax(lib: ArrayLibrary, a: Sequence[Any], i: Instruction) -> Any:
        return functions.log_softmax(a[0], dim=i.dim)

    return {
        "rms_norm": rms_norm,
        "softmax": softmax,
        "log_softmax": log_softmax,
        "silu": lambda lib, a, i: functions.silu(a[0]),
        "sigmoid": lambda lib, a, i: torch.sigmoid(a[0]),
        "gelu": lambda lib, a, i: functions.gelu(a[0]),
        "gelu_tanh": lambda lib, a, i: functions.gelu(a[0], approximate="tanh"),
        "rsqrt": lambda lib, a, i: torch.rsqrt(a[0]),
        "square": lambda lib, a, i: torch.square(a[0]),
    }


def torch_function(torch: Any, program: Program) -> Callable[..., Any]:
    """The workload as a torch function of its inputs, in their own type: the eager baseline."""
    library, overrides = TorchArrays(torch), _whole_operators(torch)

    def workload(*inputs: Any) -> Any:
        return tuple(evaluate(program, inputs, library, overrides))

    return workload


def float64_outputs(torch: Any, program: Program, inputs: Sequence[Any]) -> list[Any]:
    """The reference: the program in float64 on the inputs' device, as float64 numpy arrays."""
    exact = [array.to(torch.float64) for array in inputs]
    return [output.cpu().numpy() for output in evaluate(program, exact, TorchArrays(torch))]


def to_torch(torch: Any, dtype: str, array: Any, device: str) -> Any:
    """A tensor of a numpy array in storage type: the bits of bf16 are reinterpreted."""
    tensor = torch.from_numpy(array.view("int16") if dtype == "bf16" else array).to(device)
    return tensor.view(torch.bfloat16) if dtype == "bf16" else tensor


def to_storage(torch: Any, tensor: Any) -> Any:
    """The numpy array, in storage type, of a tensor."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).cpu().numpy().view("uint16")
    return tensor.cpu().numpy()
