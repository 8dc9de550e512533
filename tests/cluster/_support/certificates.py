"""Certificates of a test control plane: its own authority, and a certificate for each who speaks in it."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class Pair:
    """Files in PEM form."""

    certificate: Path
    key: Path


class Authority:
    """An authority of its own in `folder`, which every part trusts and nobody else knows."""

    def __init__(self, folder: Path, name: str = "fairlead-test-ca") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name, ())
        self.certificate = folder / f"{name}.crt"
        basics = x509.BasicConstraints(ca=True, path_length=None)
        built = self._builder(self._name, self._key).add_extension(basics, critical=True)
        _write_certificate(self.certificate, built.sign(self._key, hashes.SHA256()))

    def issue(self, name: str, *, groups: Sequence[str] = (), addresses: Sequence[str] = ()) -> Pair:
        """Return a certificate for the user or server `name`; Kubernetes reads O as the groups of a user."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(self._folder / f"{name.replace(':', '-')}.crt", self._folder / f"{name.replace(':', '-')}.key")
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = self._builder(_name(name, groups), key).add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if addresses:
            names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.DNSName("localhost"), *names]), critical=False
            )
        _write_certificate(pair.certificate, builder.sign(self._key, hashes.SHA256()))
        write_key(pair.key, key)
        return pair

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + _LIFETIME)
        )


def write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a private key that only its owner can read."""
    file.touch(mode=0o600)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    file.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))


def _write_certificate(file: Path, certificate: x509.Certificate) -> None:
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _name(name: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
