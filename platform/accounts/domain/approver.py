"""Approver: the user of a decision, and who made the token that it comes with. Pure.

A token is a user's own where a chain of own tokens leads to that user's sign-in at the provider. One that another user
made can be used by both of them, so it does not prove whose decision comes with it, and neither does one made with it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Approver:
    """Who decides.

    Attributes:
        token_by: the user who made the token; empty where that is not known: made on the server's command line, or by a
            release that did not record it.
        is_signed_in: whether the decision comes from a session of the provider, or from a token that the user made in
            one.
    """

    username: str
    token_by: str = ""
    is_signed_in: bool = False

    @property
    def is_of_another(self) -> bool:
        """Return whether another user made the token."""
        return self.token_by not in ("", self.username)

    @property
    def refusal(self) -> str:
        """Return why approvals and rejections with this token are refused; empty where they are not."""
        if not self.is_of_another:
            return ""
        return (
            f"{self.token_by} made this token of {self.username}, so both can use it; {self.username} decides with a "
            f"session of the identity provider, or with a token that the server's operator makes by "
            f"`manage.py token_create --user {self.username}`"
        )


def token_by(maker: Approver, username: str) -> str:
    """Return the user to record as the maker of a new token of `username`; empty where that is not known.

    A token made with the token of another maker is that maker's as well. One made by its own user is an own one only
    where the user signed in at the provider.
    """
    found = maker.token_by if maker.is_of_another else maker.username
    if found == username:
        return username if maker.is_signed_in and maker.username == username else ""
    return found
