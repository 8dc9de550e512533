"""Where a caller needs a role for what belongs to a model."""

from typing import Any

from rest_framework.request import Request

from accounts.auth.access import Place, may
from accounts.auth.permissions import caller_token
from accounts.domain.scopes import Scope


class OfModel:
    """A view of one model or what is under it: the caller's role in the team that owns it counts."""

    kwargs: dict[str, Any]

    def place(self) -> Place:
        """Return the model, which need not be there yet."""
        return Place.model(self.kwargs["name"])

    def is_by_admin(self, request: Request) -> bool:
        """Return whether an admin of the owning team asks."""
        return may(caller_token(request), Scope.ADMIN, self.place())
