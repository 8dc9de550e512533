"""Permission change detection for open pages: one query a second, whatever their number.

Every change of tokens, sessions, teams and what they own adds an audit log entry, so the newest entries show it;
expired tokens and deactivated users add none and are counted. A change that another transaction commits late may be
missed; pages also check their own access from time to time.
"""

from django.db.models import Count, Max, Q, Sum
from django.utils import timezone

from accounts.models import ApiToken, AuditEntry

_ABOUT_RIGHTS = ("session.signout", "token.revoke", "member.", "ownership.", "user.", "team.")


class RightsWatch:
    """Remembers the last audit log entry seen, and the tokens that had become invalid without one."""

    def __init__(self) -> None:
        self._seen_id: int | None = None
        self._ended: dict[str, int | None] = {}

    def has_changed(self) -> bool:
        """Return whether any permissions may have changed since the last call; True at the first one."""
        is_logged = self._is_logged()
        before, self._ended = self._ended, _ended_by_themselves()
        return is_logged or self._ended != before

    def _is_logged(self) -> bool:
        if self._seen_id is None:
            self._seen_id = AuditEntry.objects.aggregate(newest=Max("pk"))["newest"] or 0
            return True
        news = list(AuditEntry.objects.filter(pk__gt=self._seen_id).values_list("pk", "action"))
        self._seen_id = max([self._seen_id, *(pk for pk, _ in news)])
        return any(action.startswith(_ABOUT_RIGHTS) for _, action in news)


def _ended_by_themselves() -> dict[str, int | None]:
    """Return a fingerprint of the set of expired tokens and tokens of inactive users."""
    ended = ApiToken.objects.filter(Q(expires_at__lte=timezone.now()) | Q(user__is_active=False))
    return ended.aggregate(tokens=Count("pk"), ids=Sum("pk"))
