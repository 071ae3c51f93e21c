"""As much of torch as `tools/gpu_check` uses, on numpy arrays, with graphs that replay launches."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from prism.runtime.bundle import Bundle
from prism.runtime.launch import run_bundle


class FakeTensor:
    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = array.dtype.name

    def clone(self) -> "FakeTensor":
        return FakeTensor(self.array.copy())

    def fill_(self, value: float) -> None:
        self.array.fill(value)

    def copy_(self, other: "FakeTensor") -> None:
        self.array[:] = other.array

    def to(self, what: str) -> "FakeTensor":
        return self if what in ("cuda", "cpu") else FakeTensor(self.array.astype(what))

    def cpu(self) -> "FakeTensor":
        return self

    def numpy(self) -> Any:
        return self.array

    def __mul__(self, other: float) -> "FakeTensor":
        return FakeTensor(self.array * other)


class FakeTorch:
    """The module; `launch` runs at once, or on each replay if a graph is being captured."""

    float16, float32, float64, bfloat16 = "float16", "float32", "float64", "bfloat16"
    __version__ = "fake"
    version = SimpleNamespace(cuda="13.0")
    nn = SimpleNamespace(functional=SimpleNamespace())

    def __init__(self) -> None:
        self.capturing: list[Callable[[], None]] | None = None
        self.replays = 0
        self.available = True
        self.compiles = True
        stream = SimpleNamespace(wait_stream=lambda other: None)
        self.cuda = SimpleNamespace(
            is_available=lambda: self.available,
            get_device_properties=lambda ordinal: SimpleNamespace(
                name="Fake GPU", major=9, minor=0, L2_cache_size=100
            ),
            mem_get_info=lambda: (1 << 20, 1 << 20),
            synchronize=lambda: None,
            Stream=lambda: stream,
            current_stream=lambda: stream,
            stream=lambda stream: self.nothing(),
            graph=self.graph,
            CUDAGraph=lambda: SimpleNamespace(launches=[], replay=lambda: None),
            Event=lambda enable_timing: SimpleNamespace(
                record=lambda: None, synchronize=lambda: None, elapsed_time=lambda end: 0.5
            ),
        )

    @contextmanager
    def nothing(self) -> Generator[None]:
        yield

    @contextmanager
    def graph(self, graph: Any) -> Generator[None]:
        self.capturing = graph.launches
        graph.replay = lambda: self.replay(graph)
        yield
        self.capturing = None

    def replay(self, graph: Any) -> None:
        self.replays += 1
        for launch in graph.launches:
            launch()

    def launch(self, work: Callable[[], None]) -> None:
        if self.capturing is None:
            work()
        else:
            self.capturing.append(work)

    def from_numpy(self, array: Any) -> FakeTensor:
        return FakeTensor(array.copy())

    def full(self, shape: Any, value: float, *, dtype: str, device: str) -> FakeTensor:
        return FakeTensor(np.full(shape, value, dtype))

    def ones(self, count: int, *, dtype: str, device: str) -> FakeTensor:
        return FakeTensor(np.ones(count, dtype))

    def empty_like(self, tensor: FakeTensor) -> FakeTensor:
        return tensor.clone()

    def equal(self, one: FakeTensor, other: FakeTensor) -> bool:
        return one.array.tobytes() == other.array.tobytes()

    def square(self, tensor: FakeTensor) -> FakeTensor:
        return FakeTensor(tensor.array**2)

    def sigmoid(self, tensor: FakeTensor) -> FakeTensor:
        raise NotImplementedError

    rsqrt = sigmoid

    def compile(self, function: Any, *, fullgraph: bool, dynamic: bool) -> Any:
        def broken(*inputs: Any) -> Any:
            raise RuntimeError("Unsupported:\n  the operator")

        return function if self.compiles else broken


class FakeLoaded:
    """`LoadedBundle` with the launch replaced by the simulator; `broken` replays write nothing."""

    torch: FakeTorch
    broken = False
    writes_input = False

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle

    def __call__(self, *inputs: FakeTensor, out: list[FakeTensor]) -> None:
        manifest = self._bundle.manifest
        captured = self.torch.capturing is not None

        def work() -> None:
            if captured and self.broken:
                return
            names = [entry.name for entry in manifest.inputs]
            arrays = dict(zip(names, (tensor.array for tensor in inputs), strict=True))
            outputs = run_bundle(self._bundle, arrays).outputs
            for entry, tensor in zip(manifest.outputs, out, strict=True):
                tensor.array[:] = outputs[entry.name]
            if self.writes_input:
                inputs[0].array[0, 0] = 7

        self.torch.launch(work)
