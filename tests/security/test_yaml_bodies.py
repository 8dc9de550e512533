"""Bodies of YAML: a few bytes of it can say more than memory holds, take minutes, or name code to run."""

import time
from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from common.files.yaml_text import MAX_VALUES
from registry.models import RegisteredModel

pytestmark = pytest.mark.django_db

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
BOMBS = [
    pytest.param(LAUGHS, "references (*) are not taken here", id="a billion laughs"),
    pytest.param("a: &a [*a]", "references (*) are not taken here", id="an endless list"),
    pytest.param("a: &a {b: 1}\nc: {<<: *a}", "references (*) are not taken here", id="a merge"),
    pytest.param("a: " + "[" * 100_000, "nested more than 64 deep", id="deep lists"),
    pytest.param("? " * 100_000, "nested more than 64 deep", id="deep names"),
    pytest.param("- a\n" * (MAX_VALUES + 1), "more than 20,000 values; of JSON more are taken", id="many values"),
    pytest.param("[" + "a," * 1_000_000 + "]", "more than 20,000 values", id="as many values as a body holds"),
    pytest.param("a: 1" + ":1" * 1_000_000, "the number is too large", id="a number in base 60"),
    pytest.param("a: 0x" + "f" * 1_000_000, "the number is too large", id="a number in base 16"),
    pytest.param("a: !!float " + "1:" * 500_000 + "1", "the number is too large", id="a fraction in base 60"),
]
CODE = [
    "!!python/object/apply:os.system [touch /tmp/fairlead-yaml-attack]",
    "!!python/object/new:subprocess.Popen [[id]]",
    "!!python/name:os.system",
    "!!python/module:os",
    "!!python/tuple [1]",
    "!!binary aWQ=",
    "!!set {a}",
    "!!omap [{a: 1}]",
    "!!pairs [{a: 1}]",
]


def posted(client: APIClient, body: str | bytes) -> tuple[int, str]:
    answer = client.post("/api/v1/models", body, content_type="application/yaml")
    return answer.status_code, answer.json().get("error", {}).get("message", "")


@pytest.mark.parametrize(("bomb", "sentence"), BOMBS)
def test_a_bomb_is_refused_in_a_sentence_soon(api: Callable[..., APIClient], bomb: str, sentence: str) -> None:
    began_s = time.process_time()
    status, said = posted(api(Scope.ADMIN), bomb)
    assert (status, sentence in said) == (400, True), said
    assert time.process_time() - began_s < 5
    assert len(said) < 200


@pytest.mark.parametrize("value", CODE)
def test_tags_make_no_objects(api: Callable[..., APIClient], value: str) -> None:
    status, said = posted(api(Scope.ADMIN), f"name: {value}")
    assert (status, said.startswith("the body is no YAML that is taken: line 1: ")) == (400, True), said


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("1: a\nname: b", id="a number as a field's name"),
        pytest.param("~: a\nname: b", id="nothing as a field's name"),
        pytest.param("[a]: b", id="a list as a field's name"),
        pytest.param('name: "\\0"', id="a zero byte"),
        pytest.param('name: "\\ud800"', id="half a surrogate pair"),
        pytest.param(b"\xff\xfe\x00", id="no UTF-8"),
        pytest.param("- a", id="a list"),
        pytest.param("a", id="a text"),
        pytest.param("%YAML 9.9\n---\na: 1", id="another YAML"),
    ],
)
def test_what_json_could_not_say_is_refused(api: Callable[..., APIClient], body: str | bytes) -> None:
    assert posted(api(Scope.ADMIN), body)[0] == 400
    assert not RegisteredModel.objects.exists()


def test_what_is_taken_is_the_same_as_of_json(api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    assert posted(client, "# by hand\nname: digits\ndescription: |\n  Written by hand.\n") == (201, "")
    assert posted(client, "name: [digits]")[0] == 400
    assert client.get("/api/v1/models/digits").json()["description"] == "Written by hand."
