"""Has anybody's right to see something changed? Open pages ask once a second, whatever their number.

Every change of tokens, sessions, users, teams and what they own leaves an entry in the audit log, so the newest entries
tell. One that another transaction commits late may be missed; pages look for themselves from time to time as well.
"""

from django.db.models import Max

from accounts.models import AuditEntry

_ABOUT_RIGHTS = ("session.signout", "token.revoke", "member.", "ownership.", "user.", "team.")


class RightsWatch:
    """Remembers up to which entry the log was seen."""

    def __init__(self) -> None:
        self._seen_id: int | None = None

    def has_changed(self) -> bool:
        """Return whether somebody's rights may have changed since the last call; True at the first one."""
        if self._seen_id is None:
            self._seen_id = AuditEntry.objects.aggregate(newest=Max("pk"))["newest"] or 0
            return True
        news = list(AuditEntry.objects.filter(pk__gt=self._seen_id).values_list("pk", "action"))
        self._seen_id = max([self._seen_id, *(pk for pk, _ in news)])
        return any(action.startswith(_ABOUT_RIGHTS) for _, action in news)
