"""Schema check of a skops file, before any object is created.

schema.json is a tree of nodes, each with a loader and the type that it makes. skops checks types by one list for all
loaders; here each loader has its own (CVE-2025-54412, -54413, -54886: a type of one kind under the loader of another).
"""

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Any

import numpy as np

from serving_runtime.backends.sklearn.estimators import allowed
from serving_runtime.backends.sklearn.zip_limits import check_sizes
from serving_runtime.common.errors import ModelError

_MAX_SCHEMA_BYTES = 256 << 20
_MAX_DEPTH = 200
_PLAIN_TYPES = frozenset({"builtins.bool", "builtins.float", "builtins.int", "builtins.str"})
_SCALARS = frozenset({f"numpy.{kind.__name__}" for kind in np.sctypeDict.values()})


def _is_ufunc(name: str) -> bool:
    return name.startswith(("numpy.", "scipy.special."))  # skops lists the allowed ones; the walk checks them


_BY_LOADER: dict[str, Callable[[str], bool]] = {
    "ObjectNode": allowed.ESTIMATORS.__contains__,
    "TreeNode": {allowed.TREE}.__contains__,
    "LossNode": allowed.LOSSES.__contains__,
    "FunctionNode": lambda name: name in allowed.FUNCTIONS or _is_ufunc(name),
    "TypeNode": (_PLAIN_TYPES | _SCALARS).__contains__,
    "DictNode": {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"}.__contains__,
    "ListNode": {"builtins.list"}.__contains__,
    "SetNode": {"builtins.set"}.__contains__,
    "TupleNode": {"builtins.tuple"}.__contains__,
    "SliceNode": {"builtins.slice"}.__contains__,
    "BytesNode": {"builtins.bytes"}.__contains__,
    "NdArrayNode": (_SCALARS | {"numpy.ndarray"}).__contains__,
    "MaskedArrayNode": {"numpy.ma.MaskedArray"}.__contains__,
    "DTypeNode": {"numpy.dtype"}.__contains__,
    "SparseMatrixNode": allowed.SPARSE.__contains__,
    "RandomStateNode": {"numpy.random.mtrand.RandomState"}.__contains__,
    "RandomGeneratorNode": {"numpy.random._generator.Generator"}.__contains__,
    "JsonNode": lambda _: True,  # holds JSON values only, whatever type it names
}
_CONTAINERS = frozenset(
    {"DictNode", "ListNode", "SetNode", "TupleNode", "NdArrayNode", "SliceNode", "SparseMatrixNode"}
)
TRUSTED = allowed.ESTIMATORS | allowed.LOSSES | allowed.FUNCTIONS | allowed.SPARSE | {
    allowed.TREE, "numpy.dtype", "sklearn.utils._bunch.Bunch"
}  # fmt: skip
"""Names that skops would report as untrusted, and that are safe here."""


def check(file: Path, trusted: Set[str]) -> None:
    """Raise ModelError unless all nodes of a file are of types that are listed for their loaders, or trusted.

    Args:
        trusted: names that the operator trusts, under any loader but those of containers and arrays.
    """
    with zipfile.ZipFile(file) as archive:
        check_sizes(archive, file.stat().st_size, file.name)
        if archive.getinfo("schema.json").file_size > _MAX_SCHEMA_BYTES:
            raise ModelError(f"{file.name}: its schema.json is larger than {_MAX_SCHEMA_BYTES >> 20} MiB")
        schema = json.loads(archive.read("schema.json"))
        unknown, sizes = set(), {}
        for node in _nodes(schema, file.name):
            loader, name = str(node.get("__loader__")), f"{node.get('__module__')}.{node.get('__class__')}"
            fits = (loader in _BY_LOADER and _BY_LOADER[loader](name)) or (
                name in trusted and loader not in _CONTAINERS
            )
            if not fits:
                unknown.add(name if loader in _BY_LOADER or name not in TRUSTED else f"{name} by {loader}")
            if loader == "DictNode":
                _check_keys(node.get("key_types"), file.name)
            if isinstance(node.get("file"), str):
                sizes[node.get("__id__"), node["file"]] = archive.getinfo(node["file"]).file_size
                if loader == "SparseMatrixNode":
                    _check_inner(archive, node["file"], file.name)
        if unknown:
            raise ModelError(untrusted(file.name, sorted(unknown)))
        total = sum(sizes.values())
        if total > 2 * sum(entry.file_size for entry in archive.infolist()):
            raise ModelError(f"{file.name}: its arrays are read again and again, {total} bytes; save the model again")


def untrusted(filename: str, names: list[str]) -> str:
    """Return the sentence that refuses types by their names."""
    return (
        f"{filename} is made of types that are not known to be safe: {', '.join(names[:5])}"
        f"{' and others' if names[5:] else ''}; "
        "who starts the server may trust them: --backend-config=sklearn,trusted-types=..."
    )


def _nodes(schema: Any, filename: str) -> Iterator[dict[str, Any]]:
    stack = [(schema, 0)]
    while stack:
        value, depth = stack.pop()
        if depth > _MAX_DEPTH:
            raise ModelError(f"{filename}: its parts are nested deeper than {_MAX_DEPTH}; save a model of fewer steps")
        if isinstance(value, dict):
            if "__loader__" in value or "__class__" in value:
                yield value
            stack += [(each, depth + 1) for each in value.values() if isinstance(each, (dict, list))]
        elif isinstance(value, list):
            stack += [(each, depth + 1) for each in value if isinstance(each, (dict, list))]


def _check_keys(key_types: Any, filename: str) -> None:
    """Check the factory of a dict's keys from texts: types alone, since it is called."""
    kinds = key_types.get("content", ()) if isinstance(key_types, dict) else None
    loaders = {kind.get("__loader__") for kind in kinds} if isinstance(kinds, list) else {None}
    if key_types is None or key_types.get("__loader__") != "ListNode" or not loaders <= {"TypeNode"}:
        raise ModelError(f"{filename}: the keys of a dict are of no plain types; save the model again")


def _check_inner(archive: zipfile.ZipFile, name: str, filename: str) -> None:
    content = archive.read(name)
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        check_sizes(inner, len(content), f"{filename}: {name}")
