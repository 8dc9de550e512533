"""Secrets, their values for the reconciler, and the services that use them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from django.db.models import QuerySet

from accounts.auth.access import visible
from accounts.domain.roles import Owned
from accounts.models import ApiToken
from common.encryption import unseal
from common.errors import Conflict, NotFound, Unavailable
from integrations.clusters.base import SecretKeyRef
from sealed_secrets import hooks
from sealed_secrets.models import SealedSecret, SealedValue

PURPOSE = "value of a secret"


def secret_query(*, token: ApiToken) -> QuerySet[SealedSecret]:
    """Return the secrets of the namespaces that the caller may see."""
    return SealedSecret.objects.prefetch_related("values").filter(visible(token, Owned.NAMESPACE, "namespace"))


def secret_get(*, namespace: str, name: str, locked: bool = False) -> SealedSecret:
    """Return one secret; raises NotFound.

    Args:
        locked: until the end of the transaction.
    """
    secrets = SealedSecret.objects.select_for_update() if locked else SealedSecret.objects.prefetch_related("values")
    found = secrets.filter(namespace=namespace, name=name).first()
    if found is None:
        raise NotFound(f"namespace {namespace[:80]!r} has no secret {name[:80]!r}; `fairlead secrets list` shows them")
    return found


def uses_of(secrets: Iterable[SealedSecret]) -> dict[int, list[hooks.Use]]:
    """Return the uses of each secret, by its id."""
    ids = {(each.namespace, each.name): each.pk for each in secrets}
    found: dict[int, list[hooks.Use]] = {pk: [] for pk in ids.values()}
    if ids:
        for several in hooks.uses({namespace for namespace, _ in ids}):
            for use in several:
                if (pk := ids.get((use.namespace, use.secret))) is not None:
                    found[pk].append(use)
    return found


def why_missing(*, namespace: str, secret_env: Mapping[str, SecretKeyRef]) -> str:
    """Return the first missing secret or key that variables name, in a sentence; empty where all are there."""
    keys: dict[str, set[str]] = defaultdict(set)
    names = {each.name for each in secret_env.values()}
    secrets = SealedSecret.objects.filter(namespace=namespace, name__in=names)
    there = set(secrets.values_list("name", flat=True))
    for name, key in SealedValue.objects.filter(secret__in=secrets).values_list("secret__name", "key"):
        keys[name].add(key)
    for variable, each in secret_env.items():
        if each.name not in there:
            return (
                f"{variable} names secret {each.name}, which namespace {namespace} does not have; create it by "
                f"`fairlead secrets create {each.name} --namespace {namespace} --key {each.key}`"
            )
        if each.key not in keys[each.name]:
            has = ", ".join(sorted(keys[each.name])) or "no key"
            return (
                f"{variable} names key {each.key} of secret {each.name}, which has {has}; set it by "
                f"`fairlead secrets set {each.name} --namespace {namespace} --key {each.key}`"
            )
    return ""


def values_of(*, namespace: str, refs: Iterable[SecretKeyRef]) -> dict[str, dict[str, str]]:
    """Return the values by the names of secrets and their keys; missing ones are left out.

    Raises:
        Conflict: a value cannot be decrypted.
    """
    wanted = {(each.name, each.key) for each in refs}
    rows = SealedValue.objects.filter(secret__namespace=namespace, secret__name__in={name for name, _ in wanted})
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for name, key, sealed in rows.values_list("secret__name", "key", "sealed"):
        if (name, key) in wanted:
            try:
                found[name][key] = unseal(sealed, purpose=PURPOSE)
            except Unavailable as error:
                raise Conflict(f"secret {namespace}/{name}, key {key}: {error.message}") from error
    return dict(found)
