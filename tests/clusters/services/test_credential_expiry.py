"""When the credentials of clusters end, and what the check, the page and the metrics say of it."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from clusters.models import Cluster
from clusters.services.connection import exec_token_times, sealed
from clusters.services.credential_expiry import Expiry, expiries, expiry_findings
from deployments.reconcile.restarts import note_components
from integrations.clusters.base import Nodes
from integrations.clusters.kubernetes.access import Credentials, ExecPlugin
from tests._support.page import marked
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.pages import signed_in, text
from tests.integrations._support.exec_plugins import credential, printing

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 27, tzinfo=UTC)


def certificate(end: datetime) -> str:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - timedelta(days=900), end)
    return made.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


def jwt(**claims: object) -> str:
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims))
    return f"{head}.{body}.c2ln"


def cluster(token: str = "", pem: str = "") -> Cluster:
    return Cluster.objects.create(
        name="production",
        kind="kubernetes",
        document=LEAST,
        credentials=sealed(Credentials("https://127.0.0.1:9", token=token, certificate=pem)),
        created_at=NOW,
    )


def test_certificates_and_tokens_end_when_they_say() -> None:
    end = NOW + timedelta(days=20)
    found = expiries(cluster(token=jwt(exp=end.timestamp()), pem=certificate(end)))
    assert found == (Expiry("client_certificate", end), Expiry("token", end))


@pytest.mark.parametrize("token", ["opaque", "a.b.c", jwt(), jwt(exp="soon"), jwt(exp=1e300), jwt(exp=None)])
def test_a_token_that_says_no_end_has_none(token: str) -> None:
    assert expiries(cluster(token=token)) == ()


def test_credentials_of_another_secret_key_are_left_out(settings: Settings) -> None:
    made = cluster(token=jwt(exp=NOW.timestamp()))
    settings.SECRET_KEY = "z" * 40
    assert expiries(made) == ()


def test_the_gateway_s_given_certificate_ends_too(settings: Settings, tmp_path: Path) -> None:
    local, end = Cluster(name="local", kind="local"), NOW + timedelta(days=3)
    settings.GATEWAY_CERTIFICATE = str(tmp_path / "gateway.pem")
    assert expiries(local) == ()
    (tmp_path / "gateway.pem").write_text(certificate(end))
    assert expiries(local) == (Expiry("gateway_certificate", end),)


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (31, None),
        (29, (True, "the token expires on 2026-12-26 00:00 UTC")),
        (6, (False, "the token expires on 2026-12-03 00:00 UTC")),
        (-1, (False, "the token expired on 2026-11-26 00:00 UTC")),
    ],
)
def test_a_check_warns_within_a_month_and_fails_within_a_week(days: int, said: tuple[bool, str] | None) -> None:
    made = cluster(token=jwt(exp=(NOW + timedelta(days=days)).timestamp()))
    found = [(each.ok, each.message) for each in expiry_findings(made, NOW) if each.remedy]
    assert found == ([] if said is None else [said])


def test_the_page_warns_administrators_and_the_metrics_say_when(client: Client) -> None:
    end = timezone.now() + timedelta(days=20)
    made = cluster(token=jwt(exp=end.timestamp()))
    Cluster.objects.update(checked_at=timezone.now(), silent_since=timezone.now())
    assert marked(text(signed_in(Scope.ADMIN), "/platform/clusters/production/"), "expiring")
    page = client.get("/metrics").content.decode()
    assert 'fairlead_cluster_up{cluster="production"} 0.0' in page
    assert 'fairlead_credential_expires_timestamp_seconds{cluster="production",kind="token"}' in page
    Cluster.objects.filter(pk=made.pk).update(silent_since=None, credentials="")
    page = client.get("/metrics").content.decode()
    assert 'fairlead_cluster_up{cluster="production"} 1.0' in page
    assert "fairlead_credential_expires_timestamp_seconds{" not in page
    assert not marked(text(signed_in(Scope.ADMIN), "/platform/clusters/production/"), "expiring")


def mounted(folder: Path, settings: Settings, **user: object) -> Cluster:
    settings.KUBECONFIG_FOLDER = folder
    content = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "robot", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
    }
    (folder / "eu.yaml").write_text(json.dumps(content))
    document = {**LEAST, "connection": {"kubeconfigPath": str(folder / "eu.yaml")}}
    return Cluster.objects.create(name="production", kind="kubernetes", document=document, created_at=NOW)


def test_mounted_files_end_when_they_say_and_are_read_again(tmp_path: Path, settings: Settings) -> None:
    made = mounted(tmp_path, settings, **{"tokenFile": "token", "client-certificate": "c.pem", "client-key": "c.key"})
    assert expiries(made) == ()
    for hours in (1, 2):
        begin = NOW + timedelta(hours=hours)
        end = begin + timedelta(hours=1)
        (tmp_path / "token").write_text(jwt(iat=begin.timestamp(), exp=end.timestamp()) + "\n")
        (tmp_path / "c.pem").write_text(certificate(end))
        assert expiries(made) == (
            Expiry("mounted_certificate", end, NOW - timedelta(days=900)),
            Expiry("mounted_token", end, begin),
        )


def test_a_token_in_a_mounted_kubeconfig_ends_too(tmp_path: Path, settings: Settings) -> None:
    made = mounted(tmp_path, settings, token=jwt(exp=NOW.timestamp()))
    assert expiries(made) == (Expiry("mounted_token", NOW),)
    settings.KUBECONFIG_FOLDER = None
    assert expiries(made) == ()


@pytest.mark.parametrize(
    ("minutes_left", "said"),
    [
        pytest.param(30, None, id="half of its life is left"),
        pytest.param(7, None, id="more than a tenth"),
        pytest.param(5, (False, "the mounted token expires on 2026-11-27 00:05 UTC"), id="less than a tenth"),
        pytest.param(-1, (False, "the mounted token expired on 2026-11-26 23:59 UTC"), id="it ended"),
    ],
)
def test_a_renewed_token_is_a_finding_once_its_renewal_fails(
    minutes_left: int, said: tuple[bool, str] | None, tmp_path: Path, settings: Settings
) -> None:
    end = NOW + timedelta(minutes=minutes_left)
    token = jwt(iat=(end - timedelta(hours=1)).timestamp(), exp=end.timestamp())
    made = mounted(tmp_path, settings, token=token)
    found = [(each.ok, each.message) for each in expiry_findings(made, NOW)]
    assert found == ([] if said is None else [said])


def test_the_worker_notes_the_end_of_a_plugin_s_token(tmp_path: Path, settings: Settings, client: Client) -> None:
    plugin = printing(tmp_path, credential())
    settings.EXEC_PLUGINS = (str(plugin),)
    known = Credentials("https://127.0.0.1:9", exec_plugin=ExecPlugin(str(plugin)))
    made = cluster()
    made.credentials, made.document = sealed(known), {**LEAST, "connection": {"kubeconfig": "stored"}}
    made.save()
    note_components(cluster_id=made.pk, nodes=Nodes(()), now=timezone.now(), exec_token=exec_token_times(made))
    made.refresh_from_db()
    [found] = expiries(made)
    assert (found.kind, found.is_renewed) == ("exec_token", True)
    assert timedelta(minutes=14) < found.at - timezone.now() < timedelta(minutes=15)
    assert 'fairlead_credential_issued_timestamp_seconds{cluster="production",kind="exec_token"}' in (
        client.get("/metrics").content.decode()
    )
    assert marked(text(signed_in(Scope.ADMIN), "/platform/clusters/production/"), "credential")


def test_the_api_has_the_ends_and_no_credential(api: Callable[..., APIClient]) -> None:
    end = NOW + timedelta(days=20)
    token = jwt(exp=end.timestamp())
    cluster(token=token)
    answer = api(Scope.ADMIN).get("/api/v1/clusters/production")
    assert answer.json()["credentials"] == [
        {"kind": "token", "issued_at": None, "expires_at": "2026-12-17T00:00:00Z", "is_renewed": False}
    ]
    assert token not in answer.content.decode()
