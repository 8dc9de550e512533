"""Authorization of views of a model."""

from typing import Any

from rest_framework.request import Request

from accounts.auth.access import Place, may
from accounts.auth.permissions import caller_token
from accounts.domain.scopes import Scope


class OfModel:
    """A view of one model or its subresources, authorized by the caller's role in the owning team."""

    kwargs: dict[str, Any]

    def place(self) -> Place:
        """Return the model, which need not exist yet."""
        return Place.model(self.kwargs["name"])

    def is_by_admin(self, request: Request) -> bool:
        """Return whether the caller is an admin of the owning team."""
        return may(caller_token(request), Scope.ADMIN, self.place())
