"""System checks: a bad setting ends the start with an id and a hint, never the first request."""

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register()
def settings_are_usable(**_: object) -> list[CheckMessage]:
    """Return an error for each setting the control plane cannot run with."""
    errors: list[CheckMessage] = []
    if not settings.SECRET_KEY:
        errors.append(
            Error(
                "FAIRLEAD_SECRET_KEY is not set.",
                hint="`fairlead up` makes one; else set FAIRLEAD_SECRET_KEY or FAIRLEAD_SECRET_KEY_FILE.",
                id="fairlead.E001",
            )
        )
    if not (settings.ROOT / "frontend" / "dist" / "app.js").is_file():
        errors.append(
            Error(
                "The front-end bundle frontend/dist/ is missing.",
                hint="Run `make setup`, which builds it.",
                id="fairlead.E002",
            )
        )
    return errors
