"""Operators' patches of rendered manifests. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Patch:
    """One change of the objects of a kind; either operations (RFC 6902) or a merge patch (RFC 7386).

    Attributes:
        name: its path, for messages, such as `spec.patches[0]`.
        kind: of the objects, such as `Deployment`.
        object: the one object's name; empty for all of the kind.
        operations: of RFC 6902, in order; empty where it merges.
        merge: None where it has operations.
    """

    name: str
    kind: str
    object: str = ""
    operations: tuple[Mapping[str, Any], ...] = ()
    merge: Mapping[str, Any] | None = None
