"""The way back, on the database with the fake cluster."""

import pytest

from accounts.models import AuditEntry
from common.errors import Conflict, FairleadError, NotFound
from deployments.models import InferenceService, Revision, Rollout
from deployments.services import service_apply
from tests.deployments._support.platform import Platform


def test_a_warm_revision_gets_all_traffic_with_the_next_turn_and_starts_nothing(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    assert Revision.objects.get(number=1).role == "retiring"
    applied = len(platform.cluster.applied)

    rollout = platform.back()

    platform.turn(settle=False)
    assert platform.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}, "one turn, one switch"
    asked = platform.cluster.applied[applied:]
    assert all({each.name for each in desired.revisions} == {"digits-00001", "digits-00002"} for desired in asked)
    platform.until(lambda: platform.rollout().phase == "Healthy")
    assert platform.view().stable_revision == "digits-00001"
    assert (rollout.from_revision.name, rollout.to_revision.name) == ("digits-00002", "digits-00001")
    assert Revision.objects.count() == 2, "the revision itself came back"


def test_a_stopped_revision_is_started_again_and_then_gets_all_traffic(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    platform.until(lambda: Revision.objects.get(number=1).role == "retired")
    platform.turn()
    assert "digits-00001" not in platform.cluster.weights()

    platform.back("digits-00001")

    platform.turn(settle=False)
    assert platform.cluster.weights() == {"digits-00001": 0, "digits-00002": 100}, "it starts without traffic"
    platform.until(lambda: platform.rollout().phase == "Healthy")
    assert platform.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}
    assert Revision.objects.get(number=1).role == "stable"


def test_any_earlier_stable_revision_can_be_named_by_its_number_too(platform: Platform) -> None:
    platform.live()
    platform.promoted(2)
    platform.promoted(3)
    assert platform.back("1").to_revision.name == "digits-00001"
    platform.until(lambda: platform.rollout().phase == "Healthy")
    assert platform.back().to_revision.name == "digits-00003", "the stable one before is the one it came from"


def test_a_rollout_in_progress_gives_way(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    platform.version(3)
    going = platform.start("3", "careful")
    platform.until(lambda: platform.rollout().weight == 10)

    platform.back()

    going.refresh_from_db()
    assert (going.phase, going.reason_code) == ("Aborted", "Superseded")
    assert "superseded by the rollback to digits-00001" in going.reason_message
    platform.until(lambda: platform.rollout().phase == "Healthy")
    assert platform.view().stable_revision == "digits-00001"


def test_it_is_told_in_an_event_and_in_the_audit_log(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    rollout = platform.back()
    assert platform.events()[-1] == "RollbackStarted"
    event = rollout.events.get(kind="RollbackStarted")
    assert event.message == (
        f"rollout {rollout.pk} back from digits-00002 (version 2) to digits-00001 (version 1) was started by alice; "
        "it still runs, so all traffic moves at once"
    )
    entry = AuditEntry.objects.get(action="service.rollback")
    assert (entry.actor, entry.target) == ("alice", "services/default/digits")
    assert entry.before == {"revision": "digits-00002", "version": "models:/digits/2"}
    assert entry.after == {"revision": "digits-00001", "version": "models:/digits/1"}
    assert entry.detail == {"rollout": rollout.pk}


def test_restarts_from_before_the_rollback_are_no_crash_loop(platform: Platform) -> None:
    platform.live()
    for _ in range(3):
        platform.cluster.crash("digits-00001")
    platform.promoted()
    platform.back()
    platform.until(lambda: platform.rollout().phase == "Healthy")


def test_one_that_does_not_start_again_leaves_stable_alone(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    platform.until(lambda: Revision.objects.get(number=1).role == "retired")
    platform.cluster.broken["digits-00001"] = "out of memory"
    platform.back()
    platform.until(lambda: platform.rollout().phase == "Degraded", turns=90)
    assert platform.cluster.weights()["digits-00002"] == 100
    assert Revision.objects.get(number=1).role == "failed"
    platform.cluster.broken.clear()
    assert platform.back("digits-00001").phase == "Pending", "it was healthy once, so it can be tried again"


@pytest.mark.parametrize(
    ("revision", "error", "sentence"),
    [
        pytest.param("digits-00009", NotFound, "service default/digits has no revision 'digits-00009'", id="unknown"),
        pytest.param("", NotFound, "service default/digits has no revision ''", id="nothing"),
        pytest.param("digits-00002", Conflict, "digits-00002 is live already", id="live"),
        pytest.param(
            "digits-00003", Conflict, "digits-00003 was never the stable revision of default/digits", id="never healthy"
        ),
    ],
)
def test_what_cannot_be_gone_back_to_is_refused_in_one_sentence(
    platform: Platform, revision: str, error: type[FairleadError], sentence: str
) -> None:
    platform.live()
    platform.promoted()
    platform.version(3)
    platform.cluster.broken["digits-00003"] = "out of memory"
    platform.start("3", "careful")
    platform.until(lambda: platform.rollout().phase == "Degraded", turns=90)
    before = Rollout.objects.count()
    with pytest.raises(error) as caught:
        platform.back(revision)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert Rollout.objects.count() == before


def test_one_that_is_on_its_way_back_already_is_refused(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    rollout = platform.back()
    with pytest.raises(Conflict, match=rf"rollout {rollout.pk} to digits-00001 is in progress already \(Pending\)"):
        platform.back("digits-00001")


def test_the_first_revision_has_none_before_it(platform: Platform) -> None:
    platform.live()
    with pytest.raises(Conflict, match="digits-00001 is the first revision that default/digits served"):
        platform.back()


def test_a_service_that_does_not_serve_yet_has_no_way_back(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    platform.apply()
    with pytest.raises(Conflict, match="does not serve yet"):
        platform.back()


def test_afterwards_the_file_says_what_is_served_and_the_newer_file_goes_forward_again(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    newer = platform.document(uri="models:/digits/2", policy=None, replicas=2)
    newer["spec"]["predictor"]["model"] |= {
        "env": [{"name": "OMP_NUM_THREADS", "value": "2"}],
        "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}},
        "config": {"max_batch_size": 4},
    }
    service_apply(document=newer, namespace=None, name=None, actor="alice", now=platform.clock())
    platform.until(lambda: platform.rollout().phase == "Healthy")
    platform.back()
    predictor = InferenceService.objects.get().document["spec"]["predictor"]
    assert predictor["model"]["storageUri"] == "models:/digits/1"
    assert (predictor["minReplicas"], predictor["model"]["env"], predictor["model"]["config"]) == (1, [], {})
    assert predictor["model"]["resources"] == {}
    platform.until(lambda: platform.rollout().phase == "Healthy")
    service_apply(document=newer, namespace=None, name=None, actor="alice", now=platform.clock())
    assert platform.rollout().to_revision.name == "digits-00003"
    platform.until(lambda: platform.rollout().phase == "Healthy")
    platform.back("1")
    platform.until(lambda: platform.rollout().phase == "Healthy")
    platform.back("2")
    model = InferenceService.objects.get().document["spec"]["predictor"]["model"]
    assert model["resources"] == {"requests": {"cpu": "0.5", "memory": str(64 * 2**20)}}
    assert model["env"] == [{"name": "OMP_NUM_THREADS", "value": "2"}]


def test_a_service_that_follows_an_alias_stays_back_until_the_alias_moves(platform: Platform) -> None:
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion", policy=None)
    platform.until(lambda: platform.view().phase == "Ready")
    platform.alias(platform.version(2))
    platform.until(lambda: platform.view().stable_revision == "digits-00002")
    platform.back()
    platform.until(lambda: platform.view().stable_revision == "digits-00001")
    for _ in range(3):
        platform.turn()
    assert platform.view().stable_revision == "digits-00001"
    platform.alias(platform.version(3))
    platform.until(lambda: platform.view().stable_revision == "digits-00003")
    assert InferenceService.objects.get().document["spec"]["predictor"]["model"]["storageUri"].endswith("@champion")
