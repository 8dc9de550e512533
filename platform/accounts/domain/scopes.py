"""What a caller may do. Pure; each scope includes the ones before it."""

from enum import StrEnum


class Scope(StrEnum):
    """`read` sees, `write` changes models, services and rollouts, `admin` also hands out tokens."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: "Scope") -> bool:
        """Return whether who holds this scope may do what `other` allows."""
        order = list(Scope)
        return order.index(self) >= order.index(other)
