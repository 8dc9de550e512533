from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits/recordings"
BODY = {"consent": "The team of the app agreed in writing, for trying version 2."}


def test_start_show_stop_delete(platform: Platform, api: Api) -> None:
    platform.live()
    admin = api(Scope.ADMIN)
    started = admin.post(URL, {**BODY, "share_percent": 25, "max_requests": 100, "retention": "48h"})
    assert started.status_code == 201, started.json()
    shown = started.json()
    assert (shown["share_percent"], shown["max_requests"], shown["ended_at"]) == (25, 100, None)
    assert (shown["consent"], shown["created_by"]) == (BODY["consent"], "alice (token alice-admin)")
    one = f"{URL}/{shown['id']}"
    assert api(Scope.READ).get(URL).json()["results"] == [shown] == [api(Scope.READ).get(one).json()]
    assert admin.post(f"{one}/stop").json()["end_reason"] == "alice (token alice-admin) stopped it"
    assert admin.delete(one).status_code == 204
    assert admin.get(one).status_code == 404
    actions = AuditEntry.objects.filter(action__startswith="recording.").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["recording.start", "recording.stop", "recording.delete"]
    assert AuditEntry.objects.get(action="recording.start").after["consent"] == BODY["consent"]


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE])
def test_who_is_no_admin_may_not_begin_or_end_one(platform: Platform, api: Api, scope: Scope) -> None:
    platform.live()
    number = api(Scope.ADMIN).post(URL, BODY).json()["id"]
    caller = api(scope)
    assert caller.post(URL, BODY).status_code == 403
    assert caller.post(f"{URL}/{number}/stop").status_code == 403
    assert caller.delete(f"{URL}/{number}").status_code == 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({}, "consent", id="no consent"),
        pytest.param({"consent": "yes"}, "consent", id="no sentence"),
        pytest.param({**BODY, "share": 5}, "share", id="misspelt"),
        pytest.param({**BODY, "share_percent": 0}, "share_percent", id="nothing"),
        pytest.param({**BODY, "retention": "7 days"}, "retention", id="no duration"),
        pytest.param({**BODY, "retention": "9000h"}, "retention", id="too long"),
    ],
)
def test_what_cannot_be_recorded_is_refused_by_its_field(
    platform: Platform, api: Api, body: dict[str, object], field: str
) -> None:
    platform.live()
    answer = api(Scope.ADMIN).post(URL, body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)


def test_the_number_of_queries_does_not_depend_on_how_many_there_are(platform: Platform, api: Api) -> None:
    platform.live()
    admin, reader = api(Scope.ADMIN), api(Scope.READ)
    reader.get(URL)  # the token's first use is noted
    counts = []
    for _ in range(2):
        number = admin.post(URL, BODY).json()["id"]
        admin.post(f"{URL}/{number}/stop")
        with CaptureQueriesContext(connection) as counted:
            assert reader.get(URL).status_code == 200
        counts.append(len(counted))
    assert counts[0] == counts[1]
