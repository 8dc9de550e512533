"""Which files a model pool loads: its process is that of all models, of one team or several. Pure.

code       in Python, in a sandboxed process of its own where the operator allows that; other code never
native     what the catalog says is checked, since a parser's flaw would reach the memory of other models
"""

from typing import Any

from serving_runtime.backends import registry
from serving_runtime.common.errors import CodeNotAllowed, ModelError

PYTHON = "python"
ONNX, ARENA = "onnxruntime", "enable_mem_arena"
CODE_FILE = "model.py"
_ELSEWHERE = "give the service replicas of its own"


def check(backend: str, filename: str, *, checked: bool, with_code: bool) -> None:
    """Raise CodeNotAllowed, or ModelError, for what a pool does not load.

    Args:
        filename: the config's default_model_filename; may be empty.
        checked: whether the catalog says that this version passed its check.
        with_code: --allow-python-models.
    """
    if backend == PYTHON:
        if not with_code:
            raise CodeNotAllowed(
                f"it is code (backend '{PYTHON}'), which a pool runs only in sandboxed processes, by "
                f"--allow-python-models=true of its runtime; allow it, or {_ELSEWHERE}"
            )
        if filename not in ("", CODE_FILE):
            raise ModelError(f"default_model_filename is '{filename}'; in a pool it must be {CODE_FILE}")
        return
    built_in = registry.BUILT_IN.get(backend)
    if built_in is not None and built_in.code:
        raise CodeNotAllowed(
            f"backend '{backend}' {built_in.code}, and a pool has no sandbox of a model's own for it; {_ELSEWHERE}"
        )
    if not checked:
        raise ModelError(
            f"backend '{backend}' reads it by native code beside the models of others, and the pool's catalog does not "
            'say that this version passed its check; check it and write "checked": true there, or '
            f"{_ELSEWHERE}"
        )


def save_memory(config: Any) -> None:
    """Have models of ONNX Runtime give back what their runs take, unless their ModelConfig says otherwise.

    A model's arena would keep 1 MiB at least, ten times what a small model takes.
    """
    if config.backend == ONNX and ARENA not in config.parameters:
        config.parameters[ARENA].string_value = "0"
