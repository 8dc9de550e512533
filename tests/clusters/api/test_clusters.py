from collections.abc import Callable

from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from clusters.services.cluster_selection import cluster_default
from deployments.reconcile.restarts import note_components
from integrations.clusters.base import Component, Nodes
from integrations.machine.limits import Limit
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]


def test_a_restarted_part_of_a_cluster_is_shown_and_told_about(platform: Platform, api: Api) -> None:
    cluster = cluster_default(now=platform.clock())
    gateway = Component("gateway", ready=True, restarts=1, message="its last process ended by SIGKILL")
    web = Component("web", ready=False)
    note_components(cluster_id=cluster.pk, nodes=Nodes((web, gateway)), now=platform.clock())
    client = api(Scope.READ)

    [shown] = client.get("/api/v1/clusters").json()["results"]
    assert (shown["name"], shown["kind"]) == ("local", "local")
    assert shown["components"] == [
        {"name": "gateway", "ready": True, "restarts": 1, "message": "its last process ended by SIGKILL"},
        {"name": "web", "ready": False, "restarts": 0, "message": ""},
    ]
    [event] = client.get("/api/v1/clusters/local/events").json()["results"]
    assert (event["seq"], event["kind"], event["revision"], event["rollout"]) == (1, "ComponentRestarted", None, None)
    assert event["message"].startswith("gateway ended by itself and was started again (restart 1)")


def test_a_limit_of_the_machine_that_comes_close_is_shown_and_one_event(platform: Platform, api: Api) -> None:
    cluster, client = cluster_default(now=platform.clock()), api(Scope.READ)
    for used in (10, 900, 850, 960, 10):
        limit = Limit("processes", used, 1000, "this machine", "no replica can be started", "end some")
        note_components(cluster_id=cluster.pk, nodes=Nodes(limits=(limit, Limit("memory"))), now=platform.clock())
        [shown] = client.get("/api/v1/clusters").json()["results"]
        assert [(row["level"], row["used"]) for row in shown["limits"]] == [(limit.level, used), ("unknown", None)]
        assert shown["limits"][0]["message"] == limit.sentence
        assert set(shown["limits"][0]) == {"name", "whose", "used", "most", "level", "message"}

    told = client.get("/api/v1/clusters/local/events").json()["results"]
    assert [(event["kind"], event["message"].partition(";")[0]) for event in told] == [
        ("LimitClose", "this machine uses 960 of 1,000 processes"),
        ("LimitClose", "this machine uses 900 of 1,000 processes"),
    ]


def test_the_events_of_an_unknown_cluster(db: None, api: Api) -> None:
    answer = api(Scope.READ).get("/api/v1/clusters/nowhere/events")
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, "there is no cluster 'nowhere'")
