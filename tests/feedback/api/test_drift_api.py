"""The API of drift: shapes, and the present as the new reference."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from tests.deployments._support.platform import Platform
from tests.feedback._support.watched import OF_CLASS, OF_MEAN, OFTEN_3, STABLE, Watched

Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits/feedback/drift"


@pytest.fixture
def watched(platform: Platform) -> Watched:
    return Watched(platform)


def test_shapes_are_shown_from_the_first_values_on(watched: Watched, api: Api) -> None:
    reader = api(Scope.READ)
    assert reader.get(URL).json() == {"features": []}
    watched.feed()
    assert {each["state"] for each in reader.get(URL).json()["features"]} == {"first values"}
    watched.feed(minutes=8)
    found = {each["name"]: each for each in reader.get(URL).json()["features"]}
    assert found[OF_CLASS]["state"] == "learning"
    assert found[OF_CLASS]["rows"] == 4 * 120
    assert [each["words"] for each in found[OF_CLASS]["bins"]][-1] == "other classes"
    assert sum(each["reference_percent"] for each in found[OF_MEAN]["bins"]) == pytest.approx(100, abs=0.1)


def test_what_has_drifted_comes_first_and_may_be_accepted(watched: Watched, api: Api) -> None:
    watched.learn()
    watched.feed(shares=OFTEN_3, minutes=12)
    first, *others = api(Scope.READ).get(URL).json()["features"]
    assert (first["name"], first["state"], first["evidence_percent"]) == (OF_CLASS, "drifted", 100.0)
    assert first["sentence"].startswith(f"the share of class 3 in answers of {STABLE} is ")
    assert {each["state"] for each in others} == {"watched"}
    assert api(Scope.READ).post(f"{URL}/accept").status_code == 403
    accepted = api(Scope.WRITE).post(f"{URL}/accept")
    assert accepted.status_code == 200, accepted.json()
    found = {each["name"]: each for each in accepted.json()["features"]}[OF_CLASS]
    (often,) = (each for each in found["bins"] if each["words"] == "class 3")
    assert found["state"] == "watched"
    assert often["reference_percent"] == pytest.approx(44, abs=6)
    assert "DataDriftAccepted" in watched.platform.events()
    assert AuditEntry.objects.get(action="drift.accept").after == {"features": [OF_CLASS]}
    watched.feed(shares=OFTEN_3, minutes=20)
    assert watched.row().alarm_at is None


def test_features_that_are_not_there_and_too_few_rows_are_refused(watched: Watched, api: Api) -> None:
    writer = api(Scope.WRITE)
    assert writer.post(f"{URL}/accept").status_code == 409
    watched.feed(minutes=7)
    missing = writer.post(f"{URL}/accept", {"features": ["weight of image"]})
    assert missing.status_code == 404
    assert "GET feedback/drift lists" in missing.json()["error"]["message"]
    few = writer.post(f"{URL}/accept", {"features": [OF_CLASS]})
    assert few.status_code == 409
    watched.feed(minutes=4)
    assert writer.post(f"{URL}/accept", {"features": [OF_CLASS]}).status_code == 200
    assert watched.state()["reference"] is not None
