"""What a user may do in a team. Pure; each role includes the ones before it."""

from enum import StrEnum

from accounts.domain.scopes import Scope

DEFAULT_TEAM = "default"
"""Owns what no other team owns; who is admin here administers the installation, every team included."""


class Role(StrEnum):
    """`viewer` sees, `deployer` changes models, services and rollouts, `admin` also says who belongs to the team."""

    VIEWER = "viewer"
    DEPLOYER = "deployer"
    ADMIN = "admin"

    @property
    def scope(self) -> Scope:
        """Return the widest scope that the role lets a token use."""
        return {Role.VIEWER: Scope.READ, Role.DEPLOYER: Scope.WRITE, Role.ADMIN: Scope.ADMIN}[self]

    @classmethod
    def needed_for(cls, scope: Scope) -> "Role":
        """Return the least role that lets a token use `scope`."""
        return next(role for role in cls if role.scope.includes(scope))


class Owned(StrEnum):
    """What belongs to a team, by name; services belong with their namespace, versions and aliases with their model."""

    NAMESPACE = "namespace"
    MODEL = "model"
