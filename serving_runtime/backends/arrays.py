"""Request arrays in the form that libraries require."""

import ctypes

import numpy as np

from serving_runtime.common.datatypes import Array


def writable(array: Array) -> Array:
    """Return a writable array on the same memory, for libraries that require one but only read it.

    The memory is the caller's, who keeps `array` as long as the result is used.
    """
    array = np.ascontiguousarray(array)
    if array.flags.writeable or not array.size:
        return array
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    return np.frombuffer(memoryview(memory), array.dtype).reshape(array.shape)
