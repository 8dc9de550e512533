"""An event and the log line of it name the request behind it, also where the reconciler acts long after the answer."""

import logging

import pytest

from common.http import request_id
from deployments.domain.phases import Phase
from deployments.services import rollout_abort
from events.models import Event
from tests.deployments._support.platform import Platform


def by_request(kind: str) -> list[str]:
    """Return the requests that the events of a kind name, in order."""
    return list(Event.objects.filter(kind=kind).order_by("seq").values_list("request_id", flat=True))


@pytest.fixture
def served(platform: Platform) -> Platform:
    """A service that was applied by `order-1`; the reconciler's turns are part of no request."""
    platform.version(1)
    platform.policy()
    with request_id.acting_for("order-1"):
        platform.apply()
    platform.until(lambda: platform.view().phase == "Ready")
    platform.version(2)
    return platform


def test_what_the_reconciler_does_for_a_wish_names_its_request(served: Platform) -> None:
    with request_id.acting_for("order-2"):
        served.start()
    for _ in range(30):
        served.traffic()
        served.turn()
    assert served.rollout().phase == Phase.HEALTHY
    assert {
        kind: by_request(kind) for kind in ("ServiceReady", "RolloutStarted", "RolloutHealthy", "RevisionStopped")
    } == {
        "ServiceReady": ["order-1"],
        "RolloutStarted": ["order-2"],
        "RolloutHealthy": ["order-2"],
        "RevisionStopped": ["order-2"],
    }


def test_a_later_wish_about_the_same_rollout_is_the_one_that_counts(served: Platform) -> None:
    with request_id.acting_for("order-2"):
        served.start()
    served.until(lambda: served.rollout().confirmed_at is not None)
    with request_id.acting_for("order-3"):
        rollout_abort(rollout_id=served.rollout().pk, actor="alice", now=served.clock())
    served.until(lambda: served.cluster.weights().get("digits-00002") is None)
    assert (by_request("RolloutStarted"), by_request("RolloutAborted")) == (["order-2"], ["order-3"])
    assert set(by_request("RevisionStopped")) == {"order-3"}


def test_what_happens_by_itself_names_none(served: Platform) -> None:
    served.cluster.crash("digits-00001")
    served.turn()
    assert by_request("ReplicaRestarted") == [""]


def test_a_hint_of_another_request_claims_nothing(served: Platform) -> None:
    with request_id.acting_for("order-2"):
        served.start()
    with request_id.acting_for("order-3"):
        served.turn()
        served.turn()
    assert "order-3" not in Event.objects.values_list("request_id", flat=True)


def test_a_moved_alias_is_no_request_of_the_services(platform: Platform) -> None:
    platform.alias(platform.version(1))
    platform.policy()
    with request_id.acting_for("order-1"):
        platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.alias(platform.version(2))
    platform.until(lambda: by_request("RolloutStarted"))
    assert by_request("RolloutStarted") == [""]


def test_each_event_is_a_line_of_the_log_with_the_id(
    served: Platform, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: object
) -> None:
    caplog.set_level(logging.INFO, "deployments.reconcile.service_change")
    with request_id.acting_for("order-2"), django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        served.start()
    served.cluster.crash("digits-00001")
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        served.turn()
    lines = [(record.request_id, record.getMessage()) for record in caplog.records]  # type: ignore[attr-defined]
    assert any(by == "order-2" and said.startswith("default/digits: RolloutStarted: ") for by, said in lines)
    assert any(by == "-" and said.startswith("default/digits: ReplicaRestarted: ") for by, said in lines)
