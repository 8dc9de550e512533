"""Cross-origin calls of a service file: which web pages may call the service from a browser. Pure.

cors: {origins: [https://app.example.com]}
cors: {origins: ["*"], maxAge: 1h}            of a public service
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from common.errors import InvalidInput
from common.files.document import Document
from deployments.domain.service_file.access import FIELD as ACCESS
from deployments.domain.service_file.access import PUBLIC, AccessPolicy
from integrations.clusters.base import ANY_ORIGIN, Cors

FIELD = "spec.cors"
_MOST = 100
_MOST_AGE = timedelta(days=1)
_DEFAULT_AGE = timedelta(minutes=10)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def parse_cors(spec: Document) -> Cors | None:
    """Return the origins of `spec.cors`; None without it, which lets no page of another origin call.

    Raises:
        InvalidInput: it has no origins, or one that no browser sends.
    """
    cors = spec.optional("cors")
    if cors is None:
        return None
    origins = cors.raw("origins")
    age = cors.duration("maxAge", default=_DEFAULT_AGE)
    cors.refuse_unknown()
    if age > _MOST_AGE:
        cors.fault("maxAge", "is longer than a day, which browsers cut it to; write 24h or less")
    if not isinstance(origins, list) or not 0 < len(origins) <= _MOST:
        raise InvalidInput(f"{FIELD}.origins is wrong; expected a list of 1 to {_MOST} origins", field=FIELD)
    if ANY_ORIGIN in origins and len(origins) > 1:
        raise InvalidInput(f"{FIELD}.origins has '*' besides others; write it alone, or leave it out", field=FIELD)
    for origin in origins:
        if origin != ANY_ORIGIN and not is_origin(origin):
            raise InvalidInput(
                f"{FIELD}.origins has {str(origin)[:100]!r}; expected origins as browsers send them, such as "
                "https://app.example.com or http://localhost:3000: lower case, without a path, a wildcard or the "
                "default port",
                field=FIELD,
            )
    return Cors(tuple(dict.fromkeys(origins)), int(age.total_seconds()))


def check_cors(cors: Cors | None, access: AccessPolicy) -> None:
    """Raise InvalidInput where pages of every origin may call a service that not everybody may."""
    if cors is not None and ANY_ORIGIN in cors.origins and access.callers is not None:
        raise InvalidInput(
            f"{FIELD}.origins is '*', but the service is not public; name the origins whose pages may call it, or "
            f"write {ACCESS}: {PUBLIC}",
            field=FIELD,
        )


def is_origin(text: object) -> bool:
    """Return whether a browser sends this as the origin of a page."""
    if not isinstance(text, str) or not text.isascii() or not text.isprintable() or " " in text or len(text) > 270:
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    named = f"[{host}]" if ":" in host else host
    return (
        parts.scheme in _DEFAULT_PORTS
        and bool(host)
        and not set(host) & set("*%'\"\\")
        and port not in (0, _DEFAULT_PORTS[parts.scheme])
        and text == f"{parts.scheme}://{named}{'' if port is None else f':{port}'}"
    )


def cors_json(cors: Cors | None) -> dict[str, Any] | None:
    """Return it for the database."""
    return None if cors is None else {"origins": list(cors.origins), "max_age_s": cors.max_age_s}


def stored_cors(value: Mapping[str, Any] | None) -> Cors | None:
    """Return what `cors_json` wrote."""
    return None if value is None else Cors(tuple(value["origins"]), value["max_age_s"])
