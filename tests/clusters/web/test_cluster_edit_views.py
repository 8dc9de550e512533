"""The pages on which clusters are added, changed and forgotten; the API server of these does not answer."""

import html
import re
from typing import Any

import pytest
import yaml

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from clusters.models import Cluster
from clusters.services.connection import opened
from clusters.web.cluster_form import BEGIN, form_of, with_form, with_kubeconfig
from common.files.editor.text import digest_of, text_of
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.cluster_files import KUBECONFIG, LEAST
from tests.deployments._support.pages import signed_in, text

pytestmark = pytest.mark.django_db
EMPTY = text_of(BEGIN)
SAID = {
    "text": EMPTY,
    "seen": digest_of(EMPTY),
    "name": "production",
    "gateway_url": "https://models.example.com",
    "gateway_name": "models",
    "gateway_namespace": "gateways",
    "domain": "",
    "runtime_image": "registry.example.com/serving-runtime@sha256:0",
    "gpu_runtime_image": "",
    "artifacts": "claim",
    "claim": "models",
    "root": "/var/lib/fairlead/artifacts",
    "bucket": "",
    "control_plane_url": "",
    "way": "kubeconfig",
    "kubeconfig": KUBECONFIG,
}


def looked(page: str) -> str:
    """Return the digest that the apply button sends."""
    [found] = re.findall(r'name="looked" value="([^"]*)"', page)
    return str(found)


def look(client: Any, said: dict[str, str], name: str = "") -> str:
    address = f"/platform/clusters/{f'{name}/file/' if name else ''}look"
    answer = client.post(address, said, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def add() -> Cluster:
    client = signed_in(Scope.ADMIN)
    answer = client.post("/platform/clusters/apply", {**SAID, "looked": looked(look(client, SAID))})
    assert answer["Location"] == "/platform/clusters/production/"
    return Cluster.objects.get(name="production")


def test_the_form_makes_a_file_and_the_file_fills_the_form() -> None:
    document = with_form(BEGIN, SAID, is_new=True)
    assert document["gateway"] == {"url": "https://models.example.com", "name": "models", "namespace": "gateways"}
    assert document["artifacts"] == {"from": "claim", "claim": "models", "root": "/var/lib/fairlead/artifacts"}
    assert "gpuRuntimeImage" not in document
    form = form_of(document, is_new=True)
    assert {each.field.name: each.value for _, fields in form.groups for each in fields}.items() <= SAID.items()
    assert (form.way, form.path) == ("kubeconfig", "")
    assert with_form(document, {"name": "other"}, is_new=False) == document, "a cluster that is there keeps its name"


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        ({"kubeconfig": "stored"}, {"way": "inCluster"}, {"inCluster": True}),
        (
            {"kubeconfig": "stored", "context": "one"},
            {"way": "path", "path": "/k"},
            {"context": "one", "kubeconfigPath": "/k"},
        ),
        ({"kubeconfigPath": "/k"}, {"way": "path", "path": "/other"}, {"kubeconfigPath": "/other"}),
        ({"kubeconfigPath": "/k"}, {"way": "kubeconfig", "path": "/k"}, {"kubeconfig": "stored"}),
        ({"kubeconfig": {"users": []}}, {"way": "kubeconfig", "path": ""}, {"kubeconfig": {"users": []}}),
        ({"inCluster": True}, {}, {"inCluster": True}),
    ],
)
def test_the_way_to_a_cluster_is_changed_alone(
    before: dict[str, Any], said: dict[str, str], after: dict[str, Any]
) -> None:
    changed = with_form({**LEAST, "connection": before}, said, is_new=False)
    assert changed == {**LEAST, "connection": after}
    assert form_of(changed, is_new=False).way == said.get("way", "inCluster")


def test_a_kubeconfig_given_beside_the_file_takes_its_place_in_it() -> None:
    document = with_form(BEGIN, SAID, is_new=True)
    assert with_kubeconfig(LEAST, KUBECONFIG)["connection"] == {"inCluster": True}
    assert with_kubeconfig(document, " ")["connection"] == {"kubeconfig": "stored"}
    kept = with_kubeconfig({**document, "connection": {"kubeconfig": "stored", "context": "one"}}, KUBECONFIG)
    assert kept["connection"] == {"kubeconfig": KUBECONFIG, "context": "one"}


def test_a_cluster_is_looked_at_asked_and_added_and_its_kubeconfig_never_shown() -> None:
    assert marked(text(signed_in(Scope.ADMIN), "/platform/"), "add-cluster")
    client = signed_in(Scope.ADMIN)
    shown = look(client, SAID)
    assert "Add cluster production all the same" in shown, "it did not answer"
    assert marked(shown, "something-missing")
    assert "<ins>name: production</ins>" in shown
    assert "secret-of-robot" not in shown
    assert not Cluster.objects.filter(name="production").exists()

    row = add()
    assert row.credentials
    assert row.document["connection"] == {"kubeconfig": "stored"}
    assert "secret-of-robot" not in text(client, "/platform/clusters/production/file")
    assert AuditEntry.objects.filter(action="cluster.apply").count() == 1


def test_form_and_file_follow_each_other() -> None:
    client = signed_in(Scope.ADMIN)
    without = {name: value for name, value in SAID.items() if name != "kubeconfig"}
    answer = client.post("/platform/clusters/fill", without)
    shown = html.unescape(answer.content.decode())
    assert "<textarea" in shown
    assert "  url: https://models.example.com\n" in shown
    [seen] = re.findall(r'name="seen" value="([^"]*)"', shown)

    typed = yaml.safe_dump({**LEAST, "name": "typed"})
    answer = client.post("/platform/clusters/fill", {**without, "text": typed, "seen": seen})
    assert 'name="name" value="typed"' in answer.content.decode()
    assert client.post("/platform/clusters/fill", {**without, "text": "name: ["}).status_code == 204
    both = look(client, {**SAID, "text": typed, "seen": seen})
    assert "<ins>name: typed</ins>" in both, "what was typed last counts"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param({"name": ""}, "name is missing", id="no name"),
        pytest.param({"name": "local"}, "which is this machine", id="that of this machine"),
        pytest.param({"gateway_url": "models"}, "gateway.url", id="no address"),
        pytest.param({"kubeconfig": ""}, "none is stored", id="no kubeconfig"),
        pytest.param({"kubeconfig": "users: ["}, "connection.kubeconfig", id="no kubeconfig that can be read"),
        pytest.param({"text": "name: production\nkind: Pod\n"}, "kind", id="another file"),
    ],
)
def test_what_cannot_be_added_says_why_and_has_no_button(said: dict[str, str], why: str) -> None:
    shown = look(signed_in(Scope.ADMIN), {**SAID, **said})
    assert marked(shown, "refused")
    assert why.lower() in shown.lower()
    assert "looked" not in shown


def test_the_file_is_changed_after_a_look_and_keeps_its_kubeconfig() -> None:
    row = add()
    client, before = signed_in(Scope.ADMIN), row.credentials
    said = {"text": yaml.safe_dump({**row.document, "domain": "models.example.com"})}
    shown = look(client, said, "production")
    assert "<ins>domain: models.example.com</ins>" in shown
    answer = client.post("/platform/clusters/production/file/apply", {**said, "looked": looked(shown)})
    assert answer.status_code == 302
    row.refresh_from_db()
    assert row.document["domain"] == "models.example.com"
    assert opened(row.credentials) == opened(before)

    other = {**said, "text": said["text"].replace("models.example.com", "other.example.com")}
    stale = client.post("/platform/clusters/production/file/apply", {**other, "looked": looked(shown)})
    assert stale.status_code == 409
    assert b"look at it again" in stale.content


def test_a_cluster_is_forgotten_unless_services_run_on_it() -> None:
    row = add()
    service = scenes.service()
    type(service).objects.update(cluster=row)
    client = signed_in(Scope.ADMIN)
    assert client.post("/platform/clusters/production/delete").status_code == 409
    type(service).objects.update(cluster=Cluster.objects.get(name="local"))
    assert client.post("/platform/clusters/production/delete")["Location"] == "/platform/"
    assert not Cluster.objects.filter(name="production").exists()


def test_this_machine_has_no_file() -> None:
    scenes.service()
    assert signed_in(Scope.ADMIN).get("/platform/clusters/local/file").status_code == 400


def test_only_administrators_may() -> None:
    client = signed_in(Scope.WRITE)
    assert not marked(text(client, "/platform/"), "add-cluster")
    assert client.get("/platform/clusters/new").status_code == 403
    for address in ("fill", "look", "apply", "production/file/apply", "production/delete"):
        assert client.post(f"/platform/clusters/{address}", SAID).status_code == 403
