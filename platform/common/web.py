"""Addresses of the web as people write them into settings and files. Pure."""

from collections.abc import Container
from urllib.parse import urlsplit


def is_web_address(text: str, *, schemes: Container[str] = ("http", "https")) -> bool:
    """Return whether `text` is SCHEME://HOST[:PORT][/PATH], without user, query and fragment."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
        return usable and parts.username is None and not parts.query and not parts.fragment
    except ValueError:  # of a port or an IPv6 address
        return False
