"""Imports through the API and the worker's task, from a folder of this machine and from web servers that misbehave."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from common.uris import parse_prefixes
from control_plane.celery import app
from jobs.services import claim as claims
from jobs.services import run_claim
from registry import tasks
from registry.domain.import_lifecycle import MAX_ATTEMPTS
from registry.domain.version_metadata import Particulars
from registry.models import ModelImport, ModelVersion, RegisteredModel
from registry.services import imports

Api = Callable[..., APIClient]
Onnx = Callable[..., bytes]
IMPORTS = "/api/v1/models/digits/imports"
LEASE = timedelta(seconds=20)


@pytest.fixture
def root(settings: Settings, store_folder: Path, tmp_path: Path) -> Path:
    root = tmp_path / "models"
    root.mkdir()
    settings.IMPORT_FROM = parse_prefixes([root.as_uri()])
    return root


@pytest.fixture
def model_file(root: Path, linear_model: Onnx) -> Path:
    place = root / "digits.onnx"
    place.write_bytes(linear_model())
    return place


@pytest.fixture
def hints_run_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(run_claim, "RENEW_EVERY_S", 60.0)  # the test's transaction has the rows
    monkeypatch.setattr(tasks, "_RENEW_EVERY_S", 60.0)
    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False


def asked(uri: str, **desired_states: str) -> ModelImport:
    return imports.import_request(model="digits", uri=uri, now=timezone.now(), actor="alice", **desired_states)  # type: ignore[arg-type]


def after(row: ModelImport) -> ModelImport:
    """Return the import once the worker's task has had its turn with it."""
    tasks.import_model(row.pk)
    row.refresh_from_db()
    return row


def make_due() -> None:
    ModelImport.objects.filter(status="PENDING").update(next_try_at=timezone.now())


def incoming(store_folder: Path) -> list[str]:
    return [path.name for path in (store_folder / ".incoming").glob("*")]


@pytest.mark.django_db(transaction=True)
def test_an_import_becomes_a_ready_version_with_where_it_came_from(
    api: Api, model_file: Path, hints_run_at_once: None
) -> None:
    client = api(Scope.WRITE)
    body = {"uri": model_file.as_uri(), "tags": {"team": "vision"}, "source_commit": "abc", "parameters": {"lr": "1"}}
    answer = client.post(IMPORTS, body)
    assert answer.status_code == 202
    row = client.get(f"{IMPORTS}/{answer.json()['id']}").json()
    size = model_file.stat().st_size
    assert (row["status"], row["version"], row["bytes_done"], row["bytes_total"]) == ("IMPORTED", 1, size, size)
    version = client.get("/api/v1/models/digits/versions/1").json()
    assert (version["status"], version["source_name"], version["tags"]) == ("READY", "digits.onnx", {"team": "vision"})
    assert version["created_by"].startswith("alice")
    assert version["lineage"]["source_uri"] == model_file.as_uri()
    assert (version["lineage"]["source_commit"], version["lineage"]["parameters"]) == ("abc", {"lr": "1"})
    entries = AuditEntry.objects.filter(target__startswith="models/digits").order_by("id")
    assert list(entries.values_list("action", flat=True))[:2] == ["model.import", "model_version.register"]


@pytest.mark.django_db
def test_the_same_files_again_are_the_version_that_is_there(model_file: Path) -> None:
    first, second = after(asked(model_file.as_uri())), after(asked(model_file.as_uri()))
    assert first.version_id == second.version_id
    assert ModelVersion.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_request_again_under_its_key_makes_one_import(
    api: Api, model_file: Path, hints_run_at_once: None
) -> None:
    client = api(Scope.WRITE)
    for _ in range(2):
        answer = client.post(IMPORTS, {"uri": model_file.as_uri()}, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["id"]) == (202, ModelImport.objects.get().pk)
    assert ModelImport.objects.get().status == "IMPORTED"  # the hint was sent once the row could be seen


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({"uri": "https://elsewhere.example/m.onnx"}, "uri", "FAIRLEAD_IMPORT_FROM does not allow"),
        ({"uri": "file:///etc/passwd"}, "uri", "FAIRLEAD_IMPORT_FROM does not allow"),
        ({"uri": "ftp://x/m.onnx"}, "uri", "expected one of http://"),
        ({}, "uri", "missing"),
        ({"uri": "{root}/m.onnx", "sha256": "abc"}, "sha256", "64 hex digits"),
        ({"uri": "{root}/m.onnx", "colour": "red"}, "colour", "is not a field here"),
        ({"uri": "{root}/m.onnx", "tags": {"1": "x"}}, "tags", "is no key of a tag"),
        ({"uri": "{root}/m.onnx", "run_url": "x"}, "run_url", "http or https"),
        ({"uri": "{root}/m.onnx", "compatible_with": "@champion"}, None, "there is no model"),
    ],
)
def test_what_cannot_be_imported_is_refused_at_once(
    api: Api, root: Path, body: dict[str, object], field: str | None, told: str
) -> None:
    sent = {key: value.format(root=root.as_uri()) if key == "uri" else value for key, value in body.items()}  # type: ignore[attr-defined]
    answer = api(Scope.WRITE).post(IMPORTS, sent)
    error = answer.json()["error"]
    assert (answer.status_code in (400, 404), error["field"]) == (True, field)
    assert told in error["message"]
    assert not ModelImport.objects.exists()
    assert not RegisteredModel.objects.exists()


def test_without_the_setting_the_refusal_says_how_to_switch_it_on(api: Api) -> None:
    answer = api(Scope.WRITE).post(IMPORTS, {"uri": "s3://bucket/model.onnx"})
    assert answer.status_code == 400
    assert (
        "switched off; an operator switches it on by setting FAIRLEAD_IMPORT_FROM" in answer.json()["error"]["message"]
    )


@pytest.mark.django_db
def test_a_signature_in_the_query_is_shown_to_nobody(api: Api, settings: Settings) -> None:
    settings.IMPORT_FROM = parse_prefixes(["https://models.example.com"])
    client = api(Scope.WRITE)
    answer = client.post(IMPORTS, {"uri": "https://models.example.com/m.onnx?X-Amz-Signature=secret"})
    assert answer.json()["uri"] == "https://models.example.com/m.onnx"
    assert b"secret" not in client.get(IMPORTS).content
    assert "secret" not in str(list(AuditEntry.objects.values_list("after", "before", "detail", "target")))


@pytest.mark.django_db
def test_what_can_never_be_had_fails_at_once_with_its_reason(root: Path) -> None:
    row = after(asked((root / "nowhere.onnx").as_uri()))
    assert (row.status, row.attempts, row.next_try_at) == ("FAILED", 1, None)
    assert "there is nothing at" in row.reason
    entry = AuditEntry.objects.get(action="model.import_failed")
    assert (entry.actor, entry.target) == ("fairlead", f"models/digits/imports/{row.pk}")


@pytest.mark.django_db
def test_another_sha256_than_expected_registers_nothing(model_file: Path, store_folder: Path) -> None:
    row = after(asked(model_file.as_uri(), sha256="0" * 64))
    assert row.status == "FAILED"
    assert "was expected" in row.reason
    assert not ModelVersion.objects.exists()
    assert incoming(store_folder) == []


@pytest.mark.django_db
def test_a_setting_that_was_narrowed_counts_for_what_waits(model_file: Path, settings: Settings) -> None:
    row = asked(model_file.as_uri())
    settings.IMPORT_FROM = ()
    assert (after(row).status, "switched off" in row.reason) == ("FAILED", True)


@pytest.mark.django_db
def test_what_breaks_off_is_tried_again_and_given_up_in_the_end(settings: Settings, store_folder: Path) -> None:
    settings.IMPORT_FROM = parse_prefixes(["http://127.0.0.1:1"])
    row = asked("http://127.0.0.1:1/model.onnx")
    for attempt in range(1, MAX_ATTEMPTS):
        assert (after(row).status, row.attempts) == ("PENDING", attempt)
        assert "cannot be read" in row.reason
        assert after(row).attempts == attempt  # not due yet
        make_due()
    assert after(row).status == "FAILED"
    assert "broke off 5 times" in row.reason
    assert incoming(store_folder) == []


@pytest.mark.django_db
def test_a_worker_that_was_killed_is_replaced_and_leaves_nothing(model_file: Path, store_folder: Path) -> None:
    row = asked(model_file.as_uri())
    dead = claims.begin(imports.IMPORT, row.pk, now=timezone.now(), lease=LEASE)
    assert dead is not None
    left = store_folder / ".incoming" / f"import-{row.pk}-left"
    left.mkdir(parents=True)
    (left / "model.onnx").write_bytes(b"half")
    assert after(row).status == "PENDING"  # its lease is not over
    make_due()
    assert (after(row).status, row.attempts) == ("IMPORTED", 2)
    assert incoming(store_folder) == []
    claims.fail(imports.IMPORT, dead, reason="late", now=timezone.now())
    row.refresh_from_db()
    assert row.status == "IMPORTED"


@pytest.mark.django_db
def test_one_that_takes_its_worker_down_every_time_is_given_up(model_file: Path) -> None:
    row = asked(model_file.as_uri())
    for _ in range(MAX_ATTEMPTS):
        make_due()
        assert claims.begin(imports.IMPORT, row.pk, now=timezone.now(), lease=LEASE) is not None
    make_due()
    assert after(row).status == "FAILED"
    assert "the worker did not come to its end" in row.reason


@pytest.mark.django_db
def test_only_so_many_come_in_at_a_time_and_the_sweep_finds_the_rest(model_file: Path, hints_run_at_once: None) -> None:
    rows = [asked(model_file.as_uri()) for _ in range(imports.MAX_CONCURRENT + 2)]
    for row in rows[: imports.MAX_CONCURRENT]:
        assert claims.begin(imports.IMPORT, row.pk, now=timezone.now(), lease=LEASE) is not None
    assert after(rows[-1]).status == "PENDING"
    make_due()
    tasks.sweep_imports()
    assert set(ModelImport.objects.values_list("status", flat=True)) == {"IMPORTED"}


@pytest.mark.django_db(transaction=True)
def test_one_that_is_stopped_lets_go_in_the_middle_and_leaves_nothing(
    api: Api, model_file: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api(Scope.WRITE)
    row = asked(model_file.as_uri())
    monkeypatch.setattr(run_claim, "RENEW_EVERY_S", 0.01)
    fetch = imports.sources.fetch
    stopped: list[int] = []

    def slowly(order: object, store: object, allowed: object, progress: Callable[..., None]) -> object:
        def note(done: int, total: int | None) -> None:
            if done and not stopped:
                stopped.append(client.delete(f"{IMPORTS}/{row.pk}").status_code)
                (holder,) = [each for each in threading.enumerate() if each.name == f"hold import {row.pk}"]
                holder.join(10)  # it ends once it has seen that the claim is lost
            progress(done, total)

        return fetch(order, store, allowed, note)  # type: ignore[arg-type]

    monkeypatch.setattr(imports.sources, "fetch", slowly)
    after(row)
    assert (stopped, row.status, "stopped it" in row.reason) == ([204], "FAILED", True)
    assert not ModelVersion.objects.exists()
    assert incoming(store_folder) == []
    assert client.delete(f"{IMPORTS}/{row.pk}").status_code == 409


@pytest.mark.django_db
def test_a_worker_that_is_to_end_gives_the_import_back(
    model_file: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = asked(model_file.as_uri())
    monkeypatch.setattr(run_claim, "_stopping", threading.Event())
    run_claim.stop()
    assert (after(row).status, row.attempts, row.claim) == ("PENDING", 0, None)
    assert row.next_try_at <= timezone.now()  # type: ignore[operator]
    assert incoming(store_folder) == []
    run_claim._stopping.clear()
    assert after(row).status == "IMPORTED"


@pytest.mark.django_db
def test_a_version_that_may_not_be_registered_fails_the_import(
    model_file: Path, register: Callable[..., ModelVersion]
) -> None:
    row = asked(model_file.as_uri())
    after(row)
    ModelVersion.objects.update(status="READY", signature={"inputs": [], "outputs": []})
    register(content="other")
    second = register(content="second")
    wanted = {"inputs": [], "outputs": [{"name": "y", "datatype": "FP32", "shape": [1]}]}
    ModelVersion.objects.filter(pk=second.pk).update(signature=wanted)
    again = imports.import_request(
        model="digits",
        uri=model_file.as_uri(),
        now=timezone.now(),
        actor="alice",
        particulars=Particulars(compatible_with=str(second.number)),
    )
    assert (after(again).status, "is not compatible with version" in again.reason) == ("FAILED", True)


@pytest.mark.django_db
def test_imports_that_ended_long_ago_are_forgotten_and_their_versions_stay(model_file: Path) -> None:
    after(asked(model_file.as_uri()))
    waiting = asked(model_file.as_uri())
    now = timezone.now() + timedelta(days=91)
    assert imports.imports_forget(now=now, older_than=timedelta(days=90)) == 1
    assert ModelImport.objects.get() == waiting
    assert ModelVersion.objects.count() == 1


def test_the_list_asks_the_database_equally_often_for_many_rows(api: Api, model_file: Path) -> None:
    client = api(Scope.READ)
    after(asked(model_file.as_uri()))
    client.get(IMPORTS)  # the first call notes that the token was used
    with CaptureQueriesContext(connection) as one:
        client.get(IMPORTS)
    for _ in range(5):
        after(asked(model_file.as_uri()))
    client.get(IMPORTS)  # the first call notes that the token was used
    with CaptureQueriesContext(connection) as six:
        assert len(client.get(IMPORTS).json()["results"]) == 6
    assert len(six) == len(one)
