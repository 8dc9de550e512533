"""Check of certificates: only a pair that certainly works replaces the one that the gateway serves with.

Files are replaced while they are read: by rename, by overwriting, the certificate before the key. A half-written pair
fails a check here, and the next look finds the whole one.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

_MOST_BYTES = 1 << 20
_LEAST_RSA_BITS = 2048
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)


class BadCertificateError(Exception):
    """A certificate, key or setting cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """A certificate with its chain, and its private key, both as PEM.

    Attributes:
        fingerprint: SHA-256 of the certificate, in hexadecimal.
    """

    chain: bytes
    key: bytes
    fingerprint: str
    expires_at: datetime


def content_of(path: Path) -> bytes:
    """Return a file's content; raises BadCertificateError where it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadCertificateError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise BadCertificateError(f"{path} has more than {_MOST_BYTES >> 20} MiB; expected a file in PEM")
    return content


def server_certificate(certificate: Path, key: Path, now: datetime) -> ServerCertificate:
    """Return a server's certificate and key; raises BadCertificateError where they cannot be used now."""
    chain, private = content_of(certificate), content_of(key)
    own = _certificates(certificate, chain)[0]
    _check_time(certificate, own, now)
    if _public(_private_key(key, private).public_key()) != _public(own.public_key()):
        raise BadCertificateError(f"{key} is not the key of the certificate in {certificate}; give the pair")
    return ServerCertificate(chain, private, own.fingerprint(hashes.SHA256()).hex(), own.not_valid_after_utc)


def authorities(path: Path, content: bytes, now: datetime) -> bytes:
    """Return the PEM of authorities; raises BadCertificateError where one of them cannot be used now."""
    for each in _certificates(path, content):
        _check_time(path, each, now)
        try:
            is_authority = each.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except (x509.ExtensionNotFound, ValueError):
            is_authority = False
        if not is_authority:
            raise BadCertificateError(
                f"{path} has the certificate of {each.subject.rfc4514_string()!r}, which is no authority "
                "(CA:TRUE is missing); give those that sign the certificates of clients"
            )
    return content


def _certificates(path: Path, content: bytes) -> list[x509.Certificate]:
    if content.count(b"-----BEGIN ") != content.count(b"-----END "):
        raise BadCertificateError(f"{path} ends within a certificate; expected whole ones in PEM")
    try:
        return x509.load_pem_x509_certificates(content)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificateError(f"{path} is no certificate in PEM; expected -----BEGIN CERTIFICATE-----") from error


def _private_key(path: Path, content: bytes) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    try:
        found = serialization.load_pem_private_key(content, password=None)
    except TypeError as error:
        raise BadCertificateError(
            f"{path} is encrypted with a passphrase; give the key without one, in a file that only its user may read"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificateError(f"{path} is no private key in PEM; expected -----BEGIN PRIVATE KEY-----") from error
    if isinstance(found, rsa.RSAPrivateKey) and found.key_size >= _LEAST_RSA_BITS:
        return found
    if isinstance(found, ec.EllipticCurvePrivateKey) and isinstance(found.curve, _CURVES):
        return found
    raise BadCertificateError(
        f"{path} has a key that the gateway cannot use; it takes RSA of at least {_LEAST_RSA_BITS} bits, and ECDSA on "
        "P-256, P-384 or P-521"
    )


def _check_time(path: Path, certificate: x509.Certificate, now: datetime) -> None:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        raise BadCertificateError(f"the certificate in {path} is not valid before {begins:%Y-%m-%d %H:%M} UTC")
    if now >= ends:
        raise BadCertificateError(f"the certificate in {path} expired on {ends:%Y-%m-%d %H:%M} UTC; renew it")


def _public(key: CertificatePublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
