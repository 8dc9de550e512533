"""Where a caller needs a role for what belongs to a model."""

from typing import Any

from accounts.access import Place


class OfModel:
    """A view of one model or what is under it: the caller's role in the team that owns it counts."""

    kwargs: dict[str, Any]

    def place(self) -> Place:
        """Return the model, which need not be there yet."""
        return Place.model(self.kwargs["name"])
