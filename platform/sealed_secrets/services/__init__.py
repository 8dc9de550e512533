"""Changes of secrets. Their values are encrypted at once and leave the room only for processes of services."""

from collections.abc import Mapping
from datetime import datetime

from django.db import IntegrityError, transaction

from accounts.services import audit_record
from common.encryption import seal
from common.errors import Conflict, InvalidInput
from common.identifiers import check_dns_label, is_secret_key, is_secret_name
from sealed_secrets import hooks
from sealed_secrets.models import SealedSecret, SealedValue
from sealed_secrets.selectors import PURPOSE, secret_get, uses_of

MAX_VALUE_CHARACTERS = 16_384
MAX_KEYS = 50
MAX_SECRETS = 500
"""Of a namespace."""


@transaction.atomic
def secret_create(*, namespace: str, name: str, values: Mapping[str, str], actor: str, now: datetime) -> SealedSecret:
    """Create a secret with its values by their keys.

    Raises:
        InvalidInput: a name, key or value is malformed, or the namespace has too many secrets.
        Conflict: the namespace has a secret of that name.
    """
    check_dns_label(namespace, field="namespace")
    if not is_secret_name(name):
        raise InvalidInput(
            f"name is {name[:80]!r}; expected 1 to 253 lower-case letters, digits, dots and hyphens, with a letter or "
            "digit first and last",
            field="name",
        )
    _check_values(values)
    if not values:
        raise InvalidInput("values has no key; a secret has at least one", field="values")
    if SealedSecret.objects.filter(namespace=namespace).count() >= MAX_SECRETS:
        raise InvalidInput(
            f"namespace {namespace} has {MAX_SECRETS} secrets, the most; delete some, or put several values into one"
        )
    by = {"created_at": now, "created_by": actor, "changed_at": now, "changed_by": actor}
    try:
        with transaction.atomic():
            secret = SealedSecret.objects.create(namespace=namespace, name=name, **by)
    except IntegrityError as error:
        raise Conflict(
            f"namespace {namespace} has a secret {name} already; change its values by `fairlead secrets set`",
            field="name",
        ) from error
    SealedValue.objects.bulk_create(_sealed(secret, key, value, now) for key, value in values.items())
    _note(secret, "secret.create", actor, now, before=None, after=sorted(values))
    return secret


@transaction.atomic
def secret_change(
    *, namespace: str, name: str, values: Mapping[str, str | None], actor: str, now: datetime
) -> SealedSecret:
    """Set values of a secret by their keys; None removes one. Others stay.

    Processes of services that run keep the values with which they began.

    Raises:
        NotFound: no such secret.
        InvalidInput: a key or value is malformed, or the secret would have too many.
        Conflict: a removed key is used by services, or no key would stay.
    """
    secret = secret_get(namespace=namespace, name=name, locked=True)
    new = {key: value for key, value in values.items() if value is not None}
    gone = {key for key, value in values.items() if value is None}
    _check_values(new)
    before = set(secret.values.values_list("key", flat=True))
    after = (before | set(new)) - gone
    if len(after) > MAX_KEYS:
        raise InvalidInput(f"values has {len(after)} keys with those before; a secret has at most {MAX_KEYS}")
    if not after:
        raise Conflict(f"secret {secret} would have no key; delete it by `fairlead secrets delete`")
    _refuse_used(secret, gone)
    secret.values.filter(key__in={*gone, *new}).delete()
    SealedValue.objects.bulk_create(_sealed(secret, key, value, now) for key, value in new.items())
    secret.changed_at, secret.changed_by = now, actor
    secret.save(update_fields=["changed_at", "changed_by"])
    hooks.changed(namespace, {use.service for use in uses_of([secret])[secret.pk]})
    detail = {"set": sorted(new), "removed": sorted(gone & before)}
    _note(secret, "secret.change", actor, now, before=sorted(before), after=sorted(after), detail=detail)
    return secret


@transaction.atomic
def secret_delete(*, namespace: str, name: str, actor: str, now: datetime) -> None:
    """Delete a secret with its values.

    Raises:
        NotFound: no such secret.
        Conflict: services use it; the message names them.
    """
    secret = secret_get(namespace=namespace, name=name, locked=True)
    keys = sorted(secret.values.values_list("key", flat=True))
    _refuse_used(secret, None)
    _note(secret, "secret.delete", actor, now, before=keys, after=None)
    secret.delete()


def _refuse_used(secret: SealedSecret, keys: set[str] | None) -> None:
    """Raise Conflict where services use one of the keys; None is any."""
    used = [use for use in uses_of([secret])[secret.pk] if keys is None or use.key in keys]
    if not used:
        return
    services = sorted({f"{use.namespace}/{use.service}" for use in used})
    named = ", ".join(services[:5]) + (f" and {len(services) - 5} more" if len(services) > 5 else "")
    what = f"secret {secret}" if keys is None else f"key {used[0].key} of secret {secret}"
    raise Conflict(f"{what} is used by {named}; apply their files without it first")


def _check_values(values: Mapping[str, str]) -> None:
    """Raise InvalidInput for a malformed key or value; no message has any of a value."""
    if len(values) > MAX_KEYS:
        raise InvalidInput(f"values has {len(values)} keys; a secret has at most {MAX_KEYS}", field="values")
    for key, value in values.items():
        if not is_secret_key(key):
            raise InvalidInput(
                f"values has the key {key[:80]!r}; expected 1 to 253 letters, digits, dots, underscores and hyphens",
                field="values",
            )
        if not 0 < len(value) <= MAX_VALUE_CHARACTERS or "\0" in value:
            raise InvalidInput(
                f"the value of key {key} has {len(value)} characters; expected 1 to {MAX_VALUE_CHARACTERS} of text, "
                "without a zero byte, which no variable can have",
                field="values",
            )


def _sealed(secret: SealedSecret, key: str, value: str, now: datetime) -> SealedValue:
    return SealedValue(secret=secret, key=key, sealed=seal(value, purpose=PURPOSE), changed_at=now)


def _note(
    secret: SealedSecret,
    action: str,
    actor: str,
    now: datetime,
    *,
    before: list[str] | None,
    after: list[str] | None,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Add the audit entry, which has the names of keys only."""
    audit_record(
        actor=actor,
        action=action,
        target=f"secrets/{secret.namespace}/{secret.name}",
        now=now,
        before=None if before is None else {"keys": before},
        after=None if after is None else {"keys": after},
        detail=detail,
    )
