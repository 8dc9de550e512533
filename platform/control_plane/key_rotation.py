"""Key rotation: re-encrypts everything stored after the secret key was replaced, so that the former one can be removed.

It can be stopped at any moment and run again: each value is replaced in one step, and only if it was not changed
meanwhile. Called by `manage.py secrets_reseal`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core import signing
from django.db.models import Model

from access.models import SigningKey
from access.services.signing import PURPOSE as SIGNING_KEYS
from accounts.models import AuditSigningKey, Identity
from accounts.selectors.audit_chain import KEY_PURPOSE as AUDIT_SIGNING_KEYS
from accounts.services.identities import REFRESH_TOKEN
from clusters.models import Cluster
from clusters.services import connection, prometheus
from common.encryption import resealed
from common.errors import Unavailable
from deployments.models import ComparisonRun
from deployments.reconcile.participants import comparison
from events.models import Webhook
from events.services import delivery
from feedback.models import Answer, DriftBlock
from feedback.reconcile.first_values import PURPOSE as FIRST_VALUES
from feedback.selectors.answers import PURPOSE as KEPT_ANSWERS
from recordings.models import Recording
from recordings.reconcile import payload_files
from sealed_secrets.models import SealedValue
from sealed_secrets.selectors import PURPOSE as SECRETS

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Resealed:
    """The result for one kind of secrets.

    Attributes:
        changed: how many were re-encrypted under the present key now.
        left: a sentence for each that was not, with what to do.
    """

    what: str
    changed: int
    left: tuple[str, ...] = ()


def reseal_everything(*, is_stopped: bool) -> Iterator[Resealed]:
    """Yield the result for each kind of stored secrets.

    Args:
        is_stopped: no worker runs, so that recordings under way are not written to.
    """
    yield _sealed("webhooks", Webhook.objects.all(), "sealed_secret", delivery.SECRET)
    refreshed = Identity.objects.exclude(sealed_refresh_token="")
    yield _sealed("sign-ins", refreshed, "sealed_refresh_token", REFRESH_TOKEN)
    yield _sealed("kubeconfigs", Cluster.objects.exclude(credentials=""), "credentials", connection.PURPOSE)
    tokens = Cluster.objects.exclude(prometheus_token="")
    yield _sealed("tokens for Prometheus", tokens, "prometheus_token", prometheus.PURPOSE)
    yield _sealed("signing keys", SigningKey.objects.all(), "sealed", SIGNING_KEYS)
    yield _sealed("audit signing keys", AuditSigningKey.objects.all(), "sealed", AUDIT_SIGNING_KEYS)
    yield _sealed("secrets of services", SealedValue.objects.select_related("secret"), "sealed", SECRETS)
    waiting = ComparisonRun.objects.exclude(waiting=b"").defer("report", "worst")
    yield _sealed("comparisons", waiting, "waiting", comparison.PURPOSE)
    yield _kept_answers()
    yield _sealed("first values of drift", DriftBlock.objects.exclude(first=b""), "first", FIRST_VALUES)
    yield _recordings(is_stopped)
    yield _sessions()


def _sealed(what: str, rows: Iterable[Model], field: str, purpose: str) -> Resealed:
    def replace(row: Any) -> bool:
        before = getattr(row, field)
        content = before.encode() if isinstance(before, str) else bytes(before)
        after = resealed(content, purpose=purpose)
        if after == content:
            return False
        value = after.decode() if isinstance(before, str) else after
        changed = type(row)._default_manager.filter(pk=row.pk, **{field: before}).update(**{field: value})
        return bool(changed)  # else it was written just now, under the present key

    return _each(what, rows, replace)


def _kept_answers() -> Resealed:
    """Re-encrypt kept answers in batches: there may be millions. A row's values never change."""
    changed, unreadable, problem, last = 0, 0, "", 0
    rows = Answer.objects.exclude(sealed=b"").only("sealed").order_by("pk")
    while batch := list(rows.filter(pk__gt=last)[:_BATCH]):
        replaced = []
        for row in batch:
            before = bytes(row.sealed)
            try:
                row.sealed = resealed(before, purpose=KEPT_ANSWERS)
            except Unavailable as error:
                unreadable, problem = unreadable + 1, error.message
            else:
                replaced += [row] if row.sealed != before else []
        changed += Answer.objects.bulk_update(replaced, ["sealed"])
        last = batch[-1].pk
    return Resealed("kept answers", changed, (f"{unreadable} kept answers: {problem}",) if unreadable else ())


def _recordings(is_stopped: bool) -> Resealed:
    def replace(row: Recording) -> bool:
        if row.ended_at is None and not is_stopped:
            raise Unavailable("it is under way; run this again once it has ended")
        return payload_files.reseal(row.pk, length=row.bytes)

    return _each("recordings", Recording.objects.all(), replace)


def _sessions() -> Resealed:
    """Sign sessions again; sessions that no key fits are signed out already."""
    store = SessionStore()
    changed = 0
    for row in Session.objects.all():
        if _is_signed(row.session_data, fallbacks=[]) or not _is_signed(row.session_data, fallbacks=None):
            continue
        same = Session.objects.filter(pk=row.pk, session_data=row.session_data)
        changed += same.update(session_data=store.encode(store.decode(row.session_data)))
    return Resealed("sessions", changed)


def _is_signed(session: str, *, fallbacks: list[str | bytes] | None) -> bool:
    """Return whether a session is signed under the present key or a fallback; None means those of the settings."""
    store = SessionStore()
    try:
        signing.loads(session, salt=store.key_salt, serializer=store.serializer, fallback_keys=fallbacks)
    except signing.BadSignature:
        return False
    return True


def _each(what: str, rows: Iterable[Any], replace: Callable[[Any], bool]) -> Resealed:
    changed, left = 0, []
    for row in rows:
        try:
            changed += replace(row)
        except Unavailable as error:
            left.append(f"{row}: {error.message}")
    return Resealed(what, changed, tuple(left))
