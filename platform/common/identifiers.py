"""Identifiers: validation of names, actors, web addresses and comments. Pure.

Every error is one sentence with the rule in it.
"""

import ipaddress
import re
from collections.abc import Container
from urllib.parse import urlsplit

from common.errors import InvalidInput

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
# Kubernetes: names of Secrets are DNS subdomains (RFC 1123), and their keys.
_SECRET_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_LONGEST_SECRET_NAME = 253
# Mimir, Cortex and Loki: several tenants of one query are joined by `|`.
_TENANT = re.compile(r"[A-Za-z0-9!._*'()|-]{1,150}")
_SHOWN = 80
MAX_COMMENT = 1000


def check_dns_label(name: str, *, field: str = "name") -> str:
    """Return `name` if it is a DNS label (RFC 1123), as names of services, namespaces and policies are."""
    if not _DNS_LABEL.fullmatch(name):
        raise InvalidInput(
            f"{field} is {name[:_SHOWN]!r}; expected a DNS label: 1 to 63 lower-case letters, digits and hyphens, "
            "with a letter or digit first and last",
            field=field,
        )
    return name


def check_model_name(name: str, *, field: str = "name") -> str:
    """Return `name` if it is valid for a model; it is part of `models:/NAME/VERSION` and of addresses."""
    if not _MODEL.fullmatch(name):
        raise InvalidInput(
            f"{field} is {name[:_SHOWN]!r}; expected a model name: 1 to 128 letters, digits, dots, underscores and "
            "hyphens, with a letter or digit first",
            field=field,
        )
    return name


def check_alias(name: str, *, field: str = "alias") -> str:
    """Return `name` if it is valid for an alias; it never looks like a version number."""
    if not _ALIAS.fullmatch(name):
        raise InvalidInput(
            f"{field} is {name[:_SHOWN]!r}; expected an alias: 1 to 64 letters, digits, dots, underscores and hyphens, "
            "with a letter first",
            field=field,
        )
    return name


def check_tenant(tenant: str, *, field: str = "tenant") -> str:
    """Return `tenant` if it is valid for the header `X-Scope-OrgID`."""
    if not _TENANT.fullmatch(tenant):
        raise InvalidInput(
            f"{field} is {tenant[:_SHOWN]!r}; expected a tenant: 1 to 150 letters, digits and !-_.*'(), several joined "
            "by |",
            field=field,
        )
    return tenant


def is_secret_name(name: str) -> bool:
    """Return whether `name` is valid for a secret."""
    return len(name) <= _LONGEST_SECRET_NAME and _SECRET_NAME.fullmatch(name) is not None


def is_secret_key(key: str) -> bool:
    """Return whether `key` is valid for a value of a secret."""
    return _SECRET_KEY.fullmatch(key) is not None and key not in (".", "..")


def is_user(actor: str, username: str) -> bool:
    """Return whether an actor is the user, with any token."""
    return actor == username or actor.startswith(token_prefix(username))


def token_prefix(username: str) -> str:
    """Return the prefix of a user's actor names with tokens."""
    return f"{username} (token "


def check_comment(comment: str) -> None:
    """Raise InvalidInput for a comment that is too long or cannot be printed."""
    if len(comment) > MAX_COMMENT or not comment.replace("\n", "").isprintable():
        raise InvalidInput(
            f"comment has {len(comment)} characters; expected at most {MAX_COMMENT}, all of them printable",
            field="comment",
        )


def is_web_address(text: str, *, schemes: Container[str] = ("http", "https")) -> bool:
    """Return whether `text` is SCHEME://HOST[:PORT][/PATH], without user, query and fragment."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
        return usable and parts.username is None and not parts.query and not parts.fragment
    except ValueError:  # of a port or an IPv6 address
        return False


def check_web_address(text: str, *, field: str, expected: str) -> str:
    """Return an address of the web without a trailing slash.

    Args:
        expected: for the error, such as `where Prometheus answers, such as https://prometheus.example.com`.
    """
    url = text.rstrip("/")
    if not is_web_address(url):
        raise InvalidInput(f"{field} is {url[:100]!r}; expected {expected}", field=field)
    return url


def is_confidential(url: str) -> bool:
    """Return whether others cannot read what is sent to `url`: it is https, or on this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False
