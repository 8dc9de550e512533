"""Example request: a service's `curl` command to paste, from its model's signature. Pure."""

import json
import shlex
from collections.abc import Mapping, Sequence
from math import prod

KEY_VARIABLE = "FAIRLEAD_KEY"
"""Where the commands and programs that pages show find a key."""
_MAX_ELEMENTS = 128


def curl_line(
    url: str, inputs: Sequence[Mapping[str, object]], *, is_guarded: bool = False, authority: str = ""
) -> str:
    """Return a `curl` command that the service answers.

    Args:
        url: the model's address at the gateway, without a trailing slash.
        inputs: the signature's inputs, each with `name`, `datatype` and `shape` (a negative dimension is open).
        is_guarded: callers need a key, which the command takes from `FAIRLEAD_KEY`.
        authority: file with the authority that signed the gateway's certificate; empty for one that clients know.

    Returns:
        An inference of zeros in the right shape; where the inputs are unknown or too large to paste, a request for the
            model's metadata.
    """
    curl = f"curl --cacert {shlex.quote(authority)}" if authority else "curl"
    curl += f' -H "Authorization: Bearer ${KEY_VARIABLE}"' if is_guarded else ""
    shapes = [[size if size > 0 else 1 for size in _shape(tensor)] for tensor in inputs]
    if not inputs or sum(prod(shape) for shape in shapes) > _MAX_ELEMENTS:
        return f"{curl} {shlex.quote(url)}"
    body = {
        "inputs": [
            {
                "name": tensor["name"],
                "shape": shape,
                "datatype": tensor["datatype"],
                "data": [_zero(str(tensor["datatype"]))] * prod(shape),
            }
            for tensor, shape in zip(inputs, shapes, strict=True)
        ]
    }
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return f"{curl} {shlex.quote(url + '/infer')} -d {shlex.quote(text)}"


def _shape(tensor: Mapping[str, object]) -> list[int]:
    shape = tensor["shape"]
    return [int(size) for size in shape] if isinstance(shape, list | tuple) else []


def _zero(datatype: str) -> object:
    if datatype == "BYTES":
        return ""
    return False if datatype == "BOOL" else 0
