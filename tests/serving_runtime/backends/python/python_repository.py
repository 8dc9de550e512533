"""Repositories of Python models, servers of them, and requests to them, for the tests of this folder."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.serving_runtime._support.processes import ServerProcess, server

MODELS = Path(__file__).parents[2] / "python_models"
PATIENCE_S = 60.0


def repository(root: Path, *names: str) -> Path:
    """Return a new repository of these models."""
    for name in names:
        shutil.copytree(MODELS / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@contextmanager
def serving(root: Path, scratch: Path, *flags: str) -> Iterator[ServerProcess]:
    """Run a server that may run Python models; its log is in `scratch`."""
    log = scratch / "log"
    with server(root, "--allow-python-models=true", f"--log-file={log}", *flags, scratch=scratch) as process:
        yield process


def asked(text: str, *numbers: list[int], **parameters: Any) -> dict[str, Any]:
    """Return a request to the model `tricks`, as JSON."""
    inputs: list[dict[str, Any]] = [{"name": "do", "datatype": "BYTES", "shape": [1, 1], "data": [text]}]
    for row in numbers:
        inputs.append({"name": "numbers", "datatype": "INT64", "shape": [1, len(row)], "data": row})
    return {"id": "the-id", "inputs": inputs, **({"parameters": parameters} if parameters else {})}


def ask(served: ServerProcess, text: str, *numbers: list[int], **parameters: Any) -> httpx.Response:
    url = f"{served.url}/v2/models/tricks/infer"
    return httpx.post(url, json=asked(text, *numbers, **parameters), timeout=PATIENCE_S)


def output(answer: httpx.Response, name: str = "text") -> Any:
    assert answer.status_code == 200, answer.text
    (found,) = [tensor["data"] for tensor in answer.json()["outputs"] if tensor["name"] == name]
    return found


def until(condition: Callable[[], Any]) -> Any:
    """Return what a condition returns once that is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.02)
    return found
