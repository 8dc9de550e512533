from collections.abc import Sequence
from typing import Any

from common.errors import Unavailable
from deployments.models import Rollout
from deployments.services import rollout_plan
from deployments.views.shapes import AnalysisPlan
from integrations.clusters.base import Sample
from tests.deployments._support.platform import Platform


def _plan(platform: Platform, look: Any) -> AnalysisPlan:
    platform.live()
    platform.version(2)
    wish = {"namespace": "default", "name": "digits", "version": "2", "policy": None, "actor": "alice"}
    plan = rollout_plan(**wish, now=platform.clock(), look=look).plan.analysis
    assert plan is not None
    assert not Rollout.objects.exists()
    return plan


def test_a_plan_is_made_of_what_stable_was_seen_to_do(platform: Platform) -> None:
    def look(namespace: str, name: str) -> Sequence[Sample]:
        assert (namespace, name) == ("default", "digits")
        since = platform.clock().timestamp() - 100
        return [Sample("gateway", "digits-00001", since, 3000, client_errors=60, server_errors=6)]

    plan = _plan(platform, look)
    assert plan.requests_per_second == 30
    assert plan.traffic == (
        "clients sent 30 requests a second over the last 100 s; 0.2 % of stable's failed, 2 % were refused"
    )
    assert plan.steps[0].detections[0].seconds is not None


def test_a_plan_without_metrics_says_why_it_knows_no_traffic(platform: Platform) -> None:
    def look(_namespace: str, _name: str) -> Sequence[Sample]:
        raise Unavailable("the metrics at http://127.0.0.1:1 cannot be read")

    plan = _plan(platform, look)
    assert "not known (the metrics at http://127.0.0.1:1 cannot be read)" in plan.traffic
    assert plan.steps[0].detections[0].requests is not None
