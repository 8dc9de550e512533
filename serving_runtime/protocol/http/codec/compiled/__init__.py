"""JIT-compiled JSON number reader, where numba is installed."""
