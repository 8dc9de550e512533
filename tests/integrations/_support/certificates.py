"""Certificates of tests: those that sign themselves, and those of an authority."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

_HOUR = timedelta(hours=1)


def certified(folder: Path, host: str) -> tuple[Path, Path]:
    """Return the PEM files of a certificate for a host's name, and of its key."""
    return Authority(host).files(folder, host)


class Authority:
    """An authority, which signs certificates for servers and clients."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = _signed(name, self._key.public_key(), name, self._key, is_authority=True)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def files(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write its own certificate and key."""
        return _files(folder, name, self.pem, self._key)

    def issue(
        self,
        folder: Path,
        name: str,
        host: str = "127.0.0.1",
        *,
        begins: timedelta = -_HOUR,
        ends: timedelta = 24 * 30 * _HOUR,
        key: "ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None" = None,
    ) -> tuple[Path, Path]:
        """Write a certificate for a host, and its key."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        made = _signed(host, key.public_key(), str(issuer), self._key, begins=begins, ends=ends)
        return _files(folder, name, made.public_bytes(serialization.Encoding.PEM), key)


def _signed(
    host: str,
    public: "ec.EllipticCurvePublicKey | rsa.RSAPublicKey",
    issuer: str,
    signs: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool = False,
    begins: timedelta = -_HOUR,
    ends: timedelta = _HOUR,
) -> x509.Certificate:
    subject, signer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (host, issuer))
    now = datetime.now(UTC)
    try:
        name: x509.GeneralName = x509.IPAddress(ip_address(host))
    except ValueError:
        name = x509.DNSName(host)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(signs, hashes.SHA256())
    )


def _files(
    folder: Path, name: str, pem: bytes, key: "ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey"
) -> tuple[Path, Path]:
    files = folder / f"{name}.crt", folder / f"{name}.key"
    files[0].write_bytes(pem)
    form = serialization.PrivateFormat.PKCS8
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return files
