from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.selectors import audit_list
from accounts.services import audit_record
from common.http.request_id import RequestIdMiddleware

NOW = datetime(2026, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def record(target: str = "models/digits") -> AuditEntry:
    return audit_record(actor="alice (token ci)", action="model.create", target=target, now=NOW, detail={"n": 1})


def test_an_entry_tells_who_what_and_under_which_request(rf: "object") -> None:
    from django.http import HttpResponse  # noqa: PLC0415

    def view(_request: object) -> HttpResponse:
        return HttpResponse(record().request_id)

    request = rf.get("/", headers={"X-Request-ID": "req-7"})  # type: ignore[attr-defined]
    assert RequestIdMiddleware(view)(request).content == b"req-7"
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.target, entry.at) == (
        "alice (token ci)",
        "model.create",
        "models/digits",
        NOW,
    )
    assert (entry.detail, entry.request_id) == ({"n": 1}, "req-7")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda entry: entry.save(), id="saving it again"),
        pytest.param(lambda entry: entry.delete(), id="deleting it"),
        pytest.param(lambda entry: AuditEntry.objects.update(actor="mallory"), id="updating all"),
        pytest.param(lambda entry: AuditEntry.objects.filter(pk=entry.pk).update(actor="m"), id="updating one"),
        pytest.param(lambda entry: AuditEntry.objects.all().delete(), id="deleting all"),
        pytest.param(lambda entry: AuditEntry.objects.bulk_update([entry], ["actor"]), id="updating in bulk"),
    ],
)
def test_history_cannot_be_changed(change: Callable[[AuditEntry], object]) -> None:
    entry = record()
    with pytest.raises(TypeError, match="cannot be"):
        change(entry)
    assert AuditEntry.objects.get().actor == "alice (token ci)"


def test_the_log_is_newest_first_and_can_be_narrowed() -> None:
    first, other, last = record(), record("models/other"), record()
    assert list(audit_list()) == [last, other, first]
    assert list(audit_list(target="models/digits")) == [last, first]


def test_an_administrator_reads_the_log_with_before_and_after(api: Callable[..., APIClient]) -> None:
    admin = api(Scope.ADMIN)
    admin.put("/api/v1/policies/careful", {"name": "careful", "steps": [{"weight": 10, "pause": True}]})
    admin.put("/api/v1/policies/careful", {"name": "careful", "steps": [{"weight": 20, "pause": True}]})
    admin.delete("/api/v1/policies/careful")
    entries = admin.get("/api/v1/audit", {"target": "policies/careful", "ordering": "id"}).json()["results"]
    weights = [
        [side and side["document"]["steps"][0]["weight"] for side in (entry["before"], entry["after"])]
        for entry in entries
    ]
    assert weights == [[None, 10], [10, 20], [20, None]]
    assert [entry["action"] for entry in entries] == ["policy.apply", "policy.apply", "policy.delete"]
    assert {entry["actor"] for entry in entries} == {"alice (token alice-admin)"}


def test_the_log_is_narrowed_by_its_filters(api: Callable[..., APIClient]) -> None:
    record(), record("models/other")
    admin = api(Scope.ADMIN)

    def targets(**query: str) -> list[str]:
        return [entry["target"] for entry in admin.get("/api/v1/audit", query).json()["results"]]

    assert targets(target_prefix="models/") == ["models/other", "models/digits"]
    assert targets(action="model.create", target="models/other") == ["models/other"]
    assert targets(until="2026-01-01T00:00:01Z") == ["models/other", "models/digits"]
    assert targets(since="2026-01-01T00:00:01Z", action="model.create") == []
    assert targets(user="alice", action="model.create") == ["models/other", "models/digits"]
    assert targets(user="ali") == targets(user="alice (token c") == []
    record("models/digits/versions/2"), record("models/digits2")
    assert targets(under="models/digits/") == ["models/digits/versions/2", "models/digits"]


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE])
def test_the_log_is_for_administrators(api: Callable[..., APIClient], scope: Scope) -> None:
    assert api(scope).get("/api/v1/audit").status_code == 403
