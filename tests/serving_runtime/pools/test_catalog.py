"""Documents of the catalog, and names in a pool."""

import json
from pathlib import Path
from typing import Any

import pytest

from serving_runtime.common.errors import ModelError
from serving_runtime.pools import catalog, names
from serving_runtime.pools.names import ServiceName, VersionKey

DIGEST = "sha256:" + "a" * 64
SOUND: dict[str, Any] = {
    "schema": 1,
    "default": 3,
    "pinned": True,
    "versions": {"2": {"digest": DIGEST, "origin": "/models/a"}, "3": {"digest": DIGEST, "origin": "s3://b/c"}},
}


def test_a_document_has_versions_and_a_default() -> None:
    found = catalog.parse(json.dumps({**SOUND, "later": 1}).encode(), "a.b")
    assert (found.default, found.pinned, sorted(found.versions)) == (3, True, [2, 3])
    assert found.versions[3].origin == "s3://b/c"


def test_what_would_be_loaded_has_an_identity() -> None:
    plain = catalog.Version(DIGEST, "/a")
    assert plain.identity == catalog.Version(DIGEST, "/b").identity
    assert plain.identity != catalog.Version(DIGEST, "/a", {"max_batch_size": 4}).identity


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"schema": 2}, "has schema '2', this fetcher reads schema 1", id="another schema"),
        pytest.param({"default": 4}, "'default' is '4', which is not one of its versions", id="an absent default"),
        pytest.param({"default": True}, "'default' is 'True'", id="a default that is no number"),
        pytest.param({"pinned": 1}, "'pinned' must be true or false", id="pinned is a number"),
        pytest.param({"versions": {}}, "must be an object of 1 to 256 versions", id="no versions"),
        pytest.param({"versions": {"0": {}}}, "'0' is no version number", id="version 0"),
        pytest.param({"versions": {"3": 1}}, "version 3: it must be an object", id="no object"),
        pytest.param({"versions": {"3": {"digest": "md5:1", "origin": "/"}}}, "'digest' is 'md5:1'", id="a digest"),
        pytest.param({"versions": {"3": {"digest": DIGEST, "origin": "/a\0b"}}}, "'origin' must be", id="an origin"),
        pytest.param({"versions": {"3": {"digest": DIGEST, "origin": "/a", "config": []}}}, "'config'", id="a config"),
    ],
)
def test_an_unusable_document_is_refused_with_its_member(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=r"the catalog's document of 'a\.b'") as error:
        catalog.parse(json.dumps({**SOUND, **changed}).encode(), "a.b")
    assert said in str(error.value)


def test_one_model_is_looked_up_by_its_name(tmp_path: Path) -> None:
    file = catalog.place(tmp_path, "a.b")
    assert catalog.find(tmp_path, "a.b") is None
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(SOUND))
    found = catalog.find(tmp_path, "a.b")
    assert found is not None
    assert found.default == 3
    assert len(file.parent.name) == 2
    file.write_bytes(b" " * (catalog.MAX_BYTES + 1))
    with pytest.raises(ModelError, match="write a smaller one"):
        catalog.find(tmp_path, "a.b")


def test_names_of_a_pool() -> None:
    assert names.mounted(b"/serving/ns/svc/v2/models/svc/infer") == (ServiceName("ns", "svc"), b"/v2/models/svc/infer")
    assert names.mounted(b"/serving/ns/svc") == (ServiceName("ns", "svc"), b"")
    assert names.mounted(b"/serving/ns/a.b/v2") is None
    assert names.mounted(b"/v2/models/svc/infer") is None
    assert names.service_in(b"ns/svc") == ServiceName("ns", "svc")
    assert names.service_in(b"ns/svc/x") is None
    assert names.key_of("ns.svc@3") == VersionKey("ns.svc", 3)
    assert [names.key_of(text) for text in ("ns.svc", "ns.svc@0", "svc@3", "ns.svc@3@4", "ns.svc@+3")] == [None] * 5
    assert VersionKey("ns.svc", 3).service == "svc"
