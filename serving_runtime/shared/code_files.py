"""Code files: files that an interpreter or the dynamic loader could run and that no backend reads.

They are copied to a model's folder only where Python models are allowed: by the agent and jobs of one machine, and by
the command `prepare` of a pod.
"""

from pathlib import Path

_SUFFIXES = {".egg-link", ".pth", ".py", ".pyc", ".pyd", ".pyo", ".pyw", ".so"}
_ELF = b"\x7fELF"


def is_code_file(path: Path) -> bool:
    """Return whether a file is code that no backend reads, by its name, or because it is a shared library or program.

    A `model.py` marks a Python model for the runtime, which itself refuses it where such models are not allowed.
    """
    if path.suffix.lower() in _SUFFIXES and path.name != "model.py":
        return True
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF
