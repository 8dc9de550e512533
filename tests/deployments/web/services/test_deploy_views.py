"""The page that brings a version into a service."""

import pytest
from django.test import Client
from django.utils import timezone

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from deployments.models import InferenceService, Rollout, RolloutPolicy
from deployments.services import rollout_abort
from registry.models import ModelVersion
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page
from tests.deployments._support.platform import Platform

PAGE = "/deploy/digits/2/"
PLAN = f"{PAGE}?service=default%2Fdigits"


@pytest.fixture
def service(platform: Platform) -> InferenceService:
    row = scenes.service()
    scenes.model_version(2)
    return row


def break_clients() -> None:
    signature = {
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 8]}],
        "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
    }
    ModelVersion.objects.filter(number=2).update(signature=signature)


def start(client: Client, **more: str) -> tuple[int, str]:
    answer = client.post(f"{PAGE}rollout", {"service": "default/digits", "policy": "careful", **more})
    return answer.status_code, answer.content.decode()


def test_the_plan_is_shown_and_nothing_is_begun(browser: Browser, service: InferenceService) -> None:
    shown = page(browser(), f"{PLAN}&policy=careful")
    assert "new revision digits-00002" in shown.lower()
    assert "Start the rollout in default/digits" in shown
    assert "can begin" in shown
    assert not Rollout.objects.exists()


def test_what_is_live_now_is_told_also_where_the_file_names_another(
    browser: Browser, service: InferenceService
) -> None:
    rollout_abort(rollout_id=scenes.rollout(service).pk, actor="alice", now=timezone.now())
    service.refresh_from_db()
    assert service.model_version == ModelVersion.objects.get(number=2)
    assert 'data-label="Now">version 1 ' in page(browser(), PAGE)


def test_without_any_policy_one_is_to_be_written_first(browser: Browser, service: InferenceService) -> None:
    client = browser()
    assert not marked(page(client, PAGE), "no-policy")
    InferenceService.objects.update(policy=None)
    RolloutPolicy.objects.all().delete()
    shown = page(client, PAGE)
    assert marked(shown, "no-policy")
    assert 'aria-label="Policy for default/digits" required>' in shown
    assert 'aria-current="page">Models' in shown


def test_the_rollout_is_started_and_its_page_shown(browser: Browser, service: InferenceService) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    assert start(client)[0] == 302
    rollout = Rollout.objects.get()
    assert (rollout.to_revision.model_version.number, rollout.policy_name) == (2, "careful")
    assert AuditEntry.objects.filter(action="rollout.start").count() == 1


def test_what_would_break_clients_takes_an_admin_with_a_reason(browser: Browser, service: InferenceService) -> None:
    break_clients()
    deployer = browser("default", Role.DEPLOYER, Scope.WRITE)
    shown = page(deployer, PLAN)
    assert "Input &#x27;image&#x27; takes [-1,8], clients send [-1,4]." in shown
    assert marked(shown, "admins-accept")
    assert start(deployer)[0] == 409
    assert start(deployer, accept="yes", reason="all clients follow")[0] == 403
    admin = browser("default", Role.ADMIN)
    assert "Accept that, and start the rollout" in page(admin, PLAN)
    assert start(admin, accept="yes", reason=" ")[0] == 400
    assert start(admin, accept="yes", reason="all clients follow")[0] == 302
    assert Rollout.objects.get().contract["accepted_because"] == "all clients follow"


def test_what_is_refused_is_said_in_the_place_of_the_plan(browser: Browser, service: InferenceService) -> None:
    ModelVersion.objects.filter(number=2).update(status="PENDING")
    shown = page(browser(), PLAN)
    assert "not possible" in shown
    assert "Start the rollout" not in shown
    assert "by policy a/b<" in page(browser(), f"{PLAN}&policy=a/b")


def test_a_service_is_made_of_a_version(browser: Browser, service: InferenceService) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    asked = {"namespace": "default", "name": "letters", "replicas": "2", "policy": "careful"}
    answer = client.post(f"{PAGE}service", asked)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/services/default/letters/")
    made = InferenceService.objects.get(name="letters")
    assert made.document["spec"]["predictor"] == {
        "minReplicas": 2,
        "model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/2"},
    }
    again = client.post(f"{PAGE}service", asked)
    assert (again.status_code, b"is there already" in again.content) == (400, True)
    wrong = client.post(f"{PAGE}service", {**asked, "name": "Not A Name"})
    assert wrong.status_code == 400
    assert client.post(f"{PAGE}service", {**asked, "name": "x", "replicas": "many"}).status_code == 400


def test_a_new_service_is_called_as_nothing_is_and_the_one_there_is_offered(
    browser: Browser, service: InferenceService
) -> None:
    shown = page(browser(), PAGE)
    assert marked(shown, "served-already")
    assert 'name="name" value="digits-2"' in shown
    assert '<a href="?service=default/digits">plan for default/digits</a>' in shown
    assert 'href="/policies/"' in shown
    scenes.model_version(1, "Letters_A")
    alone = page(browser(), "/deploy/Letters_A/1/")
    assert 'name="name" value="letters-a"' in alone
    assert not marked(alone, "served-already")


def test_policies_are_a_link_away_where_they_are_named(browser: Browser, service: InferenceService) -> None:
    client = browser()
    assert 'by policy <a href="/policies/careful/">careful</a>' in page(client, f"{PLAN}&policy=careful")
    assert '<dd><a href="/policies/careful/">careful</a></dd>' in page(client, "/services/default/digits/")
    assert 'href="/policies/careful/">look at careful</a>' in page(client, "/services/default/digits/config/")


def test_who_only_reads_gets_no_page_and_no_button(browser: Browser, service: InferenceService) -> None:
    viewer = browser("default", Role.VIEWER)
    assert "/deploy/digits/2/" not in page(viewer, "/models/digits/versions/2/")
    assert viewer.get(PLAN).status_code == 403
    assert start(viewer)[0] == 403
    assert "/deploy/digits/2/" in page(browser("default", Role.DEPLOYER), "/models/digits/versions/2/")
