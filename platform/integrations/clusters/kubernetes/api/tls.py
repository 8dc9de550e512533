"""TLS to a cluster's API server."""

import ssl
import tempfile
from pathlib import Path

from common.errors import InvalidInput
from integrations.clusters.kubernetes.access import Credentials


def tls_of(credentials: Credentials) -> ssl.SSLContext:
    """Return the TLS context of connections.

    Raises:
        InvalidInput: a certificate or the key is invalid, or they do not belong together.
    """
    try:
        context = ssl.create_default_context(cadata=credentials.authority or None)
        if credentials.certificate:
            _load(context, credentials.certificate, credentials.key)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidInput(f"certificates and key for {credentials.server} cannot be used: {error}") from error
    return context


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a client's certificate. Python reads it from files only: these are removed at once."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:  # readable for its owner alone
        pair = Path(folder) / "pair.pem"
        pair.write_text(f"{certificate}\n{key}\n", encoding="ascii")
        context.load_cert_chain(pair)
