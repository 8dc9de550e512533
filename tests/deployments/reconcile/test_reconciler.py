"""The whole loop on the database, with a fake outside and a clock moved by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from clusters.models import Cluster
from common.errors import InvalidInput, NotFound, Unavailable
from deployments.domain.phases import Phase
from deployments.models import AnalysisRun, InferenceService, Revision, Rollout
from deployments.reconcile.reconciler import Outcome, tick
from deployments.reconcile.renewal import HELD
from deployments.services import rollout_abort, rollout_promote, rollout_retry, service_apply, service_delete
from integrations.clusters.base import Desired, Drift, DriftPolicy, Observed, Sample
from registry.domain.version_lifecycle import Status
from sealed_secrets.services import secret_change, secret_create
from tests.deployments._support.platform import Platform


def _promoted(platform: Platform) -> None:
    """Bring the rollout in progress to its end with good traffic."""

    def healthy() -> bool:
        platform.traffic()
        return platform.rollout().phase == Phase.HEALTHY

    platform.until(healthy)


# --- a service comes alive --------------------------------------------------------------------------------------------
def test_a_new_service_gets_traffic_only_once_it_is_ready(platform: Platform) -> None:
    platform.version(1)
    platform.cluster.broken["digits-00001"] = "loading the model"
    platform.apply(policy=None)
    for _ in range(3):
        platform.turn()
        assert platform.cluster.weights() == {"digits-00001": 0}
    service = platform.view()
    assert service.phase == "Pending"
    assert service.reason == "not serving yet: 0 of 1 replicas of digits-00001 are ready (loading the model)"
    platform.cluster.broken.clear()
    platform.turn()
    assert platform.cluster.weights() == {"digits-00001": 100}
    platform.turn()
    service = platform.view()
    assert (service.phase, service.reason) == ("Ready", "digits-00001 serves all traffic with 1 replica")
    assert service.revisions[0].weight_actual == 100


def test_the_cluster_is_told_what_to_serve(platform: Platform) -> None:
    platform.version(1)
    platform.apply(policy=None, replicas=2)
    platform.turn()
    [revision] = platform.cluster.desired["default", "digits"].revisions
    assert (revision.name, revision.model_name, revision.model_version) == ("digits-00001", "digits", "1")
    assert (revision.artifact_uri, revision.artifact_digest) == ("file:///artifacts/digits-1", "sha256:digits-1")
    assert revision.replicas == 2


def test_a_turn_that_finds_all_as_it_should_be_changes_nothing(platform: Platform) -> None:
    platform.live()
    platform.turn()
    before = InferenceService.objects.get()
    platform.turn()
    after = InferenceService.objects.get()
    assert (after.changes, after.generation, after.event_seq) == (before.changes, before.generation, before.event_seq)
    assert after.ticked_at == platform.clock()


def test_a_service_that_lost_replicas_is_degraded_and_recovers(platform: Platform) -> None:
    platform.live()
    platform.cluster.broken["digits-00001"] = "out of memory"
    platform.turn()
    assert platform.view().phase == "Degraded"
    assert platform.view().reason == "0 of 1 replicas of digits-00001 are ready (out of memory)"
    assert platform.cluster.weights() == {"digits-00001": 100}, "a live service's weights sum to 100"
    platform.cluster.broken.clear()
    platform.turn()
    assert platform.view().phase == "Ready"
    assert platform.events()[-2:] == ["ServiceDegraded", "ServiceReady"]


def test_restarts_of_replicas_become_events_once(platform: Platform) -> None:
    platform.live()
    platform.cluster.crash("digits-00001")
    platform.turn()
    platform.turn()
    platform.cluster.crash("digits-00001")
    platform.turn()
    assert platform.events().count("ReplicaRestarted") == 2
    assert platform.view().revisions[0].restarts == 2


# --- a rollout --------------------------------------------------------------------------------------------------------
def test_a_good_canary_is_promoted_step_by_step(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    seen: list[tuple[int, int]] = []

    def healthy() -> bool:
        platform.traffic()
        weights = platform.cluster.weights()
        assert sum(weights.values()) == 100
        if not seen or seen[-1] != (weights["digits-00001"], weights.get("digits-00002", 0)):
            seen.append((weights["digits-00001"], weights.get("digits-00002", 0)))
        return platform.rollout().phase == Phase.HEALTHY

    platform.until(healthy)
    assert seen == [(100, 0), (90, 10), (50, 50), (0, 100)]
    roles = dict(Revision.objects.values_list("name", "role"))
    assert roles == {"digits-00001": "retiring", "digits-00002": "stable"}
    runs = list(AnalysisRun.objects.filter(rollout=rollout).order_by("step_index"))
    assert [(run.weight, run.verdict) for run in runs] == [(10, "Successful"), (50, "Successful")]
    assert all(run.finished_at is not None for run in runs)
    assert runs[0].canary_requests / (runs[0].canary_requests + runs[0].stable_requests) == pytest.approx(0.1)
    assert {"RolloutStarted", "RolloutWeightWanted", "RolloutWeightConfirmed", "RolloutHealthy"} <= set(
        platform.events()
    )


def test_the_old_revision_is_kept_warm_and_then_stopped(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    _promoted(platform)
    platform.turn(seconds=20)
    assert platform.cluster.weights() == {"digits-00001": 0, "digits-00002": 100}
    assert platform.cluster.desired["default", "digits"].revisions[0].replicas == 1
    platform.turn(seconds=11)
    assert platform.cluster.weights() == {"digits-00002": 100}
    assert platform.events()[-1] == "RevisionStopped"
    assert Revision.objects.get(name="digits-00001").role == "retired"


def test_a_bad_canary_gives_all_traffic_back_at_once_and_is_stopped(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.bad_time(failed=6)
    rollout = platform.rollout()
    assert (rollout.phase, rollout.reason_code, rollout.verdict) == ("Degraded", "AnalysisFailed", "Failed")
    assert "30 of 40 requests to the canary failed (75.00 %, limit 1 %)" in rollout.reason_message
    assert platform.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}, "in the very turn that saw it"
    assert platform.cluster.desired["default", "digits"].revisions[1].replicas == 1, "it drains first"
    platform.turn()
    assert platform.cluster.weights() == {"digits-00001": 100}
    assert Revision.objects.get(name="digits-00002").role == "failed"
    assert platform.view().phase == "Ready"


def test_a_slow_canary_is_rolled_back(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.bad_time(slow=5)
    assert platform.rollout().phase == Phase.DEGRADED
    assert " requests of the canary took longer than 1 ms" in platform.rollout().reason_message


def test_a_canary_that_never_starts_is_given_up_at_its_deadline(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.cluster.broken["digits-00002"] = "no such operator"
    platform.start()
    platform.until(lambda: platform.rollout().phase == Phase.DEGRADED, turns=70)
    assert platform.rollout().reason_code == "ProgressDeadlineExceeded"
    assert (
        "0 of 1 replicas of the canary are ready (no such operator) after 2m of waiting"
        in platform.rollout().reason_message
    )
    assert all(desired.revisions[0].weight_percent == 100 for desired in platform.cluster.applied[3:])


def test_a_canary_that_can_never_start_is_given_up_at_once(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.cluster.broken["digits-00002"] = "a model of the ensemble's steps is called digits"
    platform.cluster.refused.add("digits-00002")
    platform.start()
    platform.until(lambda: platform.rollout().phase == Phase.DEGRADED, turns=3)
    rollout = platform.rollout()
    assert rollout.reason_code == "CanaryCrashLooping"
    assert "can never start as it is: a model of the ensemble's steps is called digits" in rollout.reason_message


def test_a_canary_that_crash_loops_is_rolled_back(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    for _ in range(3):
        platform.cluster.crash("digits-00002")
    platform.turn()
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Degraded", "CanaryCrashLooping")


def test_one_restart_of_the_canary_is_survived(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.cluster.crash("digits-00002")
    _promoted(platform)


def test_no_traffic_holds_the_step_for_ever(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    for _ in range(20):
        platform.turn(seconds=50)
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Progressing", "NoTraffic")


def test_an_undecided_step_pauses_at_its_deadline_and_can_be_promoted(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.metrics.serve("digits-00002", 20)
    platform.turn()
    assert platform.rollout().reason_code == "AnalysisRunning"
    for _ in range(10):
        platform.turn(seconds=30)
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Paused", "PausedInconclusive")
    assert "undecided 5m after the first request: 0 of 20 requests" in platform.rollout().reason_message
    rollout_promote(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    platform.turn()
    assert platform.cluster.weights() == {"digits-00001": 50, "digits-00002": 50}


def test_metrics_that_cannot_be_read_hold_the_step_and_lose_no_evidence(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.bad_time(failed=8, until_percent=80)
    platform.metrics.away = "the metrics at http://127.0.0.1:1 cannot be read"
    platform.metrics.serve("digits-00002", 40, failed=30)
    for _ in range(10):
        platform.turn(seconds=50)
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Progressing", "MetricsUnavailable")
    assert "the metrics at http://127.0.0.1:1 cannot be read" in platform.rollout().reason_message
    platform.metrics.away = ""
    platform.turn()
    assert platform.rollout().phase == Phase.DEGRADED


def test_a_cluster_that_cannot_be_read_holds_everything(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.cluster.away = "the local agent has not been heard of for 12 s"
    with pytest.raises(Unavailable):
        platform.turn(settle=False)
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Progressing", "ClusterUnavailable")
    assert "has not been heard of for 12 s" in platform.view().reason
    platform.cluster.away = ""
    _promoted(platform)


def test_what_the_cluster_does_not_take_is_told_on_the_service_and_its_rollout_until_it_does(
    platform: Platform,
) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.cluster.on_apply = _refuse_a_second_revision
    with pytest.raises(InvalidInput):
        platform.turn()
    with pytest.raises(InvalidInput):
        platform.turn()
    wait = platform.view().waits
    assert wait is not None
    assert wait.condition == "ClusterRefuses"
    assert wait.evidence == "the cluster does not take what it should run: no room for digits-00002; free a node"
    assert "no room for digits-00002; free a node" in platform.view().reason
    platform.cluster.on_apply = lambda _desired: None
    platform.turn()
    platform.turn()
    assert "no room" not in platform.view().reason
    _promoted(platform)


def _refuse_a_second_revision(desired: Desired) -> None:
    if len(desired.revisions) > 1:
        raise InvalidInput("no room for digits-00002; free a node")


def test_why_the_gateway_does_not_send_all_to_stable_is_told(platform: Platform) -> None:
    platform.live()
    key = ("default", "digits")
    seen = platform.cluster.observed[key]
    sentence = "the gateway gateway does not take HTTPRoute digits: none of its listeners takes such routes"
    (there,) = seen.revisions
    platform.cluster.observed[key] = replace(seen, message=sentence, revisions=(replace(there, weight_percent=0),))
    platform.turn(settle=False)
    assert sentence in platform.view().reason


def test_a_night_in_which_all_was_off_counts_for_no_deadline(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.traffic(100)
    platform.turn()
    platform.cluster.broken = {"digits-00001": "starting", "digits-00002": "starting"}
    platform.turn()
    assert platform.rollout().reason_code == "CanaryNotReady"
    platform.turn(seconds=8 * 3600)
    assert platform.rollout().reason_code == "CanaryNotReady", "it has as long to start as ever"
    platform.cluster.broken = {}
    platform.turn()
    platform.turn()
    assert platform.rollout().reason_code == "AnalysisRunning", "not Inconclusive"
    _promoted(platform)


def test_a_hold_does_not_pass_while_nobody_could_look(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="slow", steps=[{"weight": 10, "hold": "1h"}])
    platform.start(policy="slow")
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    platform.turn(seconds=8 * 3600)
    assert platform.rollout().reason_code == "Holding"


def test_a_rollout_of_a_service_that_was_not_turned_to_for_long_gets_no_more_time_than_others(
    platform: Platform,
) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="timed", deadline="1h")
    platform.clock.go_on(8 * 3600)
    rollout = platform.start(policy="timed")
    assert rollout.deadline_at is not None
    platform.turn()
    assert platform.rollout().deadline_at == rollout.deadline_at


def test_abort_gives_all_traffic_back_and_retry_begins_again(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    platform.until(AnalysisRun.objects.exists)
    rollout_abort(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    platform.turn(settle=False)
    assert platform.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}
    platform.turn()
    platform.turn()
    assert platform.cluster.weights() == {"digits-00001": 100}
    rollout_retry(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    platform.turn()
    assert platform.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}
    _promoted(platform)
    assert AnalysisRun.objects.filter(rollout=rollout).count() == 3
    assert platform.rollout().attempt == 2


def test_a_newer_rollout_supersedes_the_older_and_waits_until_its_traffic_is_gone(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    older = platform.start("2")
    platform.until(AnalysisRun.objects.exists)
    platform.version(3)
    platform.start("3")
    older.refresh_from_db()
    assert (older.phase, older.reason_code) == ("Aborted", "Superseded")
    platform.turn(settle=False)
    assert platform.cluster.weights() == {"digits-00001": 100, "digits-00002": 0, "digits-00003": 0}
    _promoted(platform)
    for desired in platform.cluster.applied:
        given = {revision.name: revision.weight_percent for revision in desired.revisions}
        assert not (given.get("digits-00002") and given.get("digits-00003")), "never both"
    assert Revision.objects.get(name="digits-00003").role == "stable"


def test_a_policy_changed_during_a_rollout_does_not_reach_it(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.turn()
    platform.policy(steps=[{"weight": 1, "pause": True}])
    _promoted(platform)
    assert [step.weight for step in platform.view().rollout.steps] == [10, 50]  # type: ignore[union-attr]


def test_a_change_of_a_service_without_a_policy_moves_all_traffic_once_ready(platform: Platform) -> None:
    platform.version(1)
    platform.apply(policy=None)
    platform.until(lambda: platform.view().phase == "Ready")
    platform.version(2)
    platform.apply(uri="models:/digits/2", policy=None)
    platform.cluster.broken["digits-00002"] = "loading"
    platform.turn()
    assert platform.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}
    platform.cluster.broken.clear()
    platform.until(lambda: platform.rollout().phase == Phase.HEALTHY)
    assert platform.cluster.weights() == {"digits-00001": 0, "digits-00002": 100}


# --- aliases ----------------------------------------------------------------------------------------------------------
def test_a_moved_alias_starts_a_rollout_by_the_services_policy(platform: Platform) -> None:
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.metrics.serve("digits-00001", 1000)
    platform.alias(platform.version(2))
    platform.turn()
    assert (platform.rollout().policy_name, platform.rollout().created_by) == ("careful", "fairlead")
    _promoted(platform)
    platform.turn()
    assert Rollout.objects.count() == 1, "one move of the alias is one rollout"


def test_an_alias_that_means_a_version_that_failed_is_not_tried_again(platform: Platform) -> None:
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.alias(platform.version(2))
    platform.turn()
    rollout_abort(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    for _ in range(3):
        platform.turn()
    assert Rollout.objects.count() == 1


def test_an_alias_that_means_a_version_that_is_not_ready_is_told_once_and_followed_later(platform: Platform) -> None:
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    version = platform.version(2, status=Status.PENDING)
    platform.alias(version)
    platform.turn()
    platform.turn()
    assert platform.events().count("AliasRefused") == 1
    assert "what its alias means now is not rolled out: digits version 2 is PENDING" in platform.view().reason
    version.status = Status.READY
    version.save()
    platform.turn()
    assert platform.rollout().to_revision.name == "digits-00002"
    assert "alias" not in platform.view().reason


def test_an_alias_that_moves_back_gives_the_rollout_up(platform: Platform) -> None:
    first = platform.version(1)
    platform.alias(first)
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.alias(platform.version(2))
    platform.turn()
    platform.alias(first)
    platform.turn()
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Aborted", "Superseded")
    assert Rollout.objects.count() == 1


# --- deletion ---------------------------------------------------------------------------------------------------------
def test_a_deleted_service_is_forgotten_once_the_cluster_has_nothing_of_it(platform: Platform) -> None:
    service = platform.live()
    service_delete(namespace="default", name="digits", actor="alice", now=platform.clock())
    assert platform.turn(settle=False) is Outcome.DONE
    assert platform.view().phase == "Deleting"
    assert platform.turn() is Outcome.REMOVED
    with pytest.raises(NotFound):
        platform.view()
    assert tick(service.pk, platform.outside) is Outcome.BUSY, "nothing to take a lease of"
    assert platform.cluster.desired == {}


def test_what_a_slow_worker_decided_before_the_deletion_does_not_bring_the_service_back(platform: Platform) -> None:
    platform.live()
    platform.turn()
    late = platform.cluster.applied[-1]
    service_delete(namespace="default", name="digits", actor="alice", now=platform.clock())
    platform.turn(settle=False)
    platform.cluster.apply(late)
    assert platform.turn() is Outcome.REMOVED
    assert platform.cluster.desired == {}


# --- crashes, races, old databases ------------------------------------------------------------------------------------
def test_a_crash_between_record_and_apply_is_repaired_by_the_next_turn(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.bad_time(failed=8, until_percent=80)
    platform.metrics.serve("digits-00001", 360)
    platform.metrics.serve("digits-00002", 40, failed=40)

    def die(_desired: Desired) -> None:
        raise SystemExit

    platform.cluster.on_apply = die
    with pytest.raises(SystemExit):
        platform.turn()
    assert platform.rollout().phase == Phase.DEGRADED, "recorded"
    assert platform.cluster.weights() == {"digits-00001": 90, "digits-00002": 10}, "not applied"
    platform.cluster.on_apply = lambda _desired: None
    platform.turn()
    assert platform.cluster.weights()["digits-00001"] == 100


def test_a_worker_that_died_with_the_lease_is_replaced_when_it_runs_out(platform: Platform) -> None:
    service = platform.live()
    InferenceService.objects.update(lease_owner="dead", lease_expires_at=platform.clock() + HELD)
    assert platform.turn() is Outcome.BUSY
    assert platform.turn(seconds=HELD.total_seconds()) is Outcome.DONE
    service.refresh_from_db()
    assert (service.lease_owner, service.lease_expires_at) == ("", None)


def test_an_abort_between_observe_and_record_is_not_overwritten(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    platform.until(AnalysisRun.objects.exists)

    def meanwhile(observed: Observed) -> Sequence[Sample]:
        rollout_abort(rollout_id=rollout.pk, actor="alice", now=platform.clock())
        return platform.metrics(observed)

    outside = replace(platform.outside, metrics=meanwhile)
    assert tick(InferenceService.objects.get().pk, outside) is Outcome.OVERTAKEN
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Aborted", "Aborted")
    platform.turn()
    assert platform.cluster.weights()["digits-00001"] == 100


def test_a_worker_whose_lease_ran_out_before_apply_applies_nothing(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    applied = len(platform.cluster.applied)

    def slow(observed: Observed) -> Sequence[Sample]:
        platform.clock.go_on(HELD.total_seconds() + 1)
        return platform.metrics(observed)

    outside = replace(platform.outside, metrics=slow)
    assert tick(InferenceService.objects.get().pk, outside) is Outcome.OVERTAKEN
    assert len(platform.cluster.applied) == applied


def test_a_worker_that_is_late_with_values_of_secrets_passes_none(platform: Platform) -> None:
    """It sleeps between its look at the lease and the driver's lock, while another one passes newer ones."""
    now, named = platform.clock(), ("default", "hugging-face")
    secret_create(namespace=named[0], name=named[1], values={"token": "old"}, actor="alice", now=now)
    platform.version(1)
    document = platform.document(policy=None)
    reference = {"secretKeyRef": {"name": named[1], "key": "token"}}
    document["spec"]["predictor"]["model"]["env"] = [{"name": "MODEL_TOKEN", "valueFrom": reference}]
    service_apply(document=document, namespace=None, name=None, actor="alice", now=now)
    platform.turn()
    service = InferenceService.objects.get()

    def meanwhile() -> None:
        platform.cluster.before_secrets = lambda: None
        platform.clock.go_on(HELD.total_seconds() + 1)
        secret_change(namespace=named[0], name=named[1], values={"token": "new"}, actor="alice", now=platform.clock())
        assert tick(service.pk, platform.outside) is Outcome.DONE
        secret_change(namespace=named[0], name=named[1], values={"token": "newest"}, actor="alice", now=now)

    platform.cluster.before_secrets = meanwhile
    applied = len(platform.cluster.applied)
    assert tick(service.pk, platform.outside) is Outcome.OVERTAKEN
    assert platform.cluster.secrets["default", "digits"] == {"hugging-face": {"token": "new"}}
    assert len(platform.cluster.applied) == applied + 1, "of the other worker"


def test_the_generation_rises_only_with_what_is_wished(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    _promoted(platform)
    desired_states: dict[int, tuple[object, ...]] = {}
    last = 0
    for desired in platform.cluster.applied:
        assert desired.generation >= last
        last = desired.generation
        assert desired_states.setdefault(desired.generation, desired.revisions) == desired.revisions


def test_a_database_older_than_the_cluster_overtakes_its_generation(platform: Platform) -> None:
    platform.live()
    InferenceService.objects.update(generation=1)
    platform.turn()
    platform.turn()
    service = InferenceService.objects.get()
    assert platform.cluster.desired["default", "digits"].generation == service.generation > 1


def test_what_was_changed_by_hand_is_shown_and_told_once(platform: Platform) -> None:
    platform.live()
    platform.cluster.drift = [Drift("Service/digits-00001", "spec.type", "1", "2", "kubectl-edit", 0.0)]
    platform.turn()
    changes = platform.view().changes
    platform.turn()
    (shown,) = platform.view().drift
    assert (shown.path, shown.manager, shown.healed) == ("spec.type", "kubectl-edit", False)
    assert platform.view().changes == changes
    platform.cluster.drift = []
    platform.turn()
    assert platform.view().drift == ()
    assert [kind for kind in platform.events() if kind.startswith("Drift")] == ["DriftFound", "DriftGone"]


def test_the_cluster_is_told_what_becomes_of_drift(platform: Platform) -> None:
    platform.live()
    Cluster.objects.update(kind="kubernetes")
    document = platform.document()
    document["spec"]["drift"] = "keep"
    service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    platform.turn()
    assert platform.cluster.applied[-1].drift is DriftPolicy.KEEP
    assert platform.view().stable_revision == "digits-00001"
    assert platform.view().rollout is None


def test_the_local_cluster_refuses_a_word_on_drift(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    document = platform.document()
    document["spec"]["drift"] = "heal"
    with pytest.raises(InvalidInput, match=r"spec\.drift is for services on Kubernetes"):
        service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
