"""What gateways are sent: public keys, ids of revoked tokens, limits of keys and teams, used quotas, and issuers."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from access.domain.patterns import reaches
from access.models import AccessKey, KeyToken, SigningKey, TokenIssuer
from accounts.selectors import team_rates, team_row_rates
from clusters.models import Cluster
from clusters.services.connection import LOCAL, driver_now
from common.errors import Conflict, FairleadError, Unavailable
from deployments.selectors.services import guarded_namespaces
from integrations.clusters.base import PREVIEW_SUFFIX, CallerKeys, IssuerKeys, RequestRate, RowRate, TeamRate
from jobs.services.hints import call_on_commit
from usage.selectors.budgets import used_up

_CLOCK_SKEW = timedelta(minutes=10)
"""A token that has expired here may still be valid by a gateway's clock."""


def push_soon() -> None:
    """Send gateways the present keys once the transaction is committed; the next sweep does it where that fails."""
    call_on_commit("access.tasks.push_keys", "the keys of callers")


def caller_keys(*, now: datetime) -> CallerKeys:
    """Return the keys by which gateways check callers now, with all revoked tokens."""
    valid = AccessKey.objects.filter(revoked_at=None).order_by("id")
    exhausted = used_up(now=now)
    return CallerKeys(
        public=tuple(SigningKey.objects.order_by("id").values_list("public", flat=True)),
        revoked=revoked_tokens(now=now),
        issuers=tuple(
            IssuerKeys(each.name, each.issuer, each.audience, tuple(each.public))
            for each in TokenIssuer.objects.order_by("id")
        ),
        rates=tuple(RequestRate(key, rate) for key, rate in _limits(valid, "requests_per_second")),
        team_rates=tuple(TeamRate(team, rate) for team, rate in team_rates()),
        row_rates=(
            *(RowRate(rate, key=key) for key, rate in _limits(valid, "rows_per_minute")),
            *(RowRate(rate, team=team) for team, rate in team_row_rates()),
        ),
        exhausted=exhausted.teams,
        exhausted_keys=tuple(valid.filter(name__in=exhausted.keys).values_list("name", flat=True)),
        # A preview is the service by another name.
        exhausted_services=tuple(f"{name}{suffix}" for name in exhausted.services for suffix in ("", PREVIEW_SUFFIX)),
    )


def _limits(keys: QuerySet[AccessKey], column: str) -> list[tuple[str, int]]:
    """Return the names of the keys that have a limit in this column, with it."""
    return [(name, limit) for name, limit in keys.values_list("name", column) if limit]


def revoked_tokens(*, now: datetime, namespace: str = "") -> tuple[str, ...]:
    """Return the ids of the tokens that gateways refuse although they are signed and have not expired.

    Tokens of people who are deactivated, or whose account the provider no longer has, are refused until they are back.

    Args:
        namespace: only those that could call a service of this namespace; empty for all.
    """
    is_away = Q(key__user__is_active=False) | Q(key__user__identity__ended_at__isnull=False)
    found = KeyToken.objects.filter(Q(revoked_at__lte=now) | is_away, expires_at__gt=now - _CLOCK_SKEW)
    return tuple(
        token_id
        for token_id, patterns in found.order_by("id").values_list("token_id", "key__services")
        if not namespace or reaches(patterns, namespace)
    )


def push_to(cluster: Cluster, keys: CallerKeys, *, clock: Callable[[], datetime]) -> None:
    """Send one cluster's gateway the keys.

    On Kubernetes each namespace gets its own revoked tokens, since each of its routes costs the gateway memory for each
    of them. One that refuses them, as where the driver lacks a role there, keeps no other from its keys.

    Raises:
        Unavailable: the cluster cannot be reached.
        Conflict: namespaces refused the keys; the message names them.
    """
    driver = driver_now(cluster, clock())
    if cluster.kind == LOCAL:
        driver.apply_keys(keys, ())
        return
    refusals = []
    for namespace in guarded_namespaces(cluster):
        # Read for each: no namespace gets the state of before a revocation that comes meanwhile.
        revoked = revoked_tokens(now=clock(), namespace=namespace)
        try:
            driver.apply_keys(replace(keys, revoked=revoked), [namespace])
        except Unavailable:
            raise
        except FairleadError as error:
            refusals.append(f"namespace {namespace}: {error.message}")
    if refusals:
        raise Conflict("; ".join(refusals))
