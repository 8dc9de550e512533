"""TLS contexts of the HTTP and gRPC endpoints; certificates are read and checked at start."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HANDSHAKE_S = 10.0
"""Time limit of a client's handshake."""

SHUTDOWN_S = 2.0
"""Time limit of a client's closing handshake; else a stopping server would wait for it."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of an endpoint.

    Attributes:
        flags: prefix of the flags that name the files, "--grpc".
        root_cert: authorities that sign clients' certificates.
        mutual: clients must present a certificate.
    """

    flags: str
    server_cert: Path
    server_key: Path
    root_cert: Path | None = None
    mutual: bool = False


def context(files: TlsFiles, protocols: Sequence[str]) -> ssl.SSLContext:
    """Return the context of a server; raises ValueError, naming the flag, for an unusable file.

    Args:
        protocols: those that clients may choose (ALPN), "h2" or "http/1.1".
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    made.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")  # for TLS 1.2: those that HTTP/2 does not forbid
    made.set_alpn_protocols(protocols)
    _check_readable(files.server_cert, f"{files.flags}-server-cert")
    _check_readable(files.server_key, f"{files.flags}-server-key")
    try:
        made.load_cert_chain(files.server_cert, files.server_key, password=_no_password)
    except ssl.SSLError as error:
        pair = f"{files.flags}-server-cert {files.server_cert} and {files.flags}-server-key {files.server_key}"
        raise ValueError(f"{pair} are not a certificate in PEM form and its key without a password: {error}") from error
    if files.root_cert is not None:
        _check_readable(files.root_cert, f"{files.flags}-root-cert")
        try:
            made.load_verify_locations(files.root_cert)
        except ssl.SSLError as error:
            flag = f"{files.flags}-root-cert"
            raise ValueError(f"{flag} {files.root_cert} holds no certificate in PEM form: {error}") from error
    if files.mutual:
        made.verify_mode = ssl.CERT_REQUIRED
    return made


def _check_readable(file: Path, flag: str) -> None:
    try:
        file.read_bytes()
    except OSError as error:
        raise ValueError(f"{flag} {file} cannot be read: {error.strerror}") from error


def _no_password() -> str:
    return ""
