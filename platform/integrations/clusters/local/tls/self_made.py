"""Self-made certificates: an authority of this installation, and a certificate of the gateway that it signs.

tls/ca.crt       what clients trust; it stays for ten years
tls/ca.key       mode 0600, as is the next one
tls/gateway.key
tls/gateway.crt  for the names of the gateway; renewed 30 days before its end, or when it lacks a name
"""

import fcntl
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from integrations.clusters.local.files import write_text
from integrations.clusters.local.tls.certificates import BadCertificateError

_AUTHORITY_VALID = timedelta(days=3650)
_VALID = timedelta(days=397)
"""The longest that browsers accept."""
_RENEWED_BEFORE = timedelta(days=30)
_CLOCKS_DIFFER = timedelta(hours=1)
_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
_SIOCGIFADDR = 0x8915

Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class SelfMade:
    """The files of an installation.

    Attributes:
        names: host names and addresses that the gateway's certificate is for.
    """

    folder: Path
    names: frozenset[str] | set[str]

    @property
    def authority(self) -> Path:
        """Return the file that clients trust."""
        return self.folder / "ca.crt"

    @property
    def certificate(self) -> Path:
        return self.folder / "gateway.crt"

    @property
    def key(self) -> Path:
        return self.folder / "gateway.key"

    def ensure(self, now: datetime) -> None:
        """Make what is missing, and renew what ends soon or lacks a name.

        Raises:
            BadCertificateError: a file cannot be read or written.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            authority_key = self.folder / "ca.key"
            signer, signs = _read(self.authority), _read_key(authority_key)
            if not signer or not signs or not _is_pair(signer, signs) or signer.not_valid_after_utc - now < _VALID:
                signs = ec.generate_private_key(ec.SECP256R1())
                signer = _authority(signs, now)
                _write(authority_key, _pem(signs))
                _write(self.authority, signer.public_bytes(serialization.Encoding.PEM), mode=0o644)
            own, key = _read(self.certificate), _read_key(self.key)
            if not own or not key or not _is_pair(own, key) or not self._serves(own, signer, now):
                key = ec.generate_private_key(ec.SECP256R1())
                made = _server(key, signer, signs, sorted(self.names), now)
                _write(self.key, _pem(key))
                _write(self.certificate, made.public_bytes(serialization.Encoding.PEM), mode=0o644)
        except OSError as error:
            raise BadCertificateError(
                f"the gateway's own certificate cannot be kept in {self.folder}: {error.strerror}"
            ) from error

    def _serves(self, own: x509.Certificate, signer: x509.Certificate, now: datetime) -> bool:
        """Return whether a certificate is good for the gateway from now on."""
        try:
            own.verify_directly_issued_by(signer)
            names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, TypeError, x509.ExtensionNotFound, InvalidSignature):
            return False
        has = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
        return set(self.names) <= has and own.not_valid_after_utc - now >= _RENEWED_BEFORE


def machine_names(host: str) -> set[str]:
    """Return the names and addresses by which clients reach a server that listens on `host`."""
    names = {"localhost", "127.0.0.1", "::1"}
    if host not in _EVERYWHERE:
        return names | {_normal(host)}
    return names | {_normal(name) for name in (socket.gethostname(), *_addresses())} - {""}


def _normal(name: str) -> str:
    try:
        return str(ip_address(name))
    except ValueError:
        return name.lower() if name.isascii() else ""


def _addresses() -> list[str]:
    """Return the addresses of this machine's interfaces, without those of one link only."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # an interface without an address
                answer = fcntl.ioctl(handle, _SIOCGIFADDR, struct.pack("256s", os.fsencode(name)[:15]))
                found.append(socket.inet_ntoa(answer[20:24]))
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
            address = ip_address(bytes.fromhex(line.split()[0]))
            if not address.is_link_local:
                found.append(str(address))
    return found


def _authority(key: Key, now: datetime) -> x509.Certificate:
    name = _name(f"Fairlead gateway of {socket.gethostname()}"[:64])
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return (
        _builder(name, name, key, now, _AUTHORITY_VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _server(key: Key, signer: x509.Certificate, signs: Key, names: list[str], now: datetime) -> x509.Certificate:
    return (
        _builder(_name("Fairlead gateway"), signer.subject, key, now, _VALID)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signs.public_key()), critical=False)
        .sign(signs, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, now: datetime, valid: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now - _CLOCKS_DIFFER + valid)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _read(path: Path) -> x509.Certificate | None:
    """Return the certificate; None where the file is missing or damaged."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _read_key(path: Path) -> Key | None:
    try:
        found = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return found if isinstance(found, Key) else None


def _is_pair(certificate: x509.Certificate, key: Key) -> bool:
    """Return whether they are of each other: the key is written first, and a crash may follow."""
    return certificate.public_key() == key.public_key()


def _pem(key: Key) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _write(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace a file; until it has its mode only its owner may read it."""
    write_text(path, content.decode(), durable=True)
    path.chmod(mode)
