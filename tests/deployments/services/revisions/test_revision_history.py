"""Which revisions are remembered, and that versions go which only ended ones name."""

from typing import Any

import pytest

from common.errors import Conflict, InvalidInput
from deployments.domain.phases import Phase
from deployments.domain.service_file import parse_service
from deployments.models import Revision, Rollout
from deployments.services.revisions.revision_history import revisions_forget, surplus
from events.models import Event
from registry.hooks import uses_of
from registry.models import ModelVersion
from registry.services import version_delete
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.django_db


def names() -> list[str]:
    return list(Revision.objects.order_by("number").values_list("name", flat=True))


def fail(platform: Platform, number: int) -> None:
    """Roll a version out that can never start."""
    platform.version(number)
    name = f"digits-{number:05}"
    platform.cluster.broken[name] = "no such operator"
    platform.cluster.refused.add(name)
    platform.start(str(number))
    platform.until(lambda: platform.rollout().phase == Phase.DEGRADED)
    platform.until(lambda: Revision.objects.get(name=name).stopped_at is not None)


def put_limit(limit: int) -> None:
    service = Revision.objects.select_related("service").earliest("number").service
    service.document = {**service.document, "spec": {**service.document["spec"], "revisionHistoryLimit": limit}}
    service.save(update_fields=["document"])


@pytest.mark.parametrize(
    ("limit", "needed", "gone"),
    [
        pytest.param(10, [], [], id="fewer than the limit"),
        pytest.param(2, [], [3, 2, 1], id="the oldest go"),
        pytest.param(2, [2], [3, 1], id="but for those that are needed"),
        pytest.param(0, [5], [4, 3, 2, 1], id="none is to stay"),
    ],
)
def test_surplus(limit: int, needed: list[int], gone: list[int]) -> None:
    assert surplus([5, 4, 3, 2, 1], limit=limit, needed=needed) == gone


def test_failed_revisions_beyond_the_limit_are_forgotten_and_the_way_back_stays(platform: Platform) -> None:
    platform.live()
    platform.promoted(2)
    platform.until(lambda: Revision.objects.get(name="digits-00001").stopped_at is not None)
    for number in (3, 4, 5):
        fail(platform, number)
    assert revisions_forget(now=platform.clock()) == 0, "ten stay"
    put_limit(1)
    assert revisions_forget(now=platform.clock()) == 2
    assert names() == ["digits-00001", "digits-00002", "digits-00005"]
    told = Event.objects.get(kind="RevisionForgotten").message
    assert told.startswith("digits-00003, digits-00004 and the rollouts to and from them are forgotten: ")
    platform.turn()
    back = platform.back()
    assert back.to_revision.name == "digits-00001"


def test_a_version_that_only_a_failed_revision_names_can_be_deleted(platform: Platform) -> None:
    platform.live()
    fail(platform, 2)
    version = ModelVersion.objects.get(number=2)
    with pytest.raises(Conflict, match="its service file"):
        version_delete(model="digits", number=2, now=platform.clock(), actor="test")
    platform.apply()  # the file names version 1 again
    platform.turn()
    [use] = uses_of([version.pk])
    assert (use.is_history, "revision digits-00002, failed" in use.phrase) == (True, True)
    version_delete(model="digits", number=2, now=platform.clock(), actor="test")
    assert names() == ["digits-00001"]
    assert not Rollout.objects.exists()
    platform.turn()
    assert platform.view().phase == "Ready"


def test_a_version_that_is_live_cannot_be_deleted(platform: Platform) -> None:
    platform.live()
    with pytest.raises(Conflict, match="revision digits-00001, stable"):
        version_delete(model="digits", number=1, now=platform.clock(), actor="test")


def test_without_a_limit_in_the_file_ten_stay_and_all_that_an_earlier_release_made(platform: Platform) -> None:
    platform.live()
    for number in range(2, 14):
        fail(platform, number)
    Revision.objects.filter(name="digits-00002").update(egress=None)
    assert revisions_forget(now=platform.clock()) == 1
    assert "digits-00003" not in names()
    assert "digits-00002" in names()


@pytest.mark.parametrize(("said", "limit"), [({}, None), ({"revisionHistoryLimit": 0}, 0)])
def test_the_service_file_says_the_limit(platform: Platform, said: dict[str, Any], limit: int | None) -> None:
    document = platform.document()
    document["spec"] |= said
    assert parse_service(document).revision_history_limit == limit


@pytest.mark.parametrize("limit", [-1, "many", 1001])
def test_a_limit_that_is_none_is_refused(platform: Platform, limit: object) -> None:
    document = platform.document()
    document["spec"]["revisionHistoryLimit"] = limit
    with pytest.raises(InvalidInput) as refused:
        parse_service(document)
    assert refused.value.field == "spec.revisionHistoryLimit"
