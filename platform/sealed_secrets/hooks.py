"""Hooks: what the room of services registers for secrets, which are below it."""

from collections.abc import Iterable
from dataclasses import dataclass

from common.hooks import Hook


@dataclass(frozen=True, slots=True)
class Use:
    """A service that names a value of a secret of its namespace."""

    namespace: str
    secret: str
    key: str
    service: str


changed: Hook[[str, Iterable[str]], None] = Hook()
"""A namespace, and names of its services that use a secret with a new value."""
uses: Hook[[Iterable[str]], Iterable[Use]] = Hook()
"""Names of namespaces; returns which of their services on the local cluster name which secrets."""
