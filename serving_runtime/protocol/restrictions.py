"""Restricted endpoint groups: calls that need a secret header (Triton: limit endpoint access).

One secret per group, the same for all its users; a proxy or a mesh can do better.
"""

import hmac
from collections.abc import Collection, Sequence
from typing import NamedTuple

from serving_runtime.common.errors import Forbidden

GROUPS = (
    "health",
    "metadata",
    "inference",
    "shared-memory",
    "model-config",
    "model-repository",
    "statistics",
    "trace",
    "logging",
)

CONTROL = frozenset({"model-repository", "shared-memory", "trace", "logging"})
"""Groups whose calls change the server for all of its clients."""


class Restriction(NamedTuple):
    """Groups, and the header that opens them."""

    groups: tuple[str, ...]
    header: str
    value: str


def parse_restriction(text: str) -> Restriction:
    """Parse "group,group:header=value"; raises ValueError in one sentence."""
    names, colon, pair = text.partition(":")
    header, equals, value = pair.partition("=")
    groups = tuple(names.split(","))
    if not (colon and equals and header and value):
        raise ValueError(f"'{names}…' is not of the form GROUP,GROUP:HEADER=VALUE")  # the rest may be a secret
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        raise ValueError(f"'{unknown[0]}' is not one of {', '.join(GROUPS)}")
    return Restriction(groups, header, value)


def twice(restrictions: Sequence[Restriction]) -> str | None:
    """Return a group that is in more than one restriction, None without one."""
    seen: set[str] = set()
    for restriction in restrictions:
        for group in restriction.groups:
            if group in seen:
                return group
            seen.add(group)
    return None


class Restrictions:
    """Which group needs which header.

    Args:
        prefix: of the header's name (gRPC's are triton-grpc-protocol-<key>).
        closed: groups that no header opens.
    """

    def __init__(
        self, restrictions: Sequence[Restriction], prefix: str = "", *, closed: Collection[str] = frozenset()
    ) -> None:
        self._closed = closed
        self._by_group = {
            group: ((prefix + restriction.header).lower().encode("latin-1"), restriction.value.encode())
            for restriction in restrictions
            for group in restriction.groups
        }
        self.headers = frozenset(header for header, _ in self._by_group.values())

    def restricts(self, group: str) -> bool:
        return group in self._closed or group in self._by_group

    def check(self, group: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Raise Forbidden unless the group is unrestricted or the headers open it."""
        if group in self._closed:
            raise Forbidden(f"this server takes no '{group}' calls: it runs with --allow-control-calls=false")
        wanted = self._by_group.get(group)
        if wanted is None:
            return
        name, value = wanted
        if not any(found.lower() == name and hmac.compare_digest(given, value) for found, given in headers):
            raise Forbidden(f"this API is restricted, expecting header '{name.decode('latin-1')}'")
