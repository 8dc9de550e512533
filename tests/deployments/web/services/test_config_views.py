"""The page on which a service's file is looked at, changed and applied; on the real database and services."""

import html
import re

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from deployments.models import InferenceService, Revision, Rollout
from deployments.services import service_apply
from registry.models import ModelVersion
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.pages import signed_in, text

pytestmark = pytest.mark.django_db
CONFIG = "/services/default/digits/config/"


def hidden(page: str) -> dict[str, str]:
    """Return what the form of the apply button sends."""
    found = re.findall(r'<input type="hidden" name="(was|document)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


def file_of(service: InferenceService) -> str:
    service.refresh_from_db()
    return str(service.document)


def test_the_file_is_there_as_a_form_and_as_yaml() -> None:
    scenes.service()
    page = text(signed_in(), CONFIG)
    assert 'value="models:/digits/1"' in page
    assert "<option selected>careful</option>" in page
    assert "storageUri: models:/digits/1" in page
    assert 'id="plan-title"' not in page


def test_a_change_by_the_form_is_looked_at_and_then_applied() -> None:
    service = scenes.service()
    scenes.model_version(2)
    client = signed_in(Scope.WRITE)
    before = file_of(service)

    look = client.post(f"{CONFIG}look", {"model": "models:/digits/2", "policy": "careful"}).content.decode()

    assert "<del>      storageUri: models:/digits/1</del>" in look
    assert "<ins>      storageUri: models:/digits/2</ins>" in look
    assert "digits-00002" in look, "what follows is said"
    assert file_of(service) == before
    assert not Rollout.objects.exists()

    answer = client.post(f"{CONFIG}apply", hidden(look))
    assert answer["Location"] == "/services/default/digits/"
    assert "models:/digits/2" in file_of(service)
    assert Rollout.objects.get().to_revision.name == "digits-00002"
    assert AuditEntry.objects.filter(action="service.apply").latest("id").actor.startswith("write-user")


def test_a_change_of_the_text_alone_goes_to_htmx() -> None:
    service = scenes.service()
    client = signed_in(Scope.WRITE)
    changed = text(client, CONFIG).partition('name="text"')[2].partition(">")[2].partition("</textarea>")[0]
    changed = changed.replace("predictor:\n", "predictor:\n    minReplicas: 2\n    maxReplicas: 4\n")

    look = client.post(f"{CONFIG}look", {"text": changed}, headers={"HX-Request": "true"}).content.decode()

    assert look.strip().startswith('<div id="config-plan"')
    assert "<ins>    minReplicas: 2</ins>" in look
    client.post(f"{CONFIG}apply", hidden(look))
    assert Revision.objects.filter(service=service).latest("number").max_replicas == 4


@pytest.mark.parametrize(
    ("form", "why"),
    [
        pytest.param({"least": "many"}, "spec.predictor.minReplicas", id="no number"),
        pytest.param({"model": "models:/digits/9"}, "has no version 9", id="a version that is not there"),
        pytest.param({"text": "kind: ["}, "Line 1", id="no YAML"),
        pytest.param({"text": "kind: Pod"}, "kind", id="another file"),
    ],
)
def test_what_cannot_be_applied_says_why_and_has_no_button(form: dict[str, str], why: str) -> None:
    scenes.service()
    page = signed_in(Scope.WRITE).post(f"{CONFIG}look", form)
    assert page.status_code == 200
    assert marked(page.content.decode(), "refused")
    assert why in page.content.decode()
    assert 'id="apply"' not in page.content.decode()


def test_nothing_changed_is_said() -> None:
    scenes.service()
    page = signed_in(Scope.WRITE).post(f"{CONFIG}look", {"model": "models:/digits/1"}).content.decode()
    assert marked(page, "no-change")


def test_a_file_that_somebody_else_changed_meanwhile_is_not_overwritten() -> None:
    service = scenes.service()
    client = signed_in(Scope.WRITE)
    look = client.post(f"{CONFIG}look", {"most": "3"}).content.decode()
    service.refresh_from_db()
    document = {**service.document, "spec": {"predictor": {**service.document["spec"]["predictor"], "maxReplicas": 7}}}
    service_apply(document=document, namespace=None, name=None, actor="bob", now=timezone.now())

    answer = client.post(f"{CONFIG}apply", hidden(look))

    assert answer.status_code == 409
    assert "look at your change again" in answer.content.decode()
    assert "7" in file_of(service)


def test_a_reader_sees_the_file_and_changes_nothing() -> None:
    scenes.service()
    client = signed_in(Scope.READ)
    page = text(client, CONFIG)
    assert "storageUri: models:/digits/1" in page
    assert not marked(page, "look-by-form")
    assert not marked(page, "look-by-file")
    for verb in ("look", "apply"):
        assert client.post(f"{CONFIG}{verb}", {"most": "3"}).status_code == 403


def test_another_services_file_cannot_be_applied_by_its_name() -> None:
    scenes.service()
    client = signed_in(Scope.WRITE)
    look = client.post(f"{CONFIG}look", {"most": "3"}).content.decode()
    form = hidden(look)
    form["document"] = form["document"].replace('"name": "digits"', '"name": "ranker"')
    assert client.post(f"{CONFIG}apply", form).status_code == 400
    assert not InferenceService.objects.filter(name="ranker").exists()


def test_the_number_of_queries_does_not_grow(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client = signed_in()
    scenes.service()
    with django_assert_num_queries(5):
        client.get(CONFIG)
    scenes.rollout(scenes.service("ranker"))
    with django_assert_num_queries(5):
        client.get(CONFIG)


def test_what_would_break_clients_takes_an_admin_with_a_reason() -> None:
    scenes.service()
    broken = [{"name": "image", "datatype": "FP32", "shape": [-1, 8]}]
    ModelVersion.objects.filter(pk=scenes.model_version(2).pk).update(signature={"inputs": broken, "outputs": []})
    wish = {"model": "models:/digits/2", "policy": "careful"}

    deployer = signed_in(Scope.WRITE)
    look = deployer.post(f"{CONFIG}look", wish).content.decode()
    assert "Input &#x27;image&#x27; takes [-1,8], clients send [-1,4]." in look
    assert marked(look, "admins-accept")
    assert 'id="apply"' not in look

    admin = signed_in(Scope.ADMIN)
    look = admin.post(f"{CONFIG}look", wish).content.decode()
    assert marked(look, "accept-and-apply")
    assert "<ins>      storageUri: models:/digits/2</ins>" in look
    form = hidden(look)
    assert deployer.post(f"{CONFIG}apply", {**form, "accept": "yes", "reason": "all follow"}).status_code == 403
    assert admin.post(f"{CONFIG}apply", form).status_code == 409
    assert admin.post(f"{CONFIG}apply", {**form, "accept": "yes", "reason": " "}).status_code == 400
    assert not Rollout.objects.exists()

    assert admin.post(f"{CONFIG}apply", {**form, "accept": "yes", "reason": "all follow"}).status_code == 302
    assert Rollout.objects.get().contract["accepted_because"] == "all follow"
    said = AuditEntry.objects.filter(action="service.apply").latest("id").detail
    assert said["reason"] == "all follow"


def test_all_faults_of_a_file_are_shown() -> None:
    scenes.service()
    client = signed_in(Scope.WRITE)
    page = client.get(CONFIG).content.decode()
    [typed] = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    wrong = html.unescape(typed).replace("storageUri:", "storageURI:").replace("name: onnx", "name: caffe")

    looked = client.post(f"{CONFIG}look", {"text": wrong}).content.decode()
    assert marked(looked, "refused")
    assert "The service file has 3 faults; the first: spec.predictor.model.modelFormat.name" in looked
    [further] = marked(looked, "further-faults")
    assert further.startswith("spec.predictor.model.storageUri is missing")
    assert further.endswith("did you mean storageUri?")
