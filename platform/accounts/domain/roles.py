"""Roles of users in teams. Pure; each role includes the ones before it."""

from enum import StrEnum

from accounts.domain.scopes import Scope

DEFAULT_TEAM = "default"
"""Owns everything without another owner; its admins administer the installation, every team included."""


class Role(StrEnum):
    """`viewer` sees, `deployer` changes models, services and rollouts, `admin` also manages the team's members."""

    VIEWER = "viewer"
    DEPLOYER = "deployer"
    ADMIN = "admin"

    @property
    def scope(self) -> Scope:
        """Return the widest scope that the role lets a token use."""
        return {Role.VIEWER: Scope.READ, Role.DEPLOYER: Scope.WRITE, Role.ADMIN: Scope.ADMIN}[self]

    @classmethod
    def needed_for(cls, scope: Scope) -> "Role":
        """Return the minimum role that lets a token use `scope`."""
        return next(role for role in cls if role.scope.includes(scope))


class Owned(StrEnum):
    """Kinds of owned things, by name; services belong with their namespace, versions and aliases with their model."""

    NAMESPACE = "namespace"
    MODEL = "model"
