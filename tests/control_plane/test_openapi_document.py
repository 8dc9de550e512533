"""`/api/v1/schema/`: one document per process, with an ETag and a compressed variant."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from control_plane import openapi_document

ADDRESS = "/api/v1/schema/"


@pytest.fixture(autouse=True)
def _of_a_new_process() -> None:
    openapi_document._made.clear()
    openapi_document._schema.cache_clear()


def test_it_is_what_the_generator_makes() -> None:
    made = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    answer = Client().get(ADDRESS)
    assert answer.headers["Content-Type"] == "application/vnd.oai.openapi; charset=utf-8"
    assert yaml.safe_load(answer.content) == json.loads(json.dumps(made, default=str))
    assert Client().get(ADDRESS, {"format": "json"}).json() == Client().get(ADDRESS, {"format": "json"}).json()


def test_formats_are_those_of_accept_and_of_the_address() -> None:
    accepted = Client().get(ADDRESS, headers={"Accept": "application/json"})
    assert (accepted.headers["Content-Type"], accepted.json()["openapi"][:2]) == ("application/json", "3.")
    named = Client().get(ADDRESS, {"format": "json"})
    assert named.headers["Content-Type"] == "application/vnd.oai.openapi+json"
    assert named.headers["Content-Disposition"] == 'inline; filename="Fairlead.json"'
    assert Client().get(ADDRESS, headers={"Accept": "image/png"}).status_code == 406


def test_the_compressed_variant_is_the_same_document_with_an_etag_of_its_own() -> None:
    plain = Client().get(ADDRESS)
    small = Client().get(ADDRESS, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert small.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(small.content) == plain.content
    assert small.headers["ETag"] != plain.headers["ETag"]
    assert len(small.content) * 5 < len(plain.content)
    assert "Content-Encoding" not in Client().get(ADDRESS, headers={"Accept-Encoding": "gzip;q=0"}).headers


def test_a_client_that_has_it_gets_304() -> None:
    etag = Client().get(ADDRESS).headers["ETag"]
    again = Client().get(ADDRESS, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag)
    assert Client().get(ADDRESS, headers={"If-None-Match": '"another"'}).status_code == 200


def test_the_generator_runs_once_however_many_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    generate = SchemaGenerator.get_schema

    def counted(self: SchemaGenerator, *args: object, **kwargs: object) -> object:
        runs.append(1)
        return generate(self, *args, **kwargs)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: Client().get(ADDRESS).status_code, range(16)))
    assert (answers, len(runs)) == ([200] * 16, 1)
