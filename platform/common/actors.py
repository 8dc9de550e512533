"""Who did something, as the audit log names it: `alice`, or `alice (token ci)`. Pure."""


def is_user(actor: str, username: str) -> bool:
    """Return whether that is the user, with whichever token."""
    return actor == username or actor.startswith(token_prefix(username))


def token_prefix(username: str) -> str:
    """Return how the names begin of a user with a token."""
    return f"{username} (token "
