"""CUDA execution of a torch program: its own stream, copies through pinned memory, CUDA graphs for some batch sizes.

Built to CUDA's and torch's documentation; not verified on hardware.

    host array -> pinned -> device -> program -> device -> pinned -> host array
    (all but the first and the last step in the stream's order, without the CPU waiting in between)

A graph (torch.cuda.CUDAGraph) replays one batch size without launching kernel by kernel. Smaller batches are padded
with zeros to the next size; larger ones run without a graph.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

_WARM_UPS = 3  # torch: CUDA semantics, CUDA graphs: a few runs on a side stream before the capture


class CudaRunner:
    """Runs a program, one run at a time; `run` may be called from any thread."""

    def __init__(
        self,
        device: str,
        call: Callable[[Sequence[Any]], Sequence[Any]],
        inputs: Sequence[tuple[tuple[int, ...], Any]],
        graph_sizes: Sequence[int],
    ) -> None:
        """Capture a graph per batch size.

        Args:
            inputs: shape and dtype of each; graphs need every dimension but the first to be known.
        """
        self._device = torch.device(device)
        self._call = call
        self._lock = threading.Lock()
        self._stream = torch.cuda.Stream(self._device)
        self._pinned: dict[int, Any] = {}
        self._graphs = {size: _Graph(self._device, self._stream, call, inputs, size) for size in graph_sizes}

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        """Return outputs in their own host memory for inputs in host memory."""
        with self._lock, torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            rows = len(tensors[0])
            size = next((size for size in self._graphs if size >= rows), None)
            staged = [self._stage(index, tensor) for index, tensor in enumerate(tensors)]
            if size is None:
                found = self._call([tensor.to(self._device, non_blocking=True) for tensor in staged])
            else:
                found = [tensor[:rows] for tensor in self._graphs[size].replay(staged, rows)]
            answers = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for tensor in found]
            for answer, tensor in zip(answers, found, strict=True):
                answer.copy_(tensor, non_blocking=True)
            self._stream.synchronize()
            return answers

    def close(self) -> None:
        """Release device and pinned memory."""
        with self._lock:
            self._graphs.clear()
            self._pinned.clear()
            torch.cuda.empty_cache()

    def _stage(self, index: int, tensor: Any) -> Any:
        """Return an input in pinned memory, which is reused by the next run."""
        kept = self._pinned.get(index)
        if kept is None or kept.numel() < tensor.numel():
            kept = self._pinned[index] = torch.empty(tensor.numel(), dtype=tensor.dtype, pin_memory=True)
        staged = kept[: tensor.numel()].view(tensor.shape)
        staged.copy_(tensor)
        return staged


class _Graph:
    """A captured run of one batch size, with its fixed inputs and outputs."""

    def __init__(
        self,
        device: Any,
        stream: Any,
        call: Callable[[Sequence[Any]], Sequence[Any]],
        inputs: Sequence[tuple[tuple[int, ...], Any]],
        size: int,
    ) -> None:
        shapes = [(size, *(1 if dim == -1 else dim for dim in shape[1:])) for shape, _ in inputs]
        self._inputs = [
            torch.zeros(shape, dtype=dtype, device=device) for shape, (_, dtype) in zip(shapes, inputs, strict=True)
        ]
        with torch.cuda.device(device), torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                call(self._inputs)
            stream.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=stream):
                self._outputs = call(self._inputs)

    def replay(self, staged: Sequence[Any], rows: int) -> Sequence[Any]:
        """Return the outputs of all rows of the graph, which the next replay overwrites."""
        for target, tensor in zip(self._inputs, staged, strict=True):
            target[:rows].copy_(tensor, non_blocking=True)
            target[rows:].zero_()
        self._graph.replay()
        return self._outputs
