"""What things may be called. Pure; every refusal is one sentence with the rule in it."""

import re

from common.errors import InvalidInput

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_SHOWN = 80


def check_dns_label(name: str, *, field: str = "name") -> str:
    """Return `name` if it is a DNS label (RFC 1123), which names of services, namespaces and policies are."""
    if not _DNS_LABEL.fullmatch(name):
        raise InvalidInput(
            f"{field} is {name[:_SHOWN]!r}; expected a DNS label: 1 to 63 lower-case letters, digits and hyphens, "
            "with a letter or digit first and last",
            field=field,
        )
    return name


def check_model_name(name: str, *, field: str = "name") -> str:
    """Return `name` if a model may be called so; it stands in `models:/NAME/VERSION` and in addresses."""
    if not _MODEL.fullmatch(name):
        raise InvalidInput(
            f"{field} is {name[:_SHOWN]!r}; expected a model name: 1 to 128 letters, digits, dots, underscores and "
            "hyphens, with a letter or digit first",
            field=field,
        )
    return name


def check_alias(name: str, *, field: str = "alias") -> str:
    """Return `name` if an alias may be called so; it never looks like a version number."""
    if not _ALIAS.fullmatch(name):
        raise InvalidInput(
            f"{field} is {name[:_SHOWN]!r}; expected an alias: 1 to 64 letters, digits, dots, underscores and hyphens, "
            "with a letter first",
            field=field,
        )
    return name
