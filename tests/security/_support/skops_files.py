"""skops files as an attacker writes them: an honest one with nodes or arrays of it changed."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import skops.io


def write(estimator: Any, file: Path, change: Callable[[dict[str, Any]], None] = lambda _: None, **arrays: Any) -> Path:
    """Write an estimator, its schema changed, and each array of it that is named replaced.

    Args:
        arrays: attribute -> function from the array that is there to the one to write.
    """
    content = io.BytesIO(skops.io.dumps(estimator))
    with zipfile.ZipFile(content) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    schema = json.loads(parts["schema.json"])
    change(schema)
    for name, made in arrays.items():
        for node in find(schema, name):
            parts[node["file"]] = _npy(made(np.load(io.BytesIO(parts[node["file"]]))))
    parts["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(file, "w") as target:
        for name, part in parts.items():
            target.writestr(name, part)
    return file


def find(node: Any, name: str) -> list[dict[str, Any]]:
    """Return the nodes that are an attribute of the name, wherever they are."""
    found = []
    if isinstance(node, dict):
        for key, value in node.items():
            found += [value] if key == name and isinstance(value, dict) and "__loader__" in value else []
            found += find(value, name)
    elif isinstance(node, list):
        for value in node:
            found += find(value, name)
    return found


def plain(value: object) -> dict[str, Any]:
    """Return the node of what JSON can hold."""
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value),
            "is_json": True}  # fmt: skip


def _npy(array: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()
