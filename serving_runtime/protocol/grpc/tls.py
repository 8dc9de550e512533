"""Certificates of the gRPC endpoint, read and checked at start: grpcio would tell of nothing but a failed port."""

import ssl
from pathlib import Path

import grpc

from serving_runtime.protocol.grpc.settings import TlsFiles


def credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Return grpcio's credentials; raises ValueError, naming the flag, for a file that does not serve."""
    certificate = _content(files.server_cert, "--grpc-server-cert")
    key = _content(files.server_key, "--grpc-server-key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            files.server_cert, files.server_key, password=_no_password
        )
    except ssl.SSLError as error:
        pair = f"--grpc-server-cert {files.server_cert} and --grpc-server-key {files.server_key}"
        raise ValueError(f"{pair} are not a certificate in PEM form and its key without a password: {error}") from error
    roots = None
    if files.root_cert is not None:
        roots = _content(files.root_cert, "--grpc-root-cert")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(files.root_cert)
        except ssl.SSLError as error:
            raise ValueError(f"--grpc-root-cert {files.root_cert} holds no certificate in PEM form: {error}") from error
    return grpc.ssl_server_credentials([(key, certificate)], roots, files.mutual)


def _content(file: Path, flag: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ValueError(f"{flag} {file} cannot be read: {error.strerror}") from error


def _no_password() -> str:
    return ""
