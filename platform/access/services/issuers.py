"""Issuers of tokens that gateways accept beside keys: created, their keys fetched again, deleted."""

import json
import logging
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from access.domain.issuers import MOST_BYTES, check_issuer, metadata_url, public_keys
from access.models import TokenIssuer
from access.selectors import issuer_get
from access.services.gateways import push_soon
from accounts.services import audit_record
from common.errors import Conflict, FairleadError, InvalidInput, Unavailable
from common.identifiers import check_dns_label
from integrations.outbound import check_url, get

logger = logging.getLogger(__name__)
MOST_ISSUERS = 20
_TIMEOUT_S = 10.0
_LONGEST_AUDIENCE = 200


def issuer_create(*, name: str, issuer: str, audience: str, keys: Any | None, actor: str, now: datetime) -> TokenIssuer:
    """Create an issuer whose tokens gateways accept.

    Args:
        issuer: `iss` of its tokens.
        audience: what their `aud` has.
        keys: its JSON Web Key Set; None fetches it from the issuer, then and from time to time.

    Raises:
        InvalidInput: a field is wrong, or the keys are not usable.
        Conflict: the name is taken, or there are too many issuers.
        Unavailable: the keys cannot be fetched.
    """
    check_dns_label(name, field="name")
    check_issuer(issuer)
    if not 0 < len(audience) <= _LONGEST_AUDIENCE or not audience.isprintable():
        raise InvalidInput(
            f"audience has {len(audience)} characters; expected 1 to {_LONGEST_AUDIENCE}", field="audience"
        )
    public = fetched_keys(issuer) if keys is None else public_keys(keys)
    with transaction.atomic():
        if TokenIssuer.objects.count() >= MOST_ISSUERS:
            raise Conflict(f"there are {MOST_ISSUERS} issuers, the most there can be; delete one first")
        row, created = TokenIssuer.objects.get_or_create(
            name=name,
            defaults={
                "issuer": issuer,
                "audience": audience,
                "public": list(public),
                "are_given": keys is not None,
                "fetched_at": now,
                "created_at": now,
                "created_by": actor,
            },
        )
        if not created:
            raise Conflict(f"issuer {name!r} is there already; delete it first, or choose another name", field="name")
        audit_record(actor=actor, action="issuer.create", target=_target(row), now=now, after=_described(row))
        push_soon()
    return row


@transaction.atomic
def issuer_delete(*, name: str, actor: str, now: datetime) -> None:
    """Delete an issuer; gateways refuse its tokens from then on.

    Raises:
        NotFound: there is no such issuer.
    """
    row = issuer_get(name=name)
    before, target = _described(row), _target(row)
    row.delete()
    audit_record(actor=actor, action="issuer.delete", target=target, now=now, before=before)
    push_soon()


def keys_refresh(*, now: datetime) -> None:
    """Fetch the keys of every issuer that publishes them; one that cannot be reached keeps its keys, and says why."""
    for row in TokenIssuer.objects.filter(are_given=False).order_by("pk"):
        try:
            public = list(fetched_keys(row.issuer))
        except FairleadError as error:
            logger.warning("the keys of issuer %s stay as they are: %s", row.name, error.message)
            TokenIssuer.objects.filter(pk=row.pk).update(failure=error.message[:500])
            continue
        TokenIssuer.objects.filter(pk=row.pk).update(public=public, fetched_at=now, failure="")
        if public != row.public:
            push_soon()


def fetched_keys(issuer: str) -> tuple[dict[str, str], ...]:
    """Return the keys that an issuer publishes.

    Raises:
        InvalidInput: what it publishes is not usable.
        Unavailable: it does not answer.
    """
    metadata = _json_at(metadata_url(issuer))
    said = metadata.get("issuer") if isinstance(metadata, dict) else None
    if said != issuer:
        raise InvalidInput(
            f"{metadata_url(issuer)} is of issuer {str(said)[:200]!r}, not of {issuer!r}", field="issuer"
        )
    return public_keys(_json_at(check_url(str(metadata.get("jwks_uri", "")), field="jwks_uri")), field="jwks_uri")


def _json_at(url: str) -> Any:
    body = get(url, allowed=settings.EGRESS_ALLOWED_NETWORKS, timeout_s=_TIMEOUT_S, most_bytes=MOST_BYTES)
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"{url} answered with something else than JSON") from error


def _target(row: TokenIssuer) -> str:
    return f"issuers/{row.name}"


def _described(row: TokenIssuer) -> dict[str, object]:
    return {"issuer": row.issuer, "audience": row.audience, "keys_given": row.are_given}
