"""Settings from environment variables: `FAIRLEAD_NAME`, and for secrets also `FAIRLEAD_NAME_FILE`.

Bad values end the start with one sentence; nothing falls back silently.
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from accounts.domain.audit_sinks import SyslogAddress
from accounts.domain.group_roles import GroupRole, parse
from common.errors import InvalidInput
from common.identifiers import check_dns_label, check_tenant, is_web_address
from common.images import parse_registries
from common.programs import parse_folders
from common.uris import Address, parse_prefixes
from integrations.outbound import check_url
from serving_runtime.shared.egress import Network
from serving_runtime.shared.egress import networks as parse_networks
from serving_runtime.shared.otlp import traces_url

_POSTGRESQL = {
    "connect_timeout": 5,  # seconds, for each address of the host
    # A server that vanished is noticed within a minute while an answer is awaited, not after hours.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds that sent data may stay unacknowledged
}
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """Return the variable `name`, or `default` where it is unset or empty."""
    return os.environ.get(name) or default


def secret(name: str, default: str = "", *, required: bool = False) -> str:
    """Return `name`, or the stripped content of the file that `<name>_FILE` points to."""
    path = os.environ.get(f"{name}_FILE")
    if not path:
        if required and not text(name):
            raise ImproperlyConfigured(f"{name} is not set; set it, or {name}_FILE to the path of a file that holds it")
        return text(name, default)
    if os.environ.get(name):
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one of them")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE points to {path}, which cannot be read: {error.strerror}") from error


def flag(name: str, default: bool) -> bool:
    """Return `name` as a truth value (1/0, true/false, yes/no, on/off)."""
    value = text(name).lower()
    if not value:
        return default
    if value not in _TRUE | _FALSE:
        raise ImproperlyConfigured(f"{name} is {value!r}; expected one of 1, 0, true, false, yes, no, on, off")
    return value in _TRUE


def integer(name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Return `name` as a whole number of at least `minimum`, and at most `maximum`."""
    value = text(name)
    if not value:
        return default
    if not value.isdecimal() or int(value) < minimum or (maximum is not None and int(value) > maximum):
        most = "" if maximum is None else f" and at most {maximum}"
        raise ImproperlyConfigured(f"{name} is {value!r}; expected a whole number of at least {minimum}{most}")
    return int(value)


def folder(name: str) -> Path | None:
    """Return `name` as a path without symbolic links; None where it is unset."""
    value = text(name)
    return Path(value).resolve() if value else None


def origin(name: str, default: str) -> str:
    """Return `name` as http(s)://HOST[:PORT], without a path."""
    value = text(name, default).rstrip("/")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or value != f"{parts.scheme}://{parts.netloc}":
        raise ImproperlyConfigured(f"{name} is {value!r}; expected https://HOST or https://HOST:PORT, without a path")
    return value


def web_address(name: str) -> str:
    """Return `name` as http(s)://HOST[:PORT][/PATH] without a slash at its end; empty where it is unset."""
    value = text(name).rstrip("/")
    if not value:
        return ""
    if not is_web_address(value):
        raise ImproperlyConfigured(
            f"{name} is not http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH], without user, query and fragment"
        )
    return value


def tenant(name: str) -> str:
    """Return `name` as a tenant of a metrics store; empty where it is unset."""
    value = text(name)
    try:
        return check_tenant(value, field=name) if value else ""
    except InvalidInput as error:
        raise ImproperlyConfigured(error.message) from error


def database(url: str) -> dict[str, Any]:
    """Return Django's entry for the database at `url`; its query overrides the time-outs of PostgreSQL."""
    found: dict[str, Any] = {**dj_database_url.parse(url, conn_max_age=0)}
    if found["ENGINE"] == "django.db.backends.postgresql":
        options: dict[str, Any] = found.get("OPTIONS") or {}
        found["OPTIONS"] = {**_POSTGRESQL, **options}
    return found


def url(name: str) -> str:
    """Return `name` as the address of a webhook, which may be secret; empty where it is unset."""
    value = secret(name)
    if not value:
        return ""
    try:
        return check_url(value, field=name)
    except InvalidInput:
        raise ImproperlyConfigured(
            f"{name} is not http:// or https:// with a host, without user and fragment"
        ) from None


def syslog(name: str) -> SyslogAddress | None:
    """Return `name` as the address of a syslog server; None where it is unset."""
    value = text(name)
    try:
        return SyslogAddress.of(value) if value else None
    except InvalidInput as error:
        raise ImproperlyConfigured(f"{name}: {error.message}") from error


def collector(name: str) -> str:
    """Return `name` as the base address of an OTLP collector; empty where it is unset."""
    value = text(name)
    if value:
        try:
            traces_url(value)
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} {error}") from error
    return value


def host_of(origin: str) -> str:
    """Return an origin's host as in a Host header, without the port."""
    return _as_in_a_header(urlsplit(origin).hostname or "")


def hosts(name: str, default: list[str]) -> list[str]:
    """Return `name` as hosts separated by commas, as in a Host header; an IPv6 address may be without its brackets."""
    return [_as_in_a_header(host) for host in names(name, default)]


def _as_in_a_header(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def names(name: str, default: list[str]) -> list[str]:
    """Return `name` split at commas."""
    value = text(name)
    return [part.strip() for part in value.split(",") if part.strip()] if value else default


def programs(name: str) -> tuple[str, ...] | None:
    """Return `name` as absolute paths of programs, separated by commas; None where it is unset."""
    value = os.environ.get(name)
    if value is None:
        return None
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    for path in found:
        if not path.startswith("/") or os.path.normpath(path) != path:
            raise ImproperlyConfigured(f"{name} has {path!r}; expected absolute paths such as /usr/local/bin/aws")
    return found


def choice(name: str, default: str, options: Collection[str]) -> str:
    """Return `name`, one of `options`."""
    value = text(name, default)
    if value not in options:
        raise ImproperlyConfigured(f"{name} is {value!r}; expected one of {', '.join(options)}")
    return value


def group_roles(name: str) -> tuple[GroupRole, ...]:
    """Return `name` as a mapping of groups to roles, separated by commas."""
    try:
        return parse(names(name, []))
    except InvalidInput as error:
        raise ImproperlyConfigured(f"{name}: {error.message}") from error


def networks(name: str, *, earlier: str) -> tuple[Network, ...]:
    """Return `name`, or where it is unset its former name, as IP networks separated by commas."""
    name = name if text(name) else earlier
    try:
        return parse_networks(text(name))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}; expected networks such as 10.0.0.0/8,fd00::/8") from error


def prefixes(name: str) -> tuple[Address, ...]:
    """Return `name` as prefixes of URIs, separated by commas."""
    try:
        return parse_prefixes(names(name, []))
    except InvalidInput as error:
        raise ImproperlyConfigured(error.message) from error


def registries(name: str) -> tuple[str, ...]:
    """Return `name` as registries of images, separated by commas."""
    try:
        return parse_registries(names(name, []))
    except InvalidInput as error:
        raise ImproperlyConfigured(f"{name}: {error.message}") from error


def program_folders(name: str) -> tuple[Path, ...]:
    """Return `name` as absolute paths of folders, separated by colons."""
    try:
        return parse_folders(text(name))
    except InvalidInput as error:
        raise ImproperlyConfigured(error.message) from error


def model_pool(name: str) -> str:
    """Return `name`, written NAMESPACE/NAME; empty where it is unset."""
    value = text(name)
    if not value:
        return ""
    try:
        namespace, pool = value.split("/")
        for part in (namespace, pool):
            check_dns_label(part, field=name)
    except (InvalidInput, ValueError):
        raise ImproperlyConfigured(f"{name} is {value!r}; expected NAMESPACE/NAME of a model pool") from None
    return value


def address(name: str) -> tuple[str, int] | None:
    """Return `name`, written HOST:PORT, as its two parts; None where it is unset."""
    value = text(name)
    if not value:
        return None
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ImproperlyConfigured(f"{name} is {value!r}; expected HOST:PORT such as 127.0.0.1:8082")
    return host.removeprefix("[").removesuffix("]"), int(port)
