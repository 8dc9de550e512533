"""Processes of an installation as its records name them, and waiting until one that was killed is back."""

import http.client
import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

_WITHIN_S, _LOOK_S = 120.0, 0.005


def record(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one where there is none, or none now."""
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found


def served_by(run: Path) -> dict[str, int]:
    """Return the processes of Envoy and of the replicas by their records in the folder `run`."""
    return {path.stem: record(path)["pid"] for path in run.glob("*.json") if path.stem == "gateway" or "." in path.stem}


def answers(gateway: str, path: str) -> bool:
    """Return whether a GET on a new connection to HOST:PORT is answered with 200."""
    with closing(http.client.HTTPConnection(gateway, timeout=5.0)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False


def seconds_until(look: Callable[[], bool], what: str) -> float:
    """Return how many seconds it takes until `look` sees it; raises TimeoutError after two minutes."""
    began = time.monotonic()
    while not look():
        if time.monotonic() - began > _WITHIN_S:
            raise TimeoutError(f"not within {_WITHIN_S:g} s: {what}")
        time.sleep(_LOOK_S)
    return time.monotonic() - began
