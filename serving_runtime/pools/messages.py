"""Messages between a pool's runtime and its fetcher: one JSON object a line. Pure.

    {"id": 1, "look": "ns.svc",      {"id": 1, "default": 3, "pinned": false, "versions": {"3": "<identity>"}}
     "newest": false}
    {"id": 2, "model": "ns.svc",     {"id": 2, "folder": "/…", "digest": "sha256:…", "version": 3,
     "version": 3}                    "identity": "…", "checked": true}
    {"release": "sha256:…"}          (no answer)
    {"hold": ["sha256:…"]}           (no answer)

An answer holds its folder for the connection until the runtime releases it. An error is
{"id": 1, "error": {"kind": "…", "message": "…", "retry_s": 10}}.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.pools.names import is_model, shown

MAX_LINE_BYTES = 1 << 20
MAX_HOLDS = 1 << 16
DIGEST = re.compile("sha256:[0-9a-f]{64}")

UNKNOWN, UNAVAILABLE, CORRUPT, UNSUPPORTED, TOO_LARGE, INVALID = (
    "unknown",
    "unavailable",
    "corrupt",
    "unsupported",
    "too-large",
    "invalid",
)
"""Kinds of errors: no such model; the store does not answer; the artifact or the catalog's document cannot be used; not
served by a pool; larger than the cache; the request itself."""

RETRY_S = {UNKNOWN: 1.0, UNAVAILABLE: 5.0, CORRUPT: 60.0, UNSUPPORTED: 60.0, TOO_LARGE: 60.0, INVALID: 1.0}


@dataclass(frozen=True, slots=True)
class Look:
    """Request for what the catalog says of a model; `newest` where what it said lately is not enough."""

    number: int
    model: str
    newest: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """Request for the folder of a model's version; None for the catalog's default."""

    number: int
    model: str
    version: int | None


@dataclass(frozen=True, slots=True)
class Holds:
    """Digests that the runtime holds from an earlier connection, or releases."""

    digests: tuple[str, ...]
    released: bool


def request_in(line: bytes) -> Look | Fetch | Holds:
    """Return the request in a line; raises InvalidArgument for anything else."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"a request to the fetcher is not one line of JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidArgument("a request to the fetcher is no JSON object")
    if "release" in content or "hold" in content:
        released = "release" in content
        digests = [content["release"]] if released else content["hold"]
        if not isinstance(digests, list) or len(digests) > MAX_HOLDS:
            raise InvalidArgument(f"'hold' must be a list of at most {MAX_HOLDS} digests")
        if not all(isinstance(digest, str) and DIGEST.fullmatch(digest) for digest in digests):
            raise InvalidArgument("a digest must be sha256:<64 hex digits>")
        return Holds(tuple(digests), released)
    number = content.get("id")
    if type(number) is not int or not 0 <= number < 2**63:
        raise InvalidArgument("a request to the fetcher needs a number as 'id'")
    model = content.get("look", content.get("model"))
    if not is_model(model):
        raise InvalidArgument(f"{shown(str(model))} is not <namespace>.<service>, each a DNS label")
    if "look" in content:
        return Look(number, model, newest=content.get("newest") is True)
    version = content.get("version")
    if version is not None and (type(version) is not int or not 0 < version < 10**18):
        raise InvalidArgument(f"'version' is {shown(str(version))}, not a number of 1 to 18 digits or null")
    return Fetch(number, model, version)


def line(content: dict[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def error_line(number: int, kind: str, message: str) -> bytes:
    return line({"id": number, "error": {"kind": kind, "message": message, "retry_s": RETRY_S[kind]}})


def number_in(text: bytes) -> int:
    """Return the id of a request that is otherwise invalid, -1 where it has none."""
    try:
        number = json.loads(text)["id"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return -1
    return number if type(number) is int else -1
