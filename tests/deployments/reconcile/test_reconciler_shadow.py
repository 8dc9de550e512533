"""A shadow rollout through the whole loop, on the database with a fake outside."""

import pytest

from deployments.domain.phases import Phase
from deployments.models import AnalysisRun, Revision
from deployments.services import rollout_abort, rollout_promote
from tests.deployments._support.platform import Platform

STEPS = [
    {"weight": 20, "hold": "4s", "analysis": {"minRequests": 100}},
    {"weight": 100, "hold": "4s", "analysis": {"minRequests": 100}},
]


@pytest.fixture
def shadowing(platform: Platform) -> Platform:
    """A service that serves version 1, with traffic, and the policy `shadow`, which tries out version 2."""
    platform.live()
    platform.version(2)
    platform.policy(name="shadow", strategy="shadow", steps=STEPS)
    return platform


def _until_phase(platform: Platform, phase: Phase, **bad: int) -> None:
    def there() -> bool:
        if platform.rollout().phase != phase:
            platform.traffic(**bad)
        # Whatever happens, all clients are served by stable until the rollout is promoted.
        if platform.rollout().step_index < len(STEPS):
            assert platform.cluster.weights()["digits-00001"] == 100
        return platform.rollout().phase == phase

    platform.until(there)


def test_a_good_shadow_waits_for_a_person_and_is_promoted(shadowing: Platform) -> None:
    shadowing.start(policy="shadow")
    _until_phase(shadowing, Phase.PAUSED)
    assert shadowing.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}
    assert shadowing.cluster.copies() == {"digits-00002": 100}
    rollout = shadowing.view().rollout
    assert rollout is not None
    assert (rollout.strategy, rollout.then, rollout.weight_wanted, rollout.mirror_wanted) == ("shadow", "pause", 0, 100)
    assert [run.seen_percent for run in rollout.analysis_runs] == [20.0, 100.0], "the share of requests that was copied"
    assert [run.verdict for run in rollout.analysis_runs] == ["Successful"] * 2
    rollout_promote(rollout_id=rollout.id, actor="alice", now=shadowing.clock())
    _until_phase(shadowing, Phase.HEALTHY)
    shadowing.until(lambda: shadowing.view().phase == "Ready")
    assert shadowing.view().stable_revision == "digits-00002"
    assert shadowing.cluster.copies() == {}


def test_the_analysis_counts_copies_and_not_what_clients_asked_of_the_shadow(shadowing: Platform) -> None:
    shadowing.start(policy="shadow")
    shadowing.until(AnalysisRun.objects.exists)
    shadowing.traffic(1000)
    shadowing.metrics.serve("digits-00002", 500, failed=500)  # by a client that names version 2
    shadowing.turn()
    run = AnalysisRun.objects.get(step_index=0)
    assert (run.canary_requests, run.stable_requests) == (200, 1000)
    [errors] = [each for each in run.measurements if each["metric"] == "server_errors"]
    assert errors["message"].startswith("0 of 200 requests to the shadow failed")
    view = shadowing.view().rollout
    assert view is not None
    assert (view.weight_seen_percent, view.seen_requests) == (20.0, 1000)


def test_a_bad_shadow_gets_no_copies_any_more_and_is_stopped(shadowing: Platform) -> None:
    shadowing.start(policy="shadow")
    _until_phase(shadowing, Phase.DEGRADED, failed=40)
    assert shadowing.rollout().reason_code == "AnalysisFailed"
    assert "requests to the shadow failed" in shadowing.rollout().reason_message
    shadowing.turn()
    assert shadowing.cluster.copies() == {}
    shadowing.until(lambda: Revision.objects.get(name="digits-00002").stopped_at is not None)
    assert shadowing.view().phase == "Ready"
    assert shadowing.view().stable_revision == "digits-00001"


def test_a_slow_shadow_is_found_out_from_its_replicas(shadowing: Platform) -> None:
    shadowing.start(policy="shadow")
    _until_phase(shadowing, Phase.DEGRADED, slow=40)
    assert "requests of the shadow took longer than" in shadowing.rollout().reason_message


def test_a_shadow_that_is_to_end_ends_and_the_services_file_stays_as_it_was(shadowing: Platform) -> None:
    shadowing.policy(name="shadow", strategy="shadow", steps=STEPS, then="end")
    shadowing.start(policy="shadow")
    _until_phase(shadowing, Phase.HEALTHY)
    shadow = Revision.objects.get(name="digits-00002")
    assert (shadow.role, shadow.stopped_at) == ("retiring", None), "it is kept warm for scaleDownDelay"
    shadowing.until(lambda: Revision.objects.get(name="digits-00002").stopped_at is not None)
    view = shadowing.view()
    assert (view.phase, view.stable_revision, view.model_version) == ("Ready", "digits-00001", 1)
    assert shadowing.rollout().service.document["spec"]["predictor"]["model"]["storageUri"] == "models:/digits/1"
    shadowing.start(policy="careful")
    assert shadowing.rollout().to_revision.name == "digits-00003", "a canary may follow"


def test_an_aborted_shadow_is_gone_at_once(shadowing: Platform) -> None:
    shadowing.start(policy="shadow")
    shadowing.until(lambda: bool(shadowing.cluster.copies()))
    [shadow] = [revision for revision in shadowing.view().revisions if revision.name == "digits-00002"]
    assert (shadow.role, shadow.weight_wanted, shadow.mirror_wanted) == ("shadow", 0, 20)
    rollout_abort(rollout_id=shadowing.rollout().pk, actor="alice", now=shadowing.clock())
    shadowing.turn()
    assert shadowing.cluster.copies() == {}
    assert shadowing.view().stable_revision == "digits-00001"
