"""Settings of the gateway's TLS, the check of its files, and self-made certificates."""

import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from integrations.clusters.local.tls import BadCertificateError, GatewayTls
from integrations.clusters.local.tls.self_made import SelfMade, machine_names
from tests.integrations._support.certificates import Authority

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
NAMES = {"localhost", "127.0.0.1", "models.example.com"}


def refused(tls: GatewayTls) -> str:
    with pytest.raises(BadCertificateError) as error:
        tls.read(datetime.now(UTC))
    return str(error.value)


class TestFiles:
    def test_a_pair_is_read_with_its_end_and_fingerprint(self, tmp_path: Path) -> None:
        certificate, key = Authority("ca").issue(tmp_path, "server", ends=90 * DAY)
        found = GatewayTls(certificate, key).read(datetime.now(UTC)).certificate
        made = ssl.PEM_cert_to_DER_cert(certificate.read_text())
        assert found.fingerprint == x509.load_der_x509_certificate(made).fingerprint(hashes.SHA256()).hex()
        assert timedelta(days=89) < found.expires_at - datetime.now(UTC) < timedelta(days=91)

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            ("missing", "cannot be read: No such file or directory"),
            ("a folder", "cannot be read: Is a directory"),
            ("too large", "has more than 1 MiB"),
            ("no PEM", "is no certificate in PEM"),
            ("half a chain", "ends within a certificate"),
            ("expired", "expired on"),
            ("not yet valid", "is not valid before"),
            ("mismatch", "is not the key of the certificate in"),
            ("key is no PEM", "is no private key in PEM"),
            ("encrypted key", "is encrypted with a passphrase"),
            ("short RSA", "has a key that the gateway cannot use"),
            ("Ed25519", "has a key that the gateway cannot use"),
        ],
    )
    def test_what_is_wrong_is_one_sentence(self, name: str, sentence: str, tmp_path: Path) -> None:
        authority = Authority("ca")
        certificate, key = authority.issue(tmp_path, "server")
        if name == "missing":
            certificate.unlink()
        elif name == "a folder":
            certificate = tmp_path
        elif name == "too large":
            certificate.write_bytes(b"-" * (2 << 20))
        elif name == "no PEM":
            certificate.write_bytes(b"hello")
        elif name == "half a chain":
            certificate.write_bytes(certificate.read_bytes() + authority.pem[:-40])
        elif name == "expired":
            certificate, key = authority.issue(tmp_path, "late", ends=-timedelta(minutes=1))
        elif name == "not yet valid":
            certificate, key = authority.issue(tmp_path, "early", begins=timedelta(minutes=5))
        elif name == "mismatch":
            key = authority.issue(tmp_path, "other")[1]
        elif name == "key is no PEM":
            key.write_bytes(certificate.read_bytes())
        elif name == "encrypted key":
            key.write_bytes(_pem(key, serialization.BestAvailableEncryption(b"secret")))
        elif name == "short RSA":
            certificate, key = authority.issue(tmp_path, "short", key=rsa.generate_private_key(65537, 1024))
        else:
            form = serialization.PrivateFormat.PKCS8
            private = ed25519.Ed25519PrivateKey.generate()
            key.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        found = refused(GatewayTls(certificate, key))
        assert sentence in found
        assert "\n" not in found

    def test_the_certificate_of_a_server_is_no_authority_of_clients(self, tmp_path: Path) -> None:
        certificate, key = Authority("ca").issue(tmp_path, "server")
        assert "which is no authority" in refused(GatewayTls(certificate, key, None, certificate))


class TestSettings:
    def of(self, tmp_path: Path, **given: str) -> GatewayTls | None:
        environ = {f"FAIRLEAD_GATEWAY_{name.upper()}": value for name, value in given.items()}
        return GatewayTls.of(environ, home=tmp_path, host="127.0.0.1")

    def test_without_any_the_gateway_speaks_plain_http(self, tmp_path: Path) -> None:
        assert self.of(tmp_path) is None
        assert self.of(tmp_path, tls="", certificate="", key="", client_ca="") is None

    def test_given_files_win_and_a_self_made_one_is_for_the_public_host_too(self, tmp_path: Path) -> None:
        given = self.of(tmp_path, tls="true", certificate="/a.crt", key="/a.key", client_ca="/ca.pem")
        assert given == GatewayTls(Path("/a.crt"), Path("/a.key"), None, Path("/ca.pem"))
        made = self.of(tmp_path, tls="true", url="https://models.example.com:8443")
        assert made is not None
        assert made.self_made is not None
        assert {"models.example.com", "localhost", "127.0.0.1", "::1"} <= made.self_made.names

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({"certificate": "/a.crt"}, "--gateway-certificate is given without --gateway-key"),
            ({"key": "/a.key", "tls": "true"}, "--gateway-key is given without --gateway-certificate"),
            ({"client_ca": "/ca.pem"}, "--gateway-client-ca is for a gateway with TLS"),
            ({"tls": "ture"}, "FAIRLEAD_GATEWAY_TLS is 'ture'; expected true or false"),
        ],
    )
    def test_half_of_them_is_refused(self, given: dict[str, str], sentence: str, tmp_path: Path) -> None:
        with pytest.raises(BadCertificateError, match=sentence):
            self.of(tmp_path, **given)

    def test_the_check_before_a_start_prints_what_clients_trust_or_the_reason(self, tmp_path: Path) -> None:
        def checked(**variables: str) -> "subprocess.CompletedProcess[str]":
            command = [sys.executable, "-m", "integrations.clusters.local.tls", "--gateway-address", "127.0.0.1:8090"]
            environ = {"PATH": "", "FAIRLEAD_HOME": str(tmp_path), **variables}
            return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)

        made = checked(FAIRLEAD_GATEWAY_TLS="true")
        assert (made.returncode, made.stderr) == (0, "")
        assert made.stdout.splitlines()[1] == f"clients trust {tmp_path / 'tls' / 'ca.crt'}"
        bad = checked(FAIRLEAD_GATEWAY_CERTIFICATE="/none.crt", FAIRLEAD_GATEWAY_KEY="/none.key")
        assert (bad.returncode, bad.stdout) == (1, "")
        assert bad.stderr == "/none.crt cannot be read: No such file or directory\n"


class TestSelfMade:
    def made(self, folder: Path, now: datetime = NOW, names: set[str] | None = None) -> x509.Certificate:
        own = SelfMade(folder / "tls", NAMES if names is None else names)
        GatewayTls(own.certificate, own.key, own).read(now)
        return x509.load_pem_x509_certificate(own.certificate.read_bytes())

    def test_it_is_for_its_names_signed_by_an_authority_that_clients_trust(self, tmp_path: Path) -> None:
        own = self.made(tmp_path)
        assert own.not_valid_after_utc - own.not_valid_before_utc <= timedelta(days=397)
        names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert set(names.get_values_for_type(x509.DNSName)) == {"localhost", "models.example.com"}
        assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["127.0.0.1"]
        authority = x509.load_pem_x509_certificate((tmp_path / "tls" / "ca.crt").read_bytes())
        own.verify_directly_issued_by(authority)
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "tls").iterdir()}
        assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "gateway.crt": 0o644, "gateway.key": 0o600}
        assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700

    def test_it_stays_until_thirty_days_before_its_end_and_its_authority_stays_then_too(self, tmp_path: Path) -> None:
        own = self.made(tmp_path)
        authority = (tmp_path / "tls" / "ca.crt").read_bytes()
        assert self.made(tmp_path, NOW + 366 * DAY) == own
        renewed = self.made(tmp_path, NOW + 368 * DAY)
        assert renewed.not_valid_after_utc > own.not_valid_after_utc
        assert (tmp_path / "tls" / "ca.crt").read_bytes() == authority

    def test_a_new_name_a_damaged_file_and_another_authority_make_another(self, tmp_path: Path) -> None:
        own = self.made(tmp_path)
        assert self.made(tmp_path, names={"localhost"}) == own
        wider = self.made(tmp_path, names={*NAMES, "10.0.0.7"})
        assert wider != own
        (tmp_path / "tls" / "gateway.key").write_text("hello")
        after = self.made(tmp_path)
        assert after != wider
        (tmp_path / "tls" / "ca.crt").unlink()
        last = self.made(tmp_path)
        last.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "tls" / "ca.crt").read_bytes()))
        assert last != after

    @pytest.mark.parametrize("name", ["ca.key", "gateway.key"])
    def test_a_crash_between_key_and_certificate_is_mended(self, name: str, tmp_path: Path) -> None:
        self.made(tmp_path / "other")
        own = self.made(tmp_path)
        (tmp_path / "other" / "tls" / name).replace(tmp_path / "tls" / name)
        after = self.made(tmp_path)
        assert after != own
        after.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "tls" / "ca.crt").read_bytes()))

    def test_a_folder_that_cannot_be_written_is_one_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "tls").write_text("")
        own = SelfMade(tmp_path / "tls", NAMES)
        assert "cannot be kept" in refused(GatewayTls(own.certificate, own.key, own))

    def test_a_gateway_on_all_addresses_has_the_machines_names(self) -> None:
        assert machine_names("10.1.2.3") == {"localhost", "127.0.0.1", "::1", "10.1.2.3"}
        assert {"localhost", "127.0.0.1", "::1"} < machine_names("0.0.0.0")


def _pem(key: Path, encryption: serialization.KeySerializationEncryption) -> bytes:
    found = serialization.load_pem_private_key(key.read_bytes(), password=None)
    return found.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
