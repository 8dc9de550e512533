"""Queries of users with their roles, sign-in method and last use. Read-only; changes are in `services.oidc_users`."""

from django.db.models import Max, Prefetch, QuerySet

from accounts.models import ApiToken, Membership, User
from common.errors import NotFound


def user_query() -> QuerySet[User]:
    """Return all users with identity, memberships and `last_seen_at`, the last use of any token or session of theirs.

    It takes two queries, however many users there are.
    """
    memberships = Membership.objects.select_related("team").order_by("team__name")
    users = User.objects.select_related("identity").annotate(last_seen_at=Max("tokens__last_used_at"))
    return users.prefetch_related(Prefetch("memberships", memberships))


def user_get(*, username: str) -> User:
    """Return one of `user_query`; raises NotFound."""
    user = user_query().filter(username=username).first()
    if user is None:
        raise NotFound(f"there is no user {username[:150]!r}")
    return user


def user_tokens(*, user: User) -> QuerySet[ApiToken]:
    """Return the user's tokens and sessions."""
    return ApiToken.objects.filter(user=user).select_related("user__identity")
