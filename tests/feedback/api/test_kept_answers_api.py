from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from deployments.models import InferenceService
from events.models import Event
from tests.deployments._support.platform import Platform
from tests.feedback._support.keeping import Keeping

Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits/feedback/answers"
DEFAULTS = {
    "service": "default/digits",
    "active": True,
    "share_percent": 100.0,
    "days": 30,
    "max_rows": 1_000_000,
    "max_bytes": 2**30,
    "output": "",
    "outputs": [],
    "keeps_inputs": False,
    "parameters": [],
    "rows": 0,
    "bytes": 0,
    "left_out": 0,
    "problem": "",
    "created_by": "alice (token alice-write)",
}


def test_keep_show_change_stop(platform: Platform, api: Api) -> None:
    platform.live()
    writer, reader = api(Scope.WRITE), api(Scope.READ)
    nothing = reader.get(URL)
    assert (nothing.status_code, nothing.json()["error"]["message"]) == (
        404,
        "no answers of service default/digits are kept; PUT feedback/answers, or `fairlead feedback keep`",
    )
    started = writer.put(URL, {})
    assert (started.status_code, {**started.json(), **DEFAULTS}) == (200, started.json())
    assert reader.get(URL).json() == started.json()
    changed = writer.put(URL, {"share_percent": 5, "outputs": ["label"], "parameters": ["site"]}).json()
    assert (changed["share_percent"], changed["outputs"], changed["parameters"]) == (5, ["label"], ["site"])
    assert changed["created_at"] == started.json()["created_at"]
    assert InferenceService.objects.get().kept_percent == 5
    assert writer.delete(URL).status_code == 204
    assert writer.delete(URL).status_code == 204
    assert reader.get(URL).json() == {**changed, "active": False}
    assert InferenceService.objects.get().kept_percent == 0
    entries = AuditEntry.objects.filter(action__startswith="answers.").order_by("id")
    assert [each.action for each in entries] == ["answers.keep", "answers.keep", "answers.stop"]
    before, after = entries.values_list("before__share_percent", "after__share_percent")[1]
    assert (before, after) == (100, 5)
    kinds = Event.objects.filter(kind__startswith="Answers").order_by("seq").values_list("kind", "message")
    assert list(kinds) == [
        (
            "AnswersKept",
            f"alice (token alice-write) has answers to {share} % of the requests to default/digits kept for feedback, "
            "for 30 days and at most 1000000 of them",
        )
        for share in (100, 5)
    ] + [("AnswersStopped", "alice (token alice-write) has no further answers of default/digits kept")]


def test_the_same_order_again_changes_nothing(platform: Platform, api: Api) -> None:
    platform.live()
    writer = api(Scope.WRITE)
    first = writer.put(URL, {"outputs": ["label"]}).json()
    changes = InferenceService.objects.get().changes
    assert writer.put(URL, {"outputs": ["label"]}).json() == first
    assert InferenceService.objects.get().changes == changes
    assert AuditEntry.objects.filter(action="answers.keep").count() == 1


def test_a_limit_that_is_reached_is_said(platform: Platform, api: Api) -> None:
    keeping = Keeping(platform, max_rows=1)
    keeping.answer("a", "b")
    shown = api(Scope.READ).get(URL).json()
    assert (shown["rows"], shown["left_out"]) == (1, 1)
    assert shown["problem"] == (
        "the limit of 1 answers is reached, so that further ones are left out, 1 so far; raise it, or keep a smaller "
        "share or fewer days"
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"share": 5}, "share"),
        ({"share_percent": 0}, "share_percent"),
        ({"share_percent": 101}, "share_percent"),
        ({"share_percent": "nan"}, "share_percent"),
        ({"days": 0}, "days"),
        ({"days": 401}, "days"),
        ({"max_rows": 0}, "max_rows"),
        ({"max_rows": 10_000_001}, "max_rows"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"max_bytes": 101 * 2**30}, "max_bytes"),
        ({"output": "nothing"}, "output"),
        ({"output": "a\0b"}, "output"),
        ({"output": "a" * 201}, "output"),
        ({"outputs": ["label", "nothing"]}, "outputs"),
        ({"outputs": ["label", "label"]}, "outputs"),
        ({"outputs": [f"o{number}" for number in range(11)]}, "outputs"),
        ({"outputs": "label"}, "outputs"),
        ({"parameters": [f"p{number}" for number in range(6)]}, "parameters"),
        ({"parameters": [""]}, "parameters"),
        ({"parameters": ["a\nb"]}, "parameters"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_field(
    platform: Platform, api: Api, body: dict[str, Any], field: str
) -> None:
    platform.live()
    answer = api(Scope.WRITE).put(URL, body)
    assert answer.status_code == 400, answer.json()
    assert answer.json()["error"]["field"].startswith(field)


def test_an_output_that_the_model_does_not_have_is_named(platform: Platform, api: Api) -> None:
    platform.live()
    message = api(Scope.WRITE).put(URL, {"output": "score"}).json()["error"]["message"]
    assert message == "output names 'score', and digits version 1 has the outputs label; name one of them"


def test_an_unknown_signature_refuses_no_output(platform: Platform, api: Api) -> None:
    platform.version(1, signature={})
    platform.policy()
    platform.apply()
    assert api(Scope.WRITE).put(URL, {"output": "score"}).status_code == 200
