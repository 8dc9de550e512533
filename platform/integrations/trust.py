"""TLS trust of clients: the certificate authorities by which they verify servers."""

import ssl
from functools import lru_cache


@lru_cache(maxsize=16)
def trust(authority: str = "") -> ssl.SSLContext:
    """Return the TLS context, cached since reading all authorities of a machine takes 20 ms.

    Args:
        authority: the only trusted one, as PEM; empty trusts those of the machine.

    Raises:
        ssl.SSLError: it is no certificate.
    """
    return ssl.create_default_context(cadata=authority or None)
