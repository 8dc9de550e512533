"""HTTP session of `requests` for the span exporter, with all connections through one Unix socket.

TLS uses the URL's host over the socket; the host's name is not resolved. Needs the extra `tracing`.
"""

import socket
from typing import Any

from requests import Session
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

_CONNECT_S = 5.0


def session_through(path: str) -> Session:
    """Return a session that connects through the socket at `path`, and ignores the environment's proxies."""

    def connected() -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(_CONNECT_S)
        try:
            found.connect(path)
        except OSError:
            found.close()
            raise
        return found

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return connected()

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return connected()

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **more: Any) -> None:
            super().init_poolmanager(*arguments, **more)
            self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    session = Session()
    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, Adapter())
    return session
