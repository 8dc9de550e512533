"""Syslog client: sends messages over UDP (RFC 5426), TCP (RFC 6587, octet counting) or TLS (RFC 5425).

Syslog has no acknowledgements. Over TCP and TLS each batch has a connection of its own, which is closed in order: only
a server that then closes its side too has read all of it. Over UDP lost messages are not noticed.
"""

import socket
import ssl
import time
from collections.abc import Sequence

from common.errors import Unavailable


def send_datagrams(host: str, port: int, messages: Sequence[bytes], *, timeout_s: float) -> None:
    """Send each message in a datagram; raises Unavailable where the name has no address or the port is closed."""
    where = f"udp://{host}:{port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as connection:
            connection.settimeout(timeout_s)
            connection.connect(address)
            for message in messages:
                connection.send(message)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"{where} does not take messages: {error}") from error


def send_stream(
    host: str, port: int, messages: Sequence[bytes], *, tls: ssl.SSLContext | None, timeout_s: float
) -> None:
    """Send the messages over a new connection.

    Args:
        timeout_s: for connecting to each address of the host, and for all that follows.

    Raises:
        Unavailable: the server did not take all of them; it may have taken some.
    """
    where = f"{'tcp' if tls is None else 'tls'}://{host}:{port}"
    deadline = time.monotonic() + timeout_s
    content = b"".join(b"%d %s" % (len(message), message) for message in messages)
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            _limit(connection, deadline)
            if tls is None:
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
                _read_to_end(connection, deadline)
                return
            with tls.wrap_socket(connection, server_hostname=host) as secured:
                _limit(secured, deadline)
                secured.sendall(content)
                _limit(secured, deadline)
                _close(secured)
    except TimeoutError as error:
        raise Unavailable(f"{where} did not take all messages and end the connection within {timeout_s:g} s") from error
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"{where} does not take messages: {error}") from error


def context(authority: str) -> ssl.SSLContext:
    """Return the TLS context; trusts the machine's authorities, or those of a PEM text alone.

    Raises:
        ValueError: the text has no certificate.
    """
    made = ssl.create_default_context(cadata=authority or None)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made


def _limit(connection: socket.socket, deadline: float) -> None:
    """Let the next step take until the deadline; raises TimeoutError beyond it."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    connection.settimeout(left_s)


def _read_to_end(connection: socket.socket, deadline: float) -> None:
    _limit(connection, deadline)
    while connection.recv(4096):
        _limit(connection, deadline)


def _close(secured: ssl.SSLSocket) -> None:
    """Send close_notify and wait until the server closes, with its own or without, as many do."""
    try:
        secured.unwrap()
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        return
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        if error.errno:
            raise
