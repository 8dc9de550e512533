"""By which authorities clients know servers."""

import ssl
from functools import lru_cache


@lru_cache(maxsize=16)
def trust(authority: str = "") -> ssl.SSLContext:
    """Return what certificates are checked by, kept since to read all authorities of a machine takes 20 ms.

    Args:
        authority: the only one that counts, as PEM; those of the machine where there is none.

    Raises:
        ssl.SSLError: it is no certificate.
    """
    return ssl.create_default_context(cadata=authority or None)
