"""Payload logger of a service file (KServe's `spec.predictor.logger`): where requests and answers are sent. Pure."""

from urllib.parse import urlsplit

from common.errors import InvalidInput
from common.files.document import Document
from integrations.clusters.base import Logged, Logger

_LONGEST_URL = 1000


def parse_logger(document: Document) -> Logger:
    """Return the logger of an object of the file; raises InvalidInput."""
    logger = Logger(document.text("url", check=_check_url), document.choice("mode", Logged, default=Logged.ALL))
    document.refuse_unknown()
    return logger


def logger_json(logger: Logger | None) -> dict[str, str]:
    """Return a logger as the file has it; empty without one."""
    return {} if logger is None else {"url": logger.url, "mode": str(logger.mode)}


def stored_logger(value: dict[str, str]) -> Logger | None:
    """Return the logger that `logger_json` wrote."""
    return Logger(value["url"], Logged(value["mode"])) if value else None


def _check_url(url: str, *, field: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        parts, usable = urlsplit(""), False
    if (
        not usable
        or parts.query
        or parts.fragment
        or len(url) > _LONGEST_URL
        or not url.isascii()
        or not url.isprintable()
    ):
        raise InvalidInput(
            f"{field} is {url[:80]!r}; expected http:// or https:// with a host, without user, query or fragment, "
            "since everybody who sees the service sees it",
            field=field,
        )
    return url
