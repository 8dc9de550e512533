"""Checks at the provider: whether the accounts of users are still there, by their refresh tokens.

A check that fails for another reason than a removed account changes nothing, so an outage there ends no one's work.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from accounts.models import Identity
from accounts.services.identities import REFRESH_TOKEN, identity_end
from common.encryption import seal, unseal
from common.errors import FairleadError, Unavailable
from integrations.oidc import AccountGone

logger = logging.getLogger(__name__)
EVERY, RETRY_AFTER = timedelta(hours=4), timedelta(minutes=10)
MOST_AT_ONCE = 200


def identities_due(*, issuer: str, now: datetime) -> QuerySet[Identity]:
    """Return the accounts to check now, the least recently tried first."""
    unchecked = Q(checked_at=None) | Q(checked_at__lte=now - EVERY)
    untried = Q(tried_at=None) | Q(tried_at__lte=now - RETRY_AFTER)
    rows = Identity.objects.filter(unchecked, untried, issuer=issuer, ended_at=None).exclude(sealed_refresh_token="")
    return rows.select_related("user").order_by(F("tried_at").asc(nulls_first=True), "pk")[:MOST_AT_ONCE]


def identities_check(*, issuer: str, renew: Callable[[str], str], clock: Callable[[], datetime]) -> int:
    """Ask the provider about the accounts that are due, and return how many are gone.

    Args:
        renew: exchanges a refresh token for the next one at the provider; raises AccountGone and Unavailable.
    """
    ended = 0
    for identity in identities_due(issuer=issuer, now=clock()):
        if not _claim(identity, clock()):
            continue
        try:
            following = renew(unseal(identity.sealed_refresh_token, purpose=REFRESH_TOKEN))
        except AccountGone as error:
            ended += identity_end(identity=identity, reason=error.message, now=clock())
        except FairleadError as error:
            logger.warning("user %s was not confirmed: %s", identity.user, error.message)
            if isinstance(error, Unavailable):
                break  # the others would wait for it too
        else:
            _confirmed(identity, following, clock())
    return ended


def _claim(identity: Identity, now: datetime) -> bool:
    """Return whether this worker asks: a refresh token that two use at once may end at the provider."""
    same = Identity.objects.filter(pk=identity.pk, tried_at=identity.tried_at)
    return bool(same.update(tried_at=now))


def _confirmed(identity: Identity, following: str, now: datetime) -> None:
    same = Identity.objects.filter(pk=identity.pk, sealed_refresh_token=identity.sealed_refresh_token)
    same.update(checked_at=now, sealed_refresh_token=seal(following, purpose=REFRESH_TOKEN))
