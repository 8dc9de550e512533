"""A request's arrays as libraries want them."""

import ctypes

import numpy as np

from serving_runtime.common.datatypes import Array


def writable(array: Array) -> Array:
    """Return an array on the same memory that says it may be written; for libraries that only read it, but ask.

    The memory is the caller's, who keeps `array` as long as the result is used.
    """
    array = np.ascontiguousarray(array)
    if array.flags.writeable or not array.size:
        return array
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    return np.frombuffer(memoryview(memory), array.dtype).reshape(array.shape)
