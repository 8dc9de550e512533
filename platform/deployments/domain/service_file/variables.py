"""Environment variables of a container in a service file: plain values, and references to secrets. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from common.files.document import Document
from common.identifiers import is_secret_key, is_secret_name
from integrations.clusters.base import SecretKeyRef

# In UTF-8, below Linux's limit of 128 KiB per variable.
_MAX_ENV_CHARACTERS = 30_000
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_WORDS = {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "APIKEY", "CREDENTIAL", "CREDENTIALS"}


def parse_env(container: Document) -> tuple[dict[str, str], dict[str, SecretKeyRef]]:
    """Return the variables of a container: those with values, and those whose values are in secrets."""
    env: dict[str, str] = {}
    secret_env: dict[str, SecretKeyRef] = {}
    for entry in container.documents("env") if container.raw("env", None) is not None else []:
        name = entry.text("name")
        if not _ENV_NAME.fullmatch(name):
            entry.fault("name", f"is {name[:60]!r}, which is no name of a variable")
        if name in env or name in secret_env:
            entry.fault("name", f"is {name!r}, which is there twice")
        source = entry.optional("valueFrom")
        if source is None:
            env[name] = entry.text("value")
        else:
            if entry.raw("value", None) is not None:
                entry.fault("value", "and valueFrom both give the value; leave out one of them")
            secret_env[name] = _reference(source)
        entry.refuse_unknown()
    characters = sum(len(name) + len(value) for name, value in env.items()) + sum(map(len, secret_env))
    if characters > _MAX_ENV_CHARACTERS:
        container.fault("env", f"has {characters} characters in all; a process is given at most {_MAX_ENV_CHARACTERS}")
    return env, secret_env


def env_json(env: Mapping[str, str], secret_env: Mapping[str, SecretKeyRef]) -> list[dict[str, Any]]:
    """Return the variables as a service file has them."""
    plain = [{"name": name, "value": value} for name, value in env.items()]
    return [
        *plain,
        *({"name": name, "valueFrom": {"secretKeyRef": each}} for name, each in secret_env_json(secret_env).items()),
    ]


def secret_env_json(secret_env: Mapping[str, SecretKeyRef]) -> dict[str, dict[str, str]]:
    """Return the references by the names of their variables."""
    return {name: {"name": each.name, "key": each.key} for name, each in secret_env.items()}


def stored_secret_env(value: Mapping[str, Mapping[str, str]]) -> dict[str, SecretKeyRef]:
    """Return the references from the JSON of `secret_env_json`."""
    return {name: SecretKeyRef(each["name"], each["key"]) for name, each in value.items()}


def secret_warnings(fields: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[str]:
    """Yield a warning for each plain value whose variable's name is that of a secret.

    Args:
        fields: environments with the names of their fields.
    """
    for field, env in fields:
        for name, value in env.items():
            if value and _SECRET_WORDS & set(name.upper().split("_")):
                yield (
                    f"{field} has the value of {name}, which everybody who sees the service can read; if it is secret, "
                    "write valueFrom.secretKeyRef in its place"
                )


def _reference(source: Document) -> SecretKeyRef:
    reference = source.document("secretKeyRef")
    name, key = reference.text("name"), reference.text("key")
    if reference.is_sound("name") and not is_secret_name(name):
        what = "expected lower-case letters, digits, dots and hyphens, with a letter or digit first and last"
        reference.fault("name", f"is {name[:80]!r}, which is no name of a secret; {what}")
    if reference.is_sound("key") and not is_secret_key(key):
        reference.fault("key", f"is {key[:80]!r}; expected letters, digits, dots, underscores and hyphens")
    reference.refuse_unknown()
    source.refuse_unknown()
    return SecretKeyRef(name, key)
