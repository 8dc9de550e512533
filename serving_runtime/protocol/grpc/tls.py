"""Certificates of the gRPC endpoint, read and checked at start."""

import ssl
from pathlib import Path

from serving_runtime.protocol.grpc.settings import TlsFiles


def context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a server of HTTP/2; raises ValueError, naming the flag, for a file that does not serve."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    made.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")  # of TLS 1.2, those that HTTP/2 does not forbid
    made.set_alpn_protocols(["h2"])
    _check_readable(files.server_cert, "--grpc-server-cert")
    _check_readable(files.server_key, "--grpc-server-key")
    try:
        made.load_cert_chain(files.server_cert, files.server_key, password=_no_password)
    except ssl.SSLError as error:
        pair = f"--grpc-server-cert {files.server_cert} and --grpc-server-key {files.server_key}"
        raise ValueError(f"{pair} are not a certificate in PEM form and its key without a password: {error}") from error
    if files.root_cert is not None:
        _check_readable(files.root_cert, "--grpc-root-cert")
        try:
            made.load_verify_locations(files.root_cert)
        except ssl.SSLError as error:
            raise ValueError(f"--grpc-root-cert {files.root_cert} holds no certificate in PEM form: {error}") from error
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
