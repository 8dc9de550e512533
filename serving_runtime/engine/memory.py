"""This process's memory."""

import ctypes


def _trimmer() -> "ctypes._FuncPointer | None":
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's only


_malloc_trim = _trimmer()


def give_back() -> None:
    """Return freed memory to the operating system, which glibc else keeps for later."""
    if _malloc_trim is not None:
        _malloc_trim(0)
