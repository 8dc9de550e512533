"""Descriptions, tags and lineage, through the API."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from common.errors import InvalidInput
from registry.domain import tags
from registry.domain.lineage import Lineage
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion, RegisteredModel
from registry.services.annotations import Changes, model_annotate

Api = Callable[..., APIClient]
Register = Callable[..., ModelVersion]
AtMost = Callable[[int], AbstractContextManager[object]]
MODEL, VERSION = "/api/v1/models/digits", "/api/v1/models/digits/versions/1"
PUSH = "/api/v1/models/digits/versions?filename=model.onnx"


class TestSaidLater:
    @pytest.mark.parametrize("address", [MODEL, VERSION])
    def test_what_is_named_changes_and_the_rest_stays(self, api: Api, register: Register, address: str) -> None:
        register()
        client = api(Scope.WRITE)
        first = client.patch(address, {"description": "# Digits\n", "tags": {"team": "vision", "stage": "lab"}})
        assert first.status_code == 200
        assert first.json()["description"] == "# Digits\n"
        second = client.patch(address, {"tags": {"stage": None, "owner": ""}})
        assert second.json()["tags"] == {"owner": "", "team": "vision"}
        assert second.json()["description"] == "# Digits\n"
        assert client.get(address).json() == second.json()

    def test_the_audit_log_has_what_changed(self, api: Api, register: Register) -> None:
        register()
        client = api(Scope.WRITE)
        client.patch(VERSION, {"description": "new", "tags": {}})
        client.patch(VERSION, {"description": "new"})
        entry = AuditEntry.objects.get(action="model_version.annotate")
        assert entry.target == "models/digits/versions/1"
        assert (entry.before, entry.after) == ({"description": ""}, {"description": "new"})

    @pytest.mark.parametrize(
        ("address", "body", "field"),
        [
            pytest.param(VERSION, {"lineage": {}}, "lineage", id="lineage never changes"),
            pytest.param(VERSION, {"compatible_with": "@x"}, "compatible_with", id="nor what it was registered to fit"),
            pytest.param(MODEL, {"name": "other"}, "name", id="nor the name of a model"),
            pytest.param(MODEL, {"description": "x" * 10_001}, "description", id="a long description"),
            pytest.param(MODEL, {"description": None}, "description", id="no description"),
            pytest.param(MODEL, {"tags": {"7": "x"}}, "tags", id="a key of digits"),
            pytest.param(MODEL, {"tags": {"x": "y" * 1001}}, "tags.x", id="a long value"),
            pytest.param(MODEL, {"tags": {"x": ["y"]}}, "tags.x", id="a value that is no text"),
            pytest.param(MODEL, {"tags": {f"k{n}": "" for n in range(51)}}, "tags", id="too many tags"),
            pytest.param(MODEL, {"compatible_with": "champion"}, "compatible_with", id="an alias without @"),
            pytest.param(MODEL, {"compatible_with": "@7"}, "compatible_with", id="no alias"),
        ],
    )
    def test_what_cannot_be_kept_is_refused(
        self, api: Api, register: Register, address: str, body: dict[str, object], field: str
    ) -> None:
        register()
        answer = api(Scope.WRITE).patch(address, body)
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)

    @pytest.mark.parametrize("address", ["/api/v1/models/none", "/api/v1/models/none/versions/1"])
    def test_of_what_is_not_there(self, api: Api, address: str) -> None:
        assert api(Scope.WRITE).patch(address, {"tags": {"a": "b"}}).status_code == 404

    def test_a_reader_changes_nothing(self, api: Api, register: Register) -> None:
        register()
        assert [api(Scope.READ).patch(address, {}).status_code for address in (MODEL, VERSION)] == [403, 403]


@pytest.mark.django_db(transaction=True)
def test_tags_that_are_set_at_the_same_time_are_all_kept() -> None:
    RegisteredModel.objects.create(name="digits", created_at=timezone.now(), created_by="x")
    ready = threading.Barrier(6)

    def set_one(key: str) -> None:
        try:
            ready.wait(60)
            model_annotate(name="digits", changes=Changes(tags={key: "1"}), now=timezone.now(), actor="x")
        finally:
            connection.close()

    threads = [threading.Thread(target=set_one, args=(key,)) for key in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(RegisteredModel.objects.get().tags) == list("abcdef")


class TestSaidAtRegistration:
    def test_all_is_kept_with_the_version(self, api: Api, store_folder: Path) -> None:
        client = api(Scope.WRITE)
        query = (
            "&source_commit=9fceb02&run_url=https://ci.example/runs/7&data_reference=s3://data/digits@3"
            "&parameter=lr=0.1&parameter=eq=a=b&tag=team=vision&description=%23%20Digits"
        )
        made = client.post(PUSH + query, b"some bytes", content_type="application/octet-stream").json()
        assert made["lineage"] == {
            "source_commit": "9fceb02",
            "run_url": "https://ci.example/runs/7",
            "data_reference": "s3://data/digits@3",
            "source_uri": "",
            "built_from": "",
            "accelerator": "",
            "products": [],
            "parameters": {"eq": "a=b", "lr": "0.1"},
        }
        assert (made["tags"], made["description"]) == ({"team": "vision"}, "# Digits")
        again = client.post(PUSH + "&source_commit=other", b"some bytes", content_type="application/octet-stream")
        assert (again.status_code, again.json()) == (200, made)

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("source_commit=" + "a" * 101, "source_commit"),
            ("source_commit=a%01b", "source_commit"),
            ("run_url=javascript:alert(1)", "run_url"),
            ("run_url=https://[", "run_url"),
            ("parameter=x", "parameter"),
            ("parameter=x=1&parameter=x=2", "parameter"),
            ("parameter==1", "parameters"),
            ("tag=1=2", "tags"),
            ("commit=9fceb02", "commit"),
            ("compatible_with=champion", "compatible_with"),
        ],
    )
    def test_what_cannot_be_kept_is_refused_before_the_file_comes_in(
        self, api: Api, store_folder: Path, query: str, field: str
    ) -> None:
        answer = api(Scope.WRITE).post(f"{PUSH}&{query}", b"some bytes", content_type="application/octet-stream")
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
        assert not store_folder.exists()

    def test_a_version_from_before_lineage_was_kept_has_an_empty_one(self, api: Api, register: Register) -> None:
        register()
        ModelVersion.objects.update(lineage={})
        assert api(Scope.READ).get(VERSION).json()["lineage"]["parameters"] == {}


class TestFilters:
    def test_models_by_tags(self, api: Api, register: Register) -> None:
        for name, kept in {"a": {"team": "x"}, "b": {"team": "x", "a__b": "1"}, "c": {"team": "y"}}.items():
            register(name)
            RegisteredModel.objects.filter(name=name).update(tags=kept)
        client = api(Scope.READ)

        def names(query: str) -> list[str]:
            return [model["name"] for model in client.get(f"/api/v1/models?{query}").json()["results"]]

        assert names("tag=team=x") == ["a", "b"]
        assert names("tag=team=x&tag=a__b=1") == ["b"]
        assert names("tag=nothing=x") == []

    def test_versions_by_tags_and_status(self, api: Api, register: Register) -> None:
        register(content="one")
        ModelVersion.objects.filter(number=1).update(tags={"stage": "lab"})
        register(content="two", status=Status.PENDING)
        client = api(Scope.READ)

        def numbers(query: str) -> list[int]:
            answer = client.get(f"{MODEL}/versions?{query}").json()
            return [version["number"] for version in answer["results"]]

        assert (numbers("status=READY"), numbers("status=PENDING"), numbers("")) == ([1], [2], [2, 1])
        assert (numbers("tag=stage=lab"), numbers("tag=stage=lab&status=PENDING")) == ([1], [])

    @pytest.mark.parametrize(("query", "field"), [("tag=x", "tag"), ("status=ready", "status")])
    def test_one_that_is_none_is_refused(self, api: Api, register: Register, query: str, field: str) -> None:
        register()
        answer = api(Scope.READ).get(f"{MODEL}/versions?{query}")
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)

    def test_a_filtered_page_asks_the_database_as_often_as_another(
        self, api: Api, register: Register, django_assert_max_num_queries: AtMost
    ) -> None:
        for number in range(12):
            register(content=str(number))
        ModelVersion.objects.update(tags={"a": "b"})
        client = api(Scope.READ)
        client.get("/api/v1/whoami")
        with django_assert_max_num_queries(5):
            assert len(client.get(f"{MODEL}/versions?tag=a=b&status=READY").json()["results"]) == 12


@pytest.mark.parametrize("address", ["http://ci.example/1", "https://ci.example:8443/a?b=c", ""])
def test_an_address_of_a_run_is_one_of_the_web(address: str) -> None:
    Lineage(run_url=address).check()


def test_too_many_parameters_are_refused() -> None:
    with pytest.raises(InvalidInput, match="201 parameters"):
        Lineage(parameters={f"p{n}": "1" for n in range(201)}).check()


def test_a_tag_may_be_taken_away_that_is_not_there() -> None:
    assert tags.changed({"a": "1"}, {"b": None}) == {"a": "1"}
