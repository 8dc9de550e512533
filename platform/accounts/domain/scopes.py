"""Scopes of API tokens. Pure; each scope includes the ones before it."""

from enum import StrEnum


class Scope(StrEnum):
    """`read` sees, `write` changes models, services and rollouts, `admin` also issues tokens."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: "Scope") -> bool:
        """Return whether this scope includes `other`."""
        order = list(Scope)
        return order.index(self) >= order.index(other)
