"""Names of container images, and the registries that they may come from. Pure.

A name is read as container runtimes read it (distribution/reference): the part before the first slash is a registry if
it has a dot or a port or is `localhost`; any other name is of docker.io. An allowed registry is a prefix of whole
parts: `registry.example.com/team` allows `registry.example.com/team/x`, and neither `registry.example.com/teams/x` nor
`registry.example.com.example.org/team/x`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import InvalidInput

SETTING = "FAIRLEAD_ALLOWED_REGISTRIES"
_HUB, _HUBS_OTHER_NAME, _OFFICIAL = "docker.io", "index.docker.io", "library"
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?")
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


@dataclass(frozen=True, slots=True)
class Image:
    """The name of an image.

    Attributes:
        repository: registry and path, such as `docker.io/library/redis`; the registry is always named.
        tag, digest: empty where the name has none.
    """

    repository: str
    tag: str = ""
    digest: str = ""


def parse_image(name: str) -> Image:
    """Return the parts of an image's name; raises InvalidInput for one that runtimes might read in another way."""
    rest, at, digest = name.partition("@")
    path, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        path, colon, tag = rest, "", ""
    sound = (not at or _DIGEST.fullmatch(digest)) and (not colon or _TAG.fullmatch(tag))
    repository = _repository(path) if sound else ""
    if not repository:
        raise InvalidInput(
            f"{name[:200]!r} is no name of an image; expected one such as registry.example.com/team/name:1.0, in lower "
            "case, or with @sha256: and 64 digits in the place of the tag"
        )
    return Image(repository, tag, digest)


def parse_registries(prefixes: Sequence[str]) -> tuple[str, ...]:
    """Return allowed registries as `refusal` takes them; raises InvalidInput for what is no registry."""
    return tuple(_registry(each) for each in prefixes)


def has_digest(name: str) -> bool:
    """Return whether a name says by its digest which image it is; false for what is no name."""
    try:
        return bool(parse_image(name).digest)
    except InvalidInput:
        return False


def refusal(name: str, allowed: Sequence[str]) -> str:
    """Return why an image may not run, as the end of a sentence about its name; empty where it may.

    Args:
        allowed: of `parse_registries`; empty allows every image.
    """
    if not allowed:
        return ""
    try:
        repository = parse_image(name).repository
    except InvalidInput as error:
        return error.message
    if any(repository == each or repository.startswith(f"{each}/") for each in allowed):
        return ""
    return (
        f"{name[:200]!r} is an image of {repository[:200]}, and this installation allows those of "
        f"{', '.join(allowed)}; use one of these, or have an administrator of the installation change {SETTING}"
    )


def _registry(prefix: str) -> str:
    host, slash, path = prefix.removesuffix("/").partition("/")
    parts = path.split("/") if slash else []
    if not _is_host(host) or not _HOST.fullmatch(host) or not all(map(_PART.fullmatch, parts)):
        raise InvalidInput(
            f"{prefix[:200]!r} is no registry; expected a host in lower case, and what images' names go on with, such "
            "as registry.example.com, registry.example.com:5000/team or docker.io/team"
        )
    return "/".join((_HUB if host == _HUBS_OTHER_NAME else host, *parts))


def _repository(path: str) -> str:
    """Return the whole name of a repository; empty where it is malformed."""
    first, slash, rest = path.partition("/")
    if not slash or not _is_host(first):
        first, rest = _HUB, path if slash else f"{_OFFICIAL}/{path}"
    elif first == _HUBS_OTHER_NAME:
        first = _HUB
    if first == _HUB and "/" not in rest:
        rest = f"{_OFFICIAL}/{rest}"
    sound = _HOST.fullmatch(first) and all(map(_PART.fullmatch, rest.split("/")))
    return f"{first}/{rest}" if sound else ""


def _is_host(part: str) -> bool:
    return "." in part or ":" in part or part == "localhost" or part != part.lower()
