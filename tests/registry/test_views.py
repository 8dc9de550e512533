"""The pages of models and versions."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services import teams
from registry.models import ModelVersion, RegisteredModel
from registry.services import alias_set, governance
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page

Register = Callable[..., ModelVersion]
MODEL, VERSION = "/models/digits/", "/models/digits/versions/1/"
LINEAGE = {
    "source_commit": "abc123",
    "run_url": "https://ci.example/run/7",
    "data_reference": "s3://data/mnist",
    "parameters": {"lr": "0.1"},
    "source_uri": "https://models.example/digits.onnx",
}


@pytest.fixture
def version(register: Register) -> ModelVersion:
    made = register()
    now = timezone.now()
    alias_set(model="digits", name="champion", number=1, now=now, actor="test")
    RegisteredModel.objects.update(description="# About\nReads **digits** <script>", tags={"team": "vision"})
    ModelVersion.objects.update(description="[notes](javascript:x)", lineage=LINEAGE, tags={"stage": "live"})
    return made


def test_the_list_has_each_model_with_its_latest_version_aliases_and_tags(
    browser: Browser, version: ModelVersion
) -> None:
    shown = page(browser(), "/models/")
    for text in ('href="/models/digits/"', "@champion 1", "team=vision", 'aria-current="page">Models'):
        assert text in shown


def test_what_nobody_said_of_a_version_is_one_line(browser: Browser, version: ModelVersion) -> None:
    client = browser()
    assert "Missing" not in page(client, VERSION)
    ModelVersion.objects.update(lineage={"run_url": "https://ci.example/run/7"})
    shown = page(client, VERSION)
    assert "Missing: commit, data." in shown
    assert "<code>--source-commit</code>, <code>--data</code>" in shown
    for left_out in ("<dt>Commit</dt>", "<dt>Data</dt>", "--run-url"):
        assert left_out not in shown
    ModelVersion.objects.update(lineage={"built_from": "models:/digits/3"})
    assert "Missing" not in page(client, VERSION)


@pytest.mark.parametrize(
    ("query", "is_there"),
    [
        ("search=IGIT", True),
        ("search=**digits**", True),
        ("search=letters", False),
        ("tag=team%3Dvision", True),
        ("tag=team%3Daudio", False),
        ("alias=champion", True),
        ("alias=old", False),
        ("team=default", True),
        ("team=red", False),
        ("platform=onnxruntime_onnx", True),
        ("platform=openvino", False),
        ("search=digits&alias=champion&tag=team%3Dvision", True),
        ("search=digits&alias=old", False),
    ],
)
def test_the_list_is_narrowed_as_the_form_asks(
    browser: Browser, version: ModelVersion, query: str, is_there: bool
) -> None:
    ModelVersion.objects.update(platform="onnxruntime_onnx")
    shown = page(browser(), f"/models/?{query}")
    assert ('href="/models/digits/"' in shown) == is_there
    assert bool(marked(shown, "no-model-like-that")) == (not is_there)


def test_what_a_team_owns_is_no_more_the_default_teams(browser: Browser, version: ModelVersion) -> None:
    teams.ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=timezone.now())
    client = browser("default", Role.ADMIN)
    assert 'href="/models/digits/"' in page(client, "/models/?team=red")
    assert marked(page(client, "/models/?team=default"), "no-model-like-that")


def test_a_filter_that_cannot_be_is_refused_in_words(browser: Browser, version: ModelVersion) -> None:
    answer = browser().get("/models/?tag=vision")
    assert answer.status_code == 400
    assert "Tag is &#x27;vision&#x27;; expected key=value" in answer.content.decode()


def test_to_htmx_the_list_comes_alone(browser: Browser, version: ModelVersion) -> None:
    part = browser().get("/models/?search=digits", headers={"HX-Request": "true"}).content.decode()
    assert part.strip().startswith('<div id="models"')


def test_versions_say_what_they_take_and_where_they_are_live(browser: Browser) -> None:
    scenes.service()
    scenes.model_version(2)
    shown = page(browser(), MODEL)
    assert "FP32 [-1, 4] to INT64 [-1]" in shown
    assert shown.count('<a href="/services/default/digits/">default/digits</a>') == 1


def test_a_model_has_its_description_as_safe_html(browser: Browser, version: ModelVersion) -> None:
    answer = browser().get(MODEL)
    shown = answer.content.decode()
    assert "About</h3>" in shown
    assert "<strong>digits</strong> &lt;script&gt;" in shown
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


def test_a_version_has_its_lineage_with_links_where_they_are_web_addresses(
    browser: Browser, version: ModelVersion
) -> None:
    shown = page(browser(), VERSION)
    assert '<a href="https://ci.example/run/7" rel="nofollow noopener noreferrer">' in shown
    assert '<a href="https://models.example/digits.onnx" rel="nofollow noopener noreferrer">' in shown
    for text in ("<code>s3://data/mnist</code>", "<code>abc123</code>", "<dt>lr</dt>", "@champion", version.digest):
        assert text in shown
    assert "javascript:x)" in shown  # as text, not as a link
    assert 'href="javascript' not in shown


@pytest.mark.parametrize(("address", "row"), [(MODEL, RegisteredModel), (VERSION, ModelVersion)])
def test_a_deployer_sets_and_removes_tags(
    browser: Browser, version: ModelVersion, address: str, row: type[RegisteredModel | ModelVersion]
) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    assert "Set tag" in page(client, address)
    answer = client.post(f"{address}tags", {"key": "owner", "value": "alice"})
    assert (answer.status_code, answer.headers["Location"]) == (302, address)
    assert row.objects.values_list("tags", flat=True).get()["owner"] == "alice"
    answer = client.post(f"{address}tags", {"key": "owner", "remove": "yes"}, headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, address)
    assert "owner" not in row.objects.values_list("tags", flat=True).get()
    assert AuditEntry.objects.filter(action__endswith="annotate").count() == 2
    refused = client.post(f"{address}tags", {"key": "1x", "value": "y"})
    assert (refused.status_code, b"is no key of a tag" in refused.content) == (400, True)
    assert client.post(f"{address}tags", {"value": "y"}).status_code == 400


def test_a_viewer_sees_no_forms_and_is_refused(browser: Browser, version: ModelVersion) -> None:
    client = browser("default", Role.VIEWER)
    for address in (MODEL, VERSION):
        assert "Set tag" not in page(client, address)
        assert client.post(f"{address}tags", {"key": "a", "value": "b"}).status_code == 403


def test_a_model_of_another_team_is_not_there(browser: Browser, version: ModelVersion) -> None:
    teams.ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=timezone.now())
    client = browser("default", Role.DEPLOYER)
    assert "/models/digits/" not in page(client, "/models/")
    for address in (MODEL, VERSION):
        assert client.get(address).status_code == 404
        assert client.post(f"{address}tags", {"key": "a", "value": "b"}).status_code == 404


def test_the_pages_ask_the_database_equally_often_for_many_rows(browser: Browser, version: ModelVersion) -> None:
    client = browser()

    def queries(address: str) -> int:
        client.get(address)
        with CaptureQueriesContext(connection) as captured:
            page(client, address)
        return len(captured)

    narrowed = f"{MODEL}?status=PENDING&approval=unreviewed"
    before = {address: queries(address) for address in ("/models/", MODEL, narrowed)}
    now = timezone.now()
    for number in range(2, 12):
        copy = ModelVersion.objects.get(number=1)
        copy.pk, copy.number, copy.digest = None, number, f"sha256:{number}"
        copy.save()
        alias_set(model="digits", name=f"a{number}", number=number, now=now + timedelta(seconds=1), actor="test")
        governance.alias_protect(model="digits", name=f"a{number}", now=now, actor="test")
        RegisteredModel.objects.create(name=f"m{number}", created_at=now, created_by="test")
    assert {address: queries(address) for address in before} == before


def test_a_version_names_only_the_services_that_the_viewer_may_see(browser: Browser) -> None:
    scenes.service()
    now = timezone.now()
    teams.team_create(name="blue", actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=now)
    teams.ownership_set(team="blue", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    viewer = browser("red", Role.VIEWER)
    shown = page(viewer, VERSION)
    assert "service default/digits" not in shown
    assert "Services of other teams use it." in shown
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    assert "service default/digits" in page(viewer, VERSION)
    teams.ownership_set(team="blue", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    assert "service default/digits" in page(browser(), VERSION)


def test_a_deployer_points_an_alias_at_a_version_and_deletes_it(browser: Browser, version: ModelVersion) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    address = f"{VERSION}aliases"
    assert client.post(address, {"alias": "@steady"})["Location"] == VERSION
    shown = page(client, VERSION)
    assert "The alias steady now points at version 1." in shown
    assert '<span class="tag">@steady</span>' in shown
    assert AuditEntry.objects.filter(action="alias.set", target="models/digits/aliases/steady").count() == 1
    client.post(address, {"alias": "steady", "remove": "yes"})
    assert not version.aliases.filter(name="steady").exists()
    assert client.post(address, {"alias": "no name"}).status_code == 400
    assert client.post(address, {"alias": "gone", "remove": "yes"}).status_code == 404

    viewer = browser("default", Role.VIEWER)
    assert 'id="set-alias"' not in page(viewer, VERSION)
    assert viewer.post(address, {"alias": "steady"}).status_code == 403


@pytest.mark.parametrize(("address", "row"), [(MODEL, RegisteredModel), (VERSION, ModelVersion)])
def test_a_deployer_edits_a_description(
    browser: Browser, version: ModelVersion, address: str, row: type[RegisteredModel | ModelVersion]
) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    assert marked(page(client, address), "save-description")
    answer = client.post(f"{address}description", {"description": "Reads *digits*\r\nwell"})
    assert (answer.status_code, answer["Location"]) == (302, address)
    assert row.objects.values_list("description", flat=True).get() == "Reads *digits*\nwell"
    assert "<em>digits</em>" in page(client, address)
    client.post(f"{address}description", {"description": ""})
    assert row.objects.values_list("description", flat=True).get() == ""
    assert client.post(f"{address}description").status_code == 400
    assert client.post(f"{address}description", {"description": "x" * 10_001}).status_code == 400

    viewer = browser("default", Role.VIEWER)
    assert not marked(page(viewer, address), "save-description")
    assert viewer.post(f"{address}description", {"description": "x"}).status_code == 403


def test_a_version_and_its_model_are_deleted(browser: Browser, version: ModelVersion) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    refused = client.post(f"{VERSION}delete", headers={"HX-Request": "true"})
    assert (refused.status_code, b"has the alias champion" in refused.content) == (409, True)
    version.aliases.all().delete()
    assert client.post(f"{VERSION}delete")["Location"] == MODEL
    assert "Version 1 is deleted." in page(client, MODEL)
    assert not ModelVersion.objects.exists()
    assert client.post(f"{MODEL}delete", headers={"HX-Request": "true"})["HX-Redirect"] == "/models/"
    assert not RegisteredModel.objects.exists()


def test_what_a_service_uses_is_not_deleted(browser: Browser) -> None:
    scenes.service()
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    for address in (MODEL, VERSION):
        refused = client.post(f"{address}delete")
        assert (refused.status_code, b"in use by service default/digits" in refused.content) == (409, True)
    assert ModelVersion.objects.exists()


def test_a_viewer_deletes_nothing(browser: Browser, version: ModelVersion) -> None:
    viewer = browser("default", Role.VIEWER)
    for address in (MODEL, VERSION):
        assert "confirm-delete" not in page(viewer, address)
        assert viewer.post(f"{address}delete").status_code == 403
    assert ModelVersion.objects.exists()


def test_an_admin_protects_an_alias_which_a_deployer_then_cannot_move(browser: Browser, version: ModelVersion) -> None:
    admin = browser("default", Role.ADMIN)
    assert marked(page(admin, MODEL), "no-rules")
    assert admin.post(f"{MODEL}protection", {"alias": "@champion"})["Location"] == MODEL
    shown = page(admin, MODEL)
    assert "Only admins may move the alias champion now." in shown
    assert shown.count('<span class="visually-hidden">protected </span>') == 3  # above, in the list and by the rule
    assert 'id="unprotect-1"' in shown
    assert 'id="alias-1"' in page(admin, VERSION)

    deployer = browser("default", Role.DEPLOYER)
    for address in (MODEL, VERSION):
        assert '<span class="visually-hidden">protected </span>' in page(deployer, address)
    assert "unprotect-1" not in page(deployer, MODEL)
    assert "Protect alias" not in page(deployer, MODEL)
    assert marked(page(deployer, MODEL), "admins-rule")
    assert 'id="alias-1"' not in page(deployer, VERSION)
    assert "Only admins of the team can move champion." in page(deployer, VERSION)
    for wish in ({"alias": "champion"}, {"alias": "champion", "remove": "yes"}):
        refused = deployer.post(f"{VERSION}aliases", wish)
        assert (refused.status_code, b"is protected: only an admin of the team" in refused.content) == (403, True)
    assert deployer.post(f"{MODEL}protection", {"alias": "champion", "remove": "yes"}).status_code == 403
    assert deployer.post(f"{MODEL}delete").status_code == 403

    admin = browser("default", Role.ADMIN)
    assert admin.post(f"{VERSION}aliases", {"alias": "champion"}).status_code == 302
    admin.post(f"{MODEL}protection", {"alias": "champion", "remove": "yes"})
    assert RegisteredModel.objects.get().protected_aliases == []


def test_a_deployer_approves_or_declines_what_somebody_else_registered(browser: Browser, version: ModelVersion) -> None:
    deployer = browser("default", Role.DEPLOYER, Scope.WRITE)
    shown = page(deployer, VERSION)
    assert marked(shown, "undecided")
    assert "unreviewed" in shown
    address = f"{VERSION}approval"
    assert deployer.post(address, {"state": "approved", "comment": "looks <right>"})["Location"] == VERSION
    shown = page(deployer, VERSION)
    for text in ("Version 1 is approved.", "Approved by dora", "looks &lt;right&gt;", 'data-state="go">approved'):
        assert text in shown
    assert "confirm-approve" not in shown
    assert 'data-state="go">approved' in page(deployer, MODEL)
    for wish in ({"state": "declined"}, {"state": "maybe", "comment": "x"}, {"comment": "x"}):
        assert deployer.post(address, wish).status_code == 400
    assert deployer.post(address, {"state": "declined", "comment": "slow"}).status_code == 302
    assert 'data-state="no">declined' in page(deployer, VERSION)

    ModelVersion.objects.update(created_by="dora (token ci)")
    shown = page(deployer, VERSION)
    assert "You cannot approve it: dora registered it, and it takes four eyes; somebody else has to approve." in shown
    assert "confirm-approve" not in shown
    assert deployer.post(address, {"state": "approved"}).status_code == 403

    viewer = browser("default", Role.VIEWER)
    assert "confirm-decline" not in page(viewer, VERSION)
    assert viewer.post(address, {"state": "approved"}).status_code == 403


def test_an_admin_asks_for_approvals(browser: Browser, version: ModelVersion) -> None:
    deployer = browser("default", Role.DEPLOYER)
    assert "needs approval" not in page(deployer, MODEL)
    assert deployer.post(f"{MODEL}approval", {"required": "yes"}).status_code == 403
    admin = browser("default", Role.ADMIN)
    assert admin.post(f"{MODEL}approval", {"required": "perhaps"}).status_code == 400
    assert admin.post(f"{MODEL}approval", {"required": "yes"})["Location"] == MODEL
    shown = page(admin, MODEL)
    assert marked(shown, "approved-only")
    for address in (MODEL, VERSION):
        assert 'data-state="wait">needs approval' in page(admin, address)
    deploy = page(admin, "/deploy/digits/1/")
    assert "Version 1 is not approved, which its model asks for" in deploy
    assert not marked(deploy, "make-service")
    admin.post(f"{MODEL}approval", {"required": "no"})
    assert marked(page(admin, "/deploy/digits/1/"), "make-service")


def test_a_rejected_version_is_checked_again_from_its_page(browser: Browser, version: ModelVersion) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    assert "Check again" not in page(client, VERSION)
    ModelVersion.objects.update(status="REJECTED", reason="it needs lightgbm", of_installation=True)
    assert "Check again" in page(client, VERSION)
    assert client.post(f"{VERSION}recheck")["Location"] == VERSION
    version.refresh_from_db()
    assert (version.status, version.reason) == ("PENDING", "")
    ModelVersion.objects.update(status="REJECTED")
    assert "Check again" not in page(browser("default", Role.VIEWER), VERSION)
