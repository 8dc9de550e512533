from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from registry import services
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion, RegisteredModel

Api = Callable[..., APIClient]
Register = Callable[..., ModelVersion]
AtMost = Callable[[int], AbstractContextManager[object]]


class TestModels:
    def test_make_show_list_delete(self, api: Api) -> None:
        client = api(Scope.WRITE)
        made = client.post("/api/v1/models", {"name": "digits", "description": "ten of them"})
        assert made.status_code == 201
        body = made.json()
        assert body == {
            "created_at": body["created_at"],
            "name": "digits",
            "description": "ten of them",
            "tags": {},
            "compatible_with": "",
            "latest_version": None,
            "aliases": [],
            "protected_aliases": [],
            "requires_approval": False,
            "created_by": "alice (token alice-write)",
        }
        assert client.get("/api/v1/models/digits").json() == made.json()
        assert client.get("/api/v1/models").json() == {"next": None, "results": [made.json()]}
        assert client.delete("/api/v1/models/digits").status_code == 204
        assert client.get("/api/v1/models/digits").status_code == 404

    @pytest.mark.parametrize(
        ("asked", "field"),
        [
            ({}, "name"),
            ({"name": "a/b"}, "name"),
            ({"name": ["x"]}, "name"),
            ({"name": "x", "description": None}, "description"),
        ],
    )
    def test_a_wrong_one_is_refused_by_its_field(self, api: Api, asked: dict[str, object], field: str) -> None:
        answer = api(Scope.WRITE).post("/api/v1/models", asked)
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)

    def test_a_body_that_is_no_json_is_refused(self, api: Api) -> None:
        answer = api(Scope.WRITE).post("/api/v1/models", b"{", content_type="application/json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_input")

    def test_a_name_that_is_taken_is_a_conflict(self, api: Api) -> None:
        client = api(Scope.WRITE)
        client.post("/api/v1/models", {"name": "digits"})
        answer = client.post("/api/v1/models", {"name": "digits"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")

    def test_the_list_goes_on_by_name(self, api: Api, register: Register) -> None:
        for name in ("c", "a", "b"):
            register(name)
        client = api(Scope.READ)
        first = client.get("/api/v1/models?limit=2").json()
        second = client.get(first["next"]).json()
        assert [model["name"] for page in (first, second) for model in page["results"]] == ["a", "b", "c"]
        assert second["next"] is None


class TestVersions:
    def test_a_version_as_the_api_shows_it(self, api: Api, register: Register) -> None:
        version = register()
        signature = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], "outputs": []}
        ModelVersion.objects.update(signature=signature, platform="onnxruntime_onnx", profile={"load_seconds": 0.1})
        services.alias_set(model="digits", name="champion", number=1, now=version.created_at, actor="x")
        assert api(Scope.READ).get("/api/v1/models/digits/versions/1").json() == {
            "model": "digits",
            "number": 1,
            "digest": version.digest,
            "status": "READY",
            "reason": "",
            "platform": "onnxruntime_onnx",
            "signature": signature,
            "profile": {"load_seconds": 0.1},
            "size_bytes": 3,
            "source_name": "model.onnx",
            "description": "",
            "tags": {},
            "lineage": {
                "source_commit": "",
                "run_url": "",
                "data_reference": "",
                "source_uri": "",
                "built_from": "",
                "accelerator": "",
                "products": [],
                "parameters": {},
            },
            "compatible_with": None,
            "approval": {"state": "unreviewed", "by": None, "at": None, "comment": ""},
            "aliases": ["champion"],
            "created_at": "2026-01-01T12:00:00Z",
            "created_by": "alice",
        }

    def test_the_newest_is_first(self, api: Api, register: Register) -> None:
        for content in ("one", "two", "three"):
            register(content=content)
        client = api(Scope.READ)
        first = client.get("/api/v1/models/digits/versions?limit=2").json()
        second = client.get(first["next"]).json()
        assert [v["number"] for page in (first, second) for v in page["results"]] == [3, 2, 1]

    def test_delete(self, api: Api, register: Register) -> None:
        register()
        client = api(Scope.WRITE)
        assert client.delete("/api/v1/models/digits/versions/1").status_code == 204
        answer = client.get("/api/v1/models/digits/versions/1")
        assert answer.status_code == 404
        assert answer.json()["error"]["message"] == "model 'digits' has no version 1; its newest number is 1"

    @pytest.mark.parametrize("address", ["models/none/versions", "models/none/versions/1", "models/none/aliases"])
    def test_of_an_unknown_model(self, api: Api, address: str) -> None:
        answer = api(Scope.READ).get(f"/api/v1/{address}")
        assert answer.status_code == 404
        assert "there is no model 'none'" in answer.json()["error"]["message"]


class TestAliases:
    def test_set_move_list_delete(self, api: Api, register: Register) -> None:
        register(content="one")
        register(content="two")
        client, address = api(Scope.WRITE), "/api/v1/models/digits/aliases/champion"
        made = client.put(address, {"version": 1})
        assert (made.status_code, made.json()["name"], made.json()["version"]) == (201, "champion", 1)
        moved = client.put(address, {"version": 2})
        assert (moved.status_code, moved.json()["version"]) == (200, 2)
        assert client.get("/api/v1/models/digits/aliases").json()["results"] == [moved.json()]
        assert client.get("/api/v1/models/digits").json()["aliases"] == [moved.json()]
        assert client.delete(address).status_code == 204
        answer = client.delete(address)
        assert answer.status_code == 404
        assert answer.json()["error"]["message"] == "model 'digits' has no alias 'champion'; it has no aliases"

    @pytest.mark.parametrize(
        ("body", "status", "field"),
        [
            ({}, 400, "version"),
            ({"version": 0}, 400, "version"),
            ({"version": "x"}, 400, "version"),
            ({"version": 10**30}, 400, "version"),
            ({"version": 7}, 404, None),
            (["x"], 400, None),
        ],
    )
    def test_a_wrong_target_is_refused(
        self, api: Api, register: Register, body: object, status: int, field: str | None
    ) -> None:
        register()
        answer = api(Scope.WRITE).put("/api/v1/models/digits/aliases/champion", body)
        assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)

    def test_a_wrong_name_is_refused(self, api: Api, register: Register) -> None:
        register()
        answer = api(Scope.WRITE).put("/api/v1/models/digits/aliases/7", {"version": 1})
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "alias")


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("post", "models"),
        ("delete", "models/digits"),
        ("post", "models/digits/versions?filename=model.onnx"),
        ("delete", "models/digits/versions/1"),
        ("put", "models/digits/aliases/champion"),
        ("delete", "models/digits/aliases/champion"),
    ],
)
def test_a_reader_changes_nothing(api: Api, register: Register, method: str, address: str) -> None:
    register()
    answer = getattr(api(Scope.READ), method)(f"/api/v1/{address}", {})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "not_permitted"
    assert ModelVersion.objects.count() == 1


@pytest.mark.parametrize(
    "address",
    ["models", "models/digits", "models/digits/versions", "models/digits/versions/1", "models/digits/aliases"],
)
def test_nobody_reads_without_a_token(api: Api, address: str) -> None:
    assert api(None).get(f"/api/v1/{address}").status_code == 401


@pytest.mark.parametrize(
    ("address", "queries"),
    [
        # One for the token and one for its roles each, one for the model where the list is under one.
        pytest.param("models", 5, id="models, their aliases and those's versions"),
        pytest.param("models/m0/versions", 5, id="versions and their aliases"),
        pytest.param("models/m0/aliases", 4, id="aliases"),
    ],
)
def test_a_list_asks_the_database_as_often_for_many_as_for_one(
    api: Api, register: Register, django_assert_max_num_queries: AtMost, address: str, queries: int
) -> None:
    for number in range(12):
        version = register(f"m{number}")
        register("m0", f"more-{number}")
        services.alias_set(
            model=f"m{number}", name="champion", number=version.number, now=version.created_at, actor="x"
        )
        services.alias_set(model="m0", name=f"a{number}", number=1 + number, now=version.created_at, actor="x")
    client = api(Scope.READ)
    client.get("/api/v1/whoami")  # notes the use of the token
    with django_assert_max_num_queries(queries):
        results = client.get(f"/api/v1/{address}").json()["results"]
    assert len(results) >= 12
    assert RegisteredModel.objects.count() == 12


def test_a_rejected_version_is_checked_again(api: Api, register: Register) -> None:
    register(status=Status.REJECTED)
    address = "/api/v1/models/digits/versions/1/recheck"
    assert api(Scope.READ).post(address).status_code == 403
    answer = api(Scope.WRITE).post(address)
    assert (answer.status_code, answer.json()["status"]) == (202, "PENDING")
    assert api(Scope.WRITE).post(address).status_code == 409
