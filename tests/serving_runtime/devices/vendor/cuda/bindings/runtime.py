"""A stand-in for CUDA's runtime API: its device memory is the process's own. It counts what is not given back."""

import ctypes
import enum

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]

alive: set[int] = set()


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2


class cudaMemcpyKind(enum.IntEnum):
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2


_DONE = cudaError_t.cudaSuccess
_MOST_BYTES = 1 << 32


def _allocated(size):
    if size > _MOST_BYTES:
        return cudaError_t.cudaErrorMemoryAllocation, None
    address = _libc.malloc(size)
    alive.add(address)
    return _DONE, address


def _freed(address):
    alive.remove(address)
    _libc.free(address)
    return (_DONE,)


cudaMalloc = cudaMallocHost = _allocated
cudaFree = cudaFreeHost = _freed


def cudaMemcpyAsync(target, source, size, kind, stream):
    if stream not in alive:
        return (cudaError_t.cudaErrorInvalidValue,)
    ctypes.memmove(target, source, size)
    return (_DONE,)


def cudaSetDevice(device):
    return (_DONE,) if device == 0 else (cudaError_t.cudaErrorInvalidValue,)


def cudaStreamCreate():
    return _allocated(1)


def cudaStreamDestroy(stream):
    return _freed(stream)


def cudaStreamSynchronize(stream):
    return (_DONE,)


def cudaGetErrorString(error):
    return _DONE, {2: b"out of memory"}.get(int(error), b"invalid argument")
