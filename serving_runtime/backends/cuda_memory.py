"""CUDA stream, with pinned and device memory for a model's tensors, by CUDA's own Python bindings.

Built to the CUDA runtime API's documentation; not verified on hardware.
"""

import ctypes
from typing import Any

import numpy as np
from cuda.bindings import runtime as cudart

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import BackendError


class Stage:
    """Memory of one tensor, on the host (pinned) and on the device; grows, and belongs to one stream."""

    def __init__(self, stream: "Stream") -> None:
        self._stream = stream
        self._size_bytes = 0
        self._host = self.device = 0

    def reserve(self, size_bytes: int) -> int:
        """Return the address of at least so many bytes on the device."""
        if size_bytes > self._size_bytes or not self.device:
            self.free()
            size_bytes = max(size_bytes, 1)  # a tensor without elements has an address too
            self._host = int(checked(cudart.cudaMallocHost(size_bytes)))
            self.device = int(checked(cudart.cudaMalloc(size_bytes)))
            self._size_bytes = size_bytes
        return self.device

    def send(self, array: Array) -> int:
        """Copy an array to the device, in the stream's order; returns its address there."""
        array = np.ascontiguousarray(array)
        self.reserve(array.nbytes)
        ctypes.memmove(self._host, array.ctypes.data, array.nbytes)
        kind = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
        checked(cudart.cudaMemcpyAsync(self.device, self._host, array.nbytes, kind, self._stream.handle))
        return self.device

    def fetch(self, size_bytes: int) -> None:
        """Copy device memory into pinned memory, in the stream's order."""
        kind = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
        checked(cudart.cudaMemcpyAsync(self._host, self.device, size_bytes, kind, self._stream.handle))

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return the fetched tensor, in its own memory; the stream has been synchronized."""
        found = np.empty(shape, dtype)
        ctypes.memmove(found.ctypes.data, self._host, found.nbytes)
        return found

    def free(self) -> None:
        if self.device:
            checked(cudart.cudaFree(self.device))
            checked(cudart.cudaFreeHost(self._host))
        self._host = self.device = self._size_bytes = 0


class Stream:
    """A stream of one device; every thread that uses it calls `enter` first."""

    def __init__(self, gpu: int) -> None:
        self._gpu = gpu
        self.enter()
        self.handle = int(checked(cudart.cudaStreamCreate()))

    def enter(self) -> None:
        """Make the device this thread's (CUDA: the current device is a thread's own)."""
        checked(cudart.cudaSetDevice(self._gpu))

    def wait(self) -> None:
        checked(cudart.cudaStreamSynchronize(self.handle))

    def close(self) -> None:
        checked(cudart.cudaStreamDestroy(self.handle))


def checked(answer: Any) -> Any:
    """Return the result of a runtime call without its error code; raises BackendError for an error."""
    error, *found = answer
    if error != cudart.cudaError_t.cudaSuccess:
        reason = cudart.cudaGetErrorString(error)[1]
        raise BackendError(f"CUDA failed: {reason.decode() if isinstance(reason, bytes) else reason}")
    return found[0] if found else None
