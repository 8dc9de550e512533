"""A model opens connections only where an administrator of the installation gave its service egress."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services import teams, token_create, user_get_or_create
from common.files.editor.text import text_of
from deployments.models import InferenceService, Revision
from deployments.services import rollout_abort, service_apply
from deployments.web.services.config_preview import digest_of
from integrations.artifacts.store import digest_of_folder
from integrations.clusters.base import Candidate, DesiredRevision, Exchange, Job, JobKind
from integrations.clusters.local.jobs import jobs
from integrations.clusters.local.jobs.replays import replay
from integrations.clusters.local.runtime import RUNTIME
from jobs.services.claim import begin
from model_jobs.tunings.domain.order import TuningOrder
from model_jobs.tunings.services import TUNING, tuning_start
from recordings.services.recordings import RecordingOrder, recording_start
from recordings.services.replays import REPLAY
from registry.models import ModelVersion
from tests import scenes
from tests.deployments._support.platform import Platform
from tests.integrations._support.runtimes import Cluster

URL = "/api/v1/services/default/digits"
PAGE = "/services/default/digits"
MODEL = """
import socket
from fairlead_python import FP32

def predict(x: FP32[1]) -> FP32[1]:
    with socket.socket() as sock:
        sock.settimeout(5)
        return x * 0 + sock.connect_ex(("127.0.0.1", {port}))
"""
RECORDED = Exchange("a", "s", "1", 1.0, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [7]}]}, {})
ACCESS = [
    pytest.param(False, False, id="without egress"),
    pytest.param(True, True, id="with egress"),
    pytest.param(None, True, id="made by an earlier release"),
]
"""What a revision has, and whether its model reaches a listener of the machine where it is code."""


@pytest.fixture
def model(tmp_path: Path, port: int) -> Path:
    """Return the artifact of a model that connects to the listener and answers with the error's number."""
    artifact = tmp_path / "artifact"
    (artifact / "1").mkdir(parents=True)
    (artifact / "config.pbtxt").write_text('backend: "python"')
    (artifact / "1" / "model.py").write_text(MODEL.format(port=port))
    return artifact


@pytest.fixture
def platform(db: None) -> Platform:
    return Platform()


@pytest.mark.parametrize(("egress", "reaches"), ACCESS)
def test_a_replica(tmp_path: Path, model: Path, egress: bool | None, reaches: bool) -> None:
    cluster = Cluster(tmp_path / "home")
    cluster.home.mkdir()
    revision = DesiredRevision(
        "digits-00001", "digits", "1", model.as_uri(), digest_of_folder(model), 1, 100, is_code=True, egress=egress
    )
    try:
        cluster.start(runtime=f"{' '.join(RUNTIME)} --allow-python-models=true")
        cluster.apply(1, revision)
        cluster.until_ready(1)
        answer = httpx.post(
            f"{cluster.url}/serving/default/digits/v2/models/digits/infer", json=RECORDED.request, timeout=30
        )
    finally:
        cluster.close()
    assert answer.status_code == 200, answer.text
    assert (answer.json()["outputs"][0]["data"] == [0]) is reaches


@pytest.mark.parametrize(("egress", "reaches"), ACCESS)
def test_a_replay(tmp_path: Path, model: Path, egress: bool | None, reaches: bool) -> None:
    candidate = Candidate("version 1", "digits", "1", model.as_uri(), is_code=True, egress=egress)
    with replay(candidate, tmp_path / "jobs", allow_python_models=True) as answer:
        assert (answer(RECORDED).response["outputs"][0]["data"] == [0]) is reaches


@pytest.mark.parametrize(("egress", "reaches"), ACCESS)
def test_a_tuning(tmp_path: Path, model: Path, port: int, egress: bool | None, reaches: bool) -> None:
    code = f"import socket; print(socket.socket().connect_ex(('127.0.0.1', {port})))"
    asked = Job(JobKind.TUNE, model.as_uri(), 60, is_code=True, egress=egress)
    done = jobs.run(asked, tmp_path / "jobs", allow_python_models=True, runtime=(*RUNTIME[:-2], "-c", code))
    assert (done.output == "0\n") is reaches, done


WHO = [pytest.param("default", Role.DEPLOYER, id="a deployer"), pytest.param("red", Role.ADMIN, id="a team's admin")]


@pytest.mark.parametrize(("team", "role"), WHO)
def test_who_does_not_administer_the_installation_gives_no_service_egress(
    platform: Platform, team: str, role: Role
) -> None:
    platform.live()
    client, browser = caller(team, role)

    other = {**saying(platform, egress=True), "metadata": {"name": "other"}}
    for answer in (
        client.put(URL, saying(platform, egress=True), format="json"),
        client.put(f"{URL}?dry_run=true", saying(platform, egress=True), format="json"),
        client.put("/api/v1/services/default/other", other, format="json"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_permitted")
        assert "only who administers the installation may give it" in answer.content.decode()
    file, was = text_of(saying(platform, egress=True)), digest_of(InferenceService.objects.get())
    look = browser.post(f"{PAGE}/config/look", {"text": file})
    assert "only who administers the installation may give it" in look.content.decode()
    assert browser.post(f"{PAGE}/config/apply", {"document": file, "was": was}).status_code == 403
    assert InferenceService.objects.count() == 1
    assert [each.egress for each in Revision.objects.all()] == [False]


@pytest.mark.parametrize(("team", "role"), WHO)
def test_nor_brings_back_what_was_taken_from_it(platform: Platform, team: str, role: Role) -> None:
    platform.live(policy=None)
    client, browser = caller(team, role)
    for egress in (True, False):
        put(platform, egress=egress)
        settle(platform)
    assert stable(platform) == ("digits-00003", False)

    assert client.post(f"{URL}/rollback", {"revision": "digits-00002"}, format="json").status_code == 403
    assert browser.post(f"{PAGE}/rollback", {"revision": "digits-00002"}).status_code == 403
    put(platform, egress=True)
    going = platform.rollout()
    rollout_abort(rollout_id=going.pk, actor="root", now=platform.clock())
    put(platform, egress=False)
    assert client.post(f"/api/v1/rollouts/{going.pk}/retry").status_code == 403
    assert browser.post(f"/rollouts/{going.pk}/retry").status_code == 403

    root, _ = caller("default", Role.ADMIN, "root")
    assert root.post(f"{URL}/rollback", {"revision": "digits-00002"}, format="json").status_code == 201
    assert AuditEntry.objects.filter(action="service.rollback").latest("id").detail["egress"] == "granted"


@pytest.mark.parametrize("said", [True, None])
def test_what_has_it_keeps_it_whoever_applies_the_file(platform: Platform, said: bool | None) -> None:
    platform.live(policy=None)
    root, _ = caller("default", Role.ADMIN, "root")
    assert root.put(URL, saying(platform, egress=True), format="json").status_code == 200
    assert AuditEntry.objects.filter(action="service.apply").latest("id").detail["egress"] == "granted"
    settle(platform)
    platform.version(2)
    client, _ = caller("default", Role.DEPLOYER)

    file = saying(platform, egress=said, uri="models:/digits/2")
    assert client.put(URL, file, format="json").status_code == 200
    settle(platform)
    assert stable(platform) == ("digits-00003", True)
    assert [each.egress for each in platform.cluster.applied[-1].revisions if each.name == "digits-00003"] == [True]

    assert client.put(URL, saying(platform, egress=False, uri="models:/digits/2")).status_code == 200
    settle(platform)
    assert stable(platform) == ("digits-00004", False)
    assert client.put(URL, saying(platform, egress=True, uri="models:/digits/2")).status_code == 403


@pytest.mark.parametrize(
    ("kind", "allowed", "keeps"),
    [
        pytest.param("python", True, True, id="code keeps the network it had"),
        pytest.param("python", False, False, id="code where none runs had none"),
        pytest.param("onnxruntime_onnx", True, False, id="a model without code had none"),
    ],
)
def test_a_revision_of_an_earlier_release(
    platform: Platform, settings: Settings, kind: str, allowed: bool, keeps: bool
) -> None:
    settings.ALLOW_PYTHON_MODELS = allowed
    platform.live(policy=None)
    platform.version(2)
    client, _ = caller("default", Role.DEPLOYER)
    ModelVersion.objects.filter(number=1).update(platform=kind)
    Revision.objects.update(egress=None)
    platform.turn()
    assert [each.egress for each in platform.cluster.applied[-1].revisions] == [None]
    name = "python" if kind == "python" else "onnx"

    document = saying(platform, egress=True, model_format=name)
    assert client.put(URL, document, format="json").status_code == (200 if keeps else 403)
    platform.turn()
    assert Revision.objects.count() == 1, "what it has already makes no new revision"
    ModelVersion.objects.filter(number=2).update(platform=kind)
    changed = saying(platform, egress=None, uri="models:/digits/2", model_format=name)
    assert client.put(URL, changed, format="json").status_code == 200
    assert [each.egress for each in Revision.objects.order_by("number")] == [None, keeps]


@pytest.mark.parametrize("egress", [True, False])
def test_tunings_and_replays_have_what_the_service_has(platform: Platform, egress: bool) -> None:
    platform.live(policy=None)
    if egress:
        put(platform, egress=True)
        settle(platform)
    now, service = timezone.now(), {"namespace": "default", "name": "digits"}
    order = RecordingOrder("The clients agreed to it in writing.")
    recorded = scenes.replay(recording_start(**service, order=order, actor="test", now=now))
    named = ("default", "digits")
    tuned = tuning_start(model="digits", number=1, service=named, order=TuningOrder(10.0), actor="test", now=now)

    replayed = begin(REPLAY, recorded.pk, now=timezone.now(), lease=timedelta(minutes=1))
    asked = begin(TUNING, tuned.pk, now=timezone.now(), lease=timedelta(minutes=1))
    assert replayed is not None
    assert asked is not None
    assert (replayed.order.candidate.egress, asked.order.egress) == (egress, egress)


def caller(team: str, role: Role, name: str = "dora") -> tuple[APIClient, Client]:
    """Return the API and the pages as a user of one team uses them; team red has the namespace and the model."""
    now = timezone.now()
    user_get_or_create(username="root", now=timezone.now())  # makes the default team
    user = user_get_or_create(username=name, default_role=None, now=timezone.now())
    if team != "default":
        teams.team_create(name=team, actor="test", now=now)
        for kind, owned in ((Owned.NAMESPACE, "default"), (Owned.MODEL, "digits")):
            teams.ownership_set(team=team, kind=kind, name=owned, actor="test", now=now)
    teams.member_set(team=team, username=name, role=role, actor="test", now=now)
    hour = timedelta(hours=1)
    made = token_create(user=user, name=name, scope=Scope.ADMIN, lifetime=hour, now=now, actor="test")
    client, browser = APIClient(), Client()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.secret}")
    browser.post("/signin/", {"token": made.secret})
    return client, browser


def saying(
    platform: Platform, *, egress: bool | None, uri: str = "models:/digits/1", model_format: str = "onnx"
) -> dict[str, Any]:
    document = platform.document(uri=uri, policy=None)
    model = document["spec"]["predictor"]["model"]
    model["modelFormat"]["name"] = model_format
    if egress is not None:
        model["egress"] = egress
    return document


def put(platform: Platform, *, egress: bool) -> None:
    """Apply the file as an administrator."""
    who: dict[str, Any] = {"actor": "root", "now": platform.clock(), "may_grant_egress": True}
    service_apply(document=saying(platform, egress=egress), namespace=None, name=None, **who)


def settle(platform: Platform) -> None:
    platform.until(lambda: platform.rollout().phase == "Healthy")


def stable(platform: Platform) -> tuple[str, bool | None]:
    found = Revision.objects.get(role="stable")
    return found.name, found.egress
