"""System checks: a bad setting ends the start with an id and a hint, never the first request."""

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

SHORTEST_SECRET_KEY = 32


@register()
def settings_are_usable(**_: object) -> list[CheckMessage]:
    """Return an error for each setting the control plane cannot run with."""
    errors: list[CheckMessage] = []
    if len(settings.SECRET_KEY) < SHORTEST_SECRET_KEY:
        errors.append(
            Error(
                f"FAIRLEAD_SECRET_KEY has {len(settings.SECRET_KEY)} characters, fewer than {SHORTEST_SECRET_KEY}.",
                hint="`fairlead up` makes one; else set FAIRLEAD_SECRET_KEY_FILE to a file with a long random text.",
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
