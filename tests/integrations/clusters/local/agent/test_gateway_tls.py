"""The agent's part in the gateway's TLS: what its status says, and certificates that change while no agent runs."""

import signal
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from integrations.clusters.local.agent.gateway.envoy_admin import own_socket, socket_of_gateway
from tests.integrations._support.certificates import Authority


def presented(url: str) -> str:
    """Return the certificate, in PEM, that a new connection gets."""
    parts = urlsplit(url)
    assert parts.scheme == "https"
    return ssl.get_server_certificate((str(parts.hostname), int(parts.port or 0)), timeout=20)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Authority, Path, Path]:
    authority = Authority("ca")
    certificate, key = authority.issue(tmp_path, "server")
    monkeypatch.setenv("FAIRLEAD_GATEWAY_CERTIFICATE", str(certificate))
    monkeypatch.setenv("FAIRLEAD_GATEWAY_KEY", str(key))
    return authority, certificate, key


def test_the_status_says_what_is_wrong_and_a_new_agent_takes_up_what_changed(cluster, eventually, files, tmp_path):
    authority, certificate, key = files
    cluster.hold()
    cluster.start(certificates_s=0.1)
    assert presented(cluster.url) == certificate.read_text()
    assert socket_of_gateway(cluster.home) == own_socket(cluster.layout)

    whole = certificate.read_text()
    certificate.write_text(whole[:200])
    gateway = eventually(
        lambda: next(
            (each for each in cluster.status()["components"] if each["message"].startswith(str(certificate))), 0
        ),
        "the status names the file",
    )
    assert gateway["ready"]
    assert "ends within a certificate" in gateway["message"]
    assert "goes on with the certificate of before, which is valid until" in gateway["message"]
    assert presented(cluster.url) == whole
    found = next(each for each in cluster.driver.findings(()) if each.about == "gateway")
    assert (found.ok, found.message) == (False, gateway["message"])

    cluster.stop(signal.SIGKILL)
    (tmp_path / "new").mkdir()
    for made, target in zip(authority.issue(tmp_path / "new", "server"), (certificate, key), strict=True):
        made.replace(target)
    cluster.start(certificates_s=0.1)
    eventually(lambda: presented(cluster.url) == certificate.read_text(), "the next agent's certificate")
    assert [each["message"] for each in cluster.status()["components"] if each["name"] == "gateway"] == [""]
    assert cluster.status()["components"][0]["restarts"] == 0, "the same Envoy"


def test_an_agent_does_not_start_with_a_certificate_that_cannot_be_used(cluster, files):
    _, certificate, _ = files
    certificate.write_text("hello")
    with pytest.raises(AssertionError, match="is no certificate in PEM"):
        cluster.start()
    assert cluster.agent.wait(timeout=30) == 1
    cluster.agent = None


def test_without_tls_the_control_plane_has_no_socket_of_its_own(cluster):
    cluster.start()
    assert cluster.url.startswith("http://")
    assert socket_of_gateway(cluster.home) is None
