"""Who did something, as the audit log names it: `alice`, or `alice (token ci)`. Pure."""


def is_user(actor: str, username: str) -> bool:
    """Return whether that is the user, with whichever token."""
    return actor == username or actor.startswith(f"{username} (token ")
