"""Payload logger of a service file (KServe's `spec.predictor.logger`): where requests and answers are sent. Pure."""

from urllib.parse import urlsplit

from common.document import Document
from common.errors import InvalidInput
from integrations.clusters.base import Logged, Logger

_LONGEST_URL = 1000


def parse_logger(predictor: Document) -> Logger | None:
    """Return the predictor's logger, None where it has none; raises InvalidInput."""
    document = predictor.optional("logger")
    if document is None:
        return None
    logger = Logger(_url(document), document.choice("mode", Logged, default=Logged.ALL))
    document.refuse_unknown()
    return logger


def logger_json(logger: Logger | None) -> dict[str, str]:
    """Return a logger as the file has it; empty without one."""
    return {} if logger is None else {"url": logger.url, "mode": str(logger.mode)}


def stored_logger(value: dict[str, str]) -> Logger | None:
    """Return the logger that `logger_json` wrote."""
    return Logger(value["url"], Logged(value["mode"])) if value else None


def _url(document: Document) -> str:
    url = document.text("url")
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
            f"{document.path('url')} is {url[:80]!r}; expected http:// or https:// with a host, without user, query or "
            "fragment, since everybody who sees the service sees it",
            field=document.path("url"),
        )
    return url
