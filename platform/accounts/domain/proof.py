"""Proof of a provider's account: how long a confirmation lets its user's tokens work. Pure."""

from datetime import datetime, timedelta

LASTS = timedelta(hours=24)


def has_lapsed(
    *, checked_at: datetime | None, can_be_asked: bool, longest_outage: timedelta | None, now: datetime
) -> bool:
    """Return whether the last confirmation is too old for tokens that need one.

    Args:
        checked_at: the last confirmation; None for accounts of earlier releases, which did not note it.
        can_be_asked: the provider gave a refresh token, so only an outage there delays the next confirmation.
        longest_outage: how much longer tokens work in an outage; None for no limit, so that it locks no one out.
    """
    if checked_at is None:
        return False
    if not can_be_asked:
        return now - checked_at >= LASTS
    return longest_outage is not None and now - checked_at >= LASTS + longest_outage
