"""The page of the audit log."""

import csv
import io
import json
import re
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.selectors import audit_list
from accounts.selectors.audit import Difference, differences, page_of
from accounts.selectors.audit_export import Format, pieces
from accounts.services import audit_record
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page


def note(target: str = "models/digits", actor: str = "alice (token ci)", **what: object) -> None:
    what = {"before": None, "after": {"name": "digits"}, "action": "model.create", "now": timezone.now(), **what}
    audit_record(actor=actor, target=target, **what)  # type: ignore[arg-type]


def targets(shown: str) -> list[str]:
    return re.findall(r'href="\?under=[^"]*">([^<]*)<', shown)


def test_an_entry_says_who_did_what_and_which_fields_differ(browser: Browser) -> None:
    note(action="policy.apply", before={"steps": [{"weight": 10}], "x": 1}, after={"steps": [{"weight": 20}], "x": 1})
    shown = page(browser(), "/audit/?action=policy.apply")
    assert "alice (token ci)" in shown
    assert "<dt>steps[0].weight</dt>" in shown
    assert "<del>10</del>" in shown
    assert "<ins>20</ins>" in shown
    assert "<dt>x</dt>" not in shown


def test_many_fields_are_folded(browser: Browser) -> None:
    note(after={f"field{number}": number for number in range(9)})
    assert "5 more fields" in page(browser(), "/audit/?under=models")


def test_what_somebody_typed_stays_text(browser: Browser) -> None:
    note(target="models/<script>", actor="<b>", after={"<i>": "<u>"})
    shown = page(browser(), "/audit/?action=model.create")
    for typed in ("<script>alert", "<b>", "<i>", "<u>"):
        assert typed not in shown


def test_the_log_is_narrowed_by_object_person_and_time(browser: Browser) -> None:
    client = browser()
    (
        note(),
        note("models/digits/versions/1", "bob (token x)"),
        note("models/digits2", now=datetime(2026, 1, 1, tzinfo=UTC)),
    )
    assert targets(page(client, "/audit/?under=models/digits")) == ["models/digits/versions/1", "models/digits"]
    assert targets(page(client, "/audit/?user=bob")) == ["models/digits/versions/1"]
    assert targets(page(client, "/audit/?until=2026-01-02T00:00&since=2025-12-31T00:00")) == ["models/digits2"]
    assert marked(page(client, "/audit/?user=nobody"), "no-entry-like-that")
    assert client.get("/audit/?since=yesterday").status_code == 400


@pytest.mark.parametrize(
    ("team", "role", "scope"),
    [("default", Role.DEPLOYER, Scope.ADMIN), ("default", Role.ADMIN, Scope.WRITE), ("red", Role.ADMIN, Scope.ADMIN)],
)
def test_the_log_is_for_administrators(browser: Browser, team: str, role: Role, scope: Scope) -> None:
    client = browser(team, role, scope)
    assert client.get("/audit/").status_code == 403
    assert "Audit log" not in page(client, "/services/")


def test_a_long_log_comes_page_by_page_and_stays_narrowed(
    browser: Browser, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = browser()
    for number in range(55):
        note(f"models/m{number}")
    with django_assert_max_num_queries(5):
        first = page(client, "/audit/?action=model.create")
    assert len(targets(first)) == 50
    older = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    assert targets(page(client, f"/audit/{older}")) == [f"models/m{number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        pytest.param(None, {"a": {"b": 1}}, (Difference("a.b", None, "1"),), id="made"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, (Difference("a[1]", "2", None),), id="taken away"),
        pytest.param({"a": "1"}, {"a": "2", "b": None}, (Difference("a", "1", "2"),), id="made empty"),
        pytest.param({"a": {}, "b": 0}, {"a": "", "b": False}, (Difference("b", "0", "false"),), id="no less empty"),
        pytest.param({"a": "x"}, {"a": ""}, (Difference("a", "x", '""'),), id="emptied"),
        pytest.param(None, {}, (), id="nothing of it"),
    ],
)
def test_differences_are_told_by_field(before: object, after: object, found: tuple[Difference, ...]) -> None:
    assert differences(before, after) == found


@pytest.mark.parametrize(
    ("target", "action", "found"),
    [
        ("models/digits", "model.create", "/models/digits/"),
        ("models/digits/aliases/champion", "alias.delete", "/models/digits/"),
        ("models/digits/versions/2", "model_version.annotate", "/models/digits/versions/2/"),
        ("models/digits/versions/2/trials/7", "trial.start", "/models/digits/versions/2/"),
        ("models/digits/versions/2/builds/7", "build.start", "/models/digits/versions/2/builds/7/"),
        ("models/digits/versions/2/tunings/7", "tuning.stop", "/models/digits/versions/2/tunings/7/"),
        ("services/default/digits", "service.apply", "/services/default/digits/"),
        ("services/default/digits/recordings/3", "recording.delete", "/services/default/digits/"),
        ("clusters/local", "cluster.apply", "/platform/clusters/local/"),
        ("clusters/local/repartitions/4", "repartition.propose", "/platform/clusters/local/gpus"),
        ("policies/careful", "policy.apply", "/policies/careful/"),
        ("webhooks/3", "webhook.create", "/webhooks/3/"),
        ("teams/red/members/a/b", "member.set", "/teams/red/"),
        ("users/a/b", "user.switch", "/users/a/b/"),
        ("tokens/9", "token.create", "/tokens/"),
        pytest.param("policies/careful", "policy.delete", "", id="it is gone"),
        pytest.param("rollouts/7", "rollout.promote", "", id="its page has the service's name, which is not said"),
        pytest.param("//evil.example/", "model.create", "", id="no object"),
        pytest.param("models/\n", "model.create", "/models/%0A/", id="a name as nobody has it"),
    ],
)
def test_an_object_has_its_page(target: str, action: str, found: str) -> None:
    assert page_of(target, action) == found


def test_what_is_empty_is_not_told(browser: Browser) -> None:
    note(after={"name": "digits", "note": ""}, detail={"reason": "", "from": {"address": "10.0.0.7"}})
    shown = page(browser(), "/audit/?action=model.create")
    assert "<dt>from.address</dt><dd>10.0.0.7</dd>" in shown
    for left_out in ("<dt>reason</dt>", "<dt>note</dt>"):
        assert left_out not in shown


def exported(client: Client, query: str) -> str:
    answer = client.get(f"/audit/export?{query}")
    assert answer.status_code == 200
    assert answer["Content-Disposition"].startswith('attachment; filename="audit.')
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]


def test_what_the_page_is_narrowed_to_is_exported_oldest_first(browser: Browser) -> None:
    client = browser()
    for number in range(60):  # more than a page
        note(f"models/m{number}")
    note("services/default/x", before={"a": 1}, after={"a": 2})
    lines = [json.loads(line) for line in exported(client, "format=jsonl&under=models").splitlines()]
    assert [line["target"] for line in lines] == [f"models/m{number}" for number in range(60)]
    (line,) = [json.loads(line) for line in exported(client, "format=jsonl&under=services").splitlines()]
    assert (line["before"], line["after"], line["actor"]) == ({"a": 1}, {"a": 2}, "alice (token ci)")
    assert 'href="/audit/export?format=csv&amp;under=models"' in page(client, "/audit/?under=models")


def test_no_spreadsheet_takes_a_cell_for_a_formula(browser: Browser) -> None:
    client = browser()
    note("models/a", actor='=HYPERLINK("x"), "y"')
    rows = list(csv.DictReader(io.StringIO(exported(client, "format=csv&under=models"))))
    assert [row["actor"] for row in rows] == ['\'=HYPERLINK("x"), "y"']
    assert json.loads(rows[0]["after"]) == {"name": "digits"}


def test_the_export_is_made_while_the_log_is_read(browser: Browser) -> None:
    for number in range(1100):
        note(f"models/m{number}")
    parts = pieces(audit_list(target=None).filter(action="model.create").iterator(chunk_size=500), Format.JSONL)
    assert [part.count(b"\n") for part in parts] == [500, 500, 100]


def test_the_export_is_for_who_administers_and_knows_two_formats(browser: Browser) -> None:
    assert browser("red", Role.ADMIN).get("/audit/export?format=csv").status_code == 403
    assert browser(scope=Scope.WRITE).get("/audit/export?format=csv").status_code == 403
    assert browser().get("/audit/export?format=xml").status_code == 400
