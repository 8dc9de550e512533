"""Synthetic request of a load: made-up inputs in V2's binary form, as the bytes of an HTTP call. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from serving_runtime.common.datatypes import BF16, BYTES, FROM_CONFIG_NAME, Array, Datatype, to_bf16
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.protocol.tensors import binary

_SHAPE = re.compile(r"[1-9][0-9]*(x[1-9][0-9]*)*")


def shape_of(text: str) -> tuple[str, tuple[int, ...]]:
    """Return name and dimensions of `INPUT:3x224x224`, without the batch dimension; raises ValueError."""
    name, _, dims = text.rpartition(":")
    if not name or not _SHAPE.fullmatch(dims):
        raise ValueError(f"'{text}' is not INPUT:DIMS, as in tokens:128 or image:3x224x224")
    return name, tuple(int(dim) for dim in dims.split("x"))


def infer_call(config: Mapping[str, Any], shapes: Mapping[str, Sequence[int]], *, rows: int) -> bytes:
    """Return the HTTP request of an inference with synthetic inputs for a model: small numbers, and short texts.

    Args:
        config: the model's, completed, in JSON.
        shapes: dimensions of inputs by name, without that of the batch; others' variable dimensions are 1.
        rows: of a request, where the model has a batch dimension.

    Raises:
        InvalidArgument: a shape is of no input, or does not fit it.
    """
    inputs = [each for each in config["input"] if not each.get("optional") or each["name"] in shapes]
    if strays := shapes.keys() - {each["name"] for each in inputs}:
        names = ", ".join(each["name"] for each in config["input"])
        raise InvalidArgument(f"there is no input '{min(strays)}' to give a shape to; the model has {names}")
    batch = [rows] if config.get("max_batch_size", 0) else []
    described, contents = [], []
    for each in inputs:
        datatype = FROM_CONFIG_NAME[each["data_type"]]
        shape = [*batch, *_dims(each, shapes.get(each["name"]))]
        content = bytes(binary.encode(_made_up(datatype, shape), datatype))
        parameters = {"binary_data_size": len(content)}
        described.append({"name": each["name"], "datatype": datatype.name, "shape": shape, "parameters": parameters})
        contents.append(content)
    head = json.dumps({"inputs": described, "parameters": {"binary_data_output": True}}).encode()
    return _http(f"/v2/models/{config['name']}/infer", head, contents)


def _dims(tensor: Mapping[str, Any], wanted: Sequence[int] | None) -> list[int]:
    dims = [int(dim) for dim in tensor["dims"]]
    if wanted is None:
        return [1 if dim == -1 else dim for dim in dims]
    if len(wanted) != len(dims) or any(dim not in (-1, given) for dim, given in zip(dims, wanted, strict=True)):
        raise InvalidArgument(f"input '{tensor['name']}' has dims {dims}, which {list(wanted)} does not fit")
    return list(wanted)


def _made_up(datatype: Datatype, shape: Sequence[int]) -> Array:
    random = np.random.default_rng(7)
    if datatype is BYTES:
        return np.full(shape, b"fairlead", dtype=object)
    if datatype is BF16:
        return to_bf16(random.random(shape, "f4"))
    if datatype.dtype.kind == "f":
        return random.random(shape, "f4").astype(datatype.dtype)
    return random.integers(0, 2, shape, dtype="u1").astype(datatype.dtype)


def _http(path: str, head: bytes, contents: Iterable[bytes]) -> bytes:
    body = b"".join((head, *contents))
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/octet-stream",
        f"Inference-Header-Content-Length: {len(head)}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*lines, "", "")).encode() + body
