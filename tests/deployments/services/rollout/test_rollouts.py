import pytest

from accounts.models import AuditEntry
from common.errors import Conflict, ContractBroken, InvalidInput, InvalidTransition, NotFound
from deployments.models import InferenceService, Revision, Rollout
from deployments.services import rollout_abort, rollout_promote, rollout_retry, rollout_start
from registry.domain.version_lifecycle import Status
from tests.deployments._support.platform import SIGNATURE, Platform


@pytest.mark.parametrize("version", ["2", "@challenger", "models:/digits/2", "models:/digits@challenger"])
def test_a_version_can_be_named_in_four_ways(platform: Platform, version: str) -> None:
    platform.live()
    platform.alias(platform.version(2), "challenger")
    assert platform.start(version).to_revision.model_version.number == 2
    assert AuditEntry.objects.filter(action="rollout.start", actor="alice").count() == 1


@pytest.mark.parametrize(
    ("version", "policy", "error", "sentence"),
    [
        pytest.param("9", None, NotFound, "model 'digits' has no version 9", id="unknown version"),
        pytest.param("@best", None, NotFound, "model 'digits' has no alias 'best'", id="unknown alias"),
        pytest.param("two", None, InvalidInput, "version is 'two'; expected a number such as 2", id="no version"),
        pytest.param("", None, InvalidInput, "expected a number such as 2", id="nothing"),
        pytest.param("2", "bold", NotFound, "policy names the policy 'bold', which is not there", id="unknown policy"),
        pytest.param("1", None, Conflict, "digits version 1 is live already as digits-00001", id="live already"),
        pytest.param("3", None, Conflict, "digits version 3 is PENDING, not READY", id="not checked yet"),
        pytest.param(
            "4", None, ContractBroken, "input 'mask' is needed, and was not there before", id="another signature"
        ),
    ],
)
def test_a_rollout_that_cannot_be_is_refused_in_one_sentence(
    platform: Platform, version: str, policy: str | None, error: type[Exception], sentence: str
) -> None:
    service = platform.live()
    platform.version(2)
    platform.version(3, status=Status.PENDING)
    mask = {"name": "mask", "datatype": "BOOL", "shape": [-1]}
    platform.version(4, signature={**SIGNATURE, "inputs": [*SIGNATURE["inputs"], mask]})
    with pytest.raises(error) as caught:
        platform.start(version, policy)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (Rollout.objects.count(), Revision.objects.count()) == (0, 1)
    assert InferenceService.objects.get().changes == service.changes


def test_a_service_without_a_policy_asks_for_one(platform: Platform) -> None:
    platform.version(1)
    platform.version(2)
    platform.policy()
    platform.apply(policy=None)
    platform.until(lambda: platform.view().phase == "Ready")
    with pytest.raises(InvalidInput, match="names no policy; say which one the rollout is to follow"):
        platform.start()
    assert platform.start(policy="careful").policy_name == "careful"


def test_a_service_that_does_not_serve_yet_has_nothing_to_roll_out_from(platform: Platform) -> None:
    platform.version(1)
    platform.version(2)
    platform.policy()
    platform.apply()
    with pytest.raises(Conflict, match=r"does not serve yet .* apply its file with the version you want"):
        platform.start()


def test_a_rollout_to_what_is_on_its_way_already_is_refused(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    with pytest.raises(Conflict, match=rf"rollout {rollout.pk} to digits version 2 is in progress already \(Pending\)"):
        platform.start()


def test_the_rollout_of_a_service_that_follows_an_alias_leaves_its_file_alone(platform: Platform) -> None:
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.version(2)
    platform.start("2")
    platform.turn()
    platform.turn()
    service = InferenceService.objects.get()
    assert service.document["spec"]["predictor"]["model"]["storageUri"] == "models:/digits@champion"
    assert platform.rollout().phase == "Progressing"
    assert Rollout.objects.count() == 1, "the alias has not moved, so it wants nothing"


def test_unknown_services_and_rollouts(platform: Platform) -> None:
    with pytest.raises(NotFound, match="there is no service default/nothing"):
        rollout_start(
            namespace="default", name="nothing", version="1", policy=None, actor="alice", now=platform.clock()
        )
    for verb in (rollout_promote, rollout_abort, rollout_retry):
        with pytest.raises(NotFound, match="there is no rollout 7"):
            verb(rollout_id=7, actor="alice", now=platform.clock())


def test_promote_abort_and_retry_leave_audit_entries_and_events(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="asking", steps=[{"weight": 10, "pause": True}])
    rollout = platform.start(policy="asking")
    platform.until(lambda: platform.rollout().phase == "Paused")
    rollout_promote(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    rollout_abort(rollout_id=rollout.pk, actor="bob", now=platform.clock())
    rollout_retry(rollout_id=rollout.pk, actor="carol", now=platform.clock())
    entries = AuditEntry.objects.filter(target=f"rollouts/{rollout.pk}").order_by("id")
    assert list(entries.values_list("actor", "action")) == [
        ("alice", "rollout.promote"),
        ("bob", "rollout.abort"),
        ("carol", "rollout.retry"),
    ]
    assert platform.events()[-4:] == ["RolloutPaused", "RolloutContinued", "RolloutAborted", "RolloutRetried"]


def test_a_refused_transition_leaves_no_trace(platform: Platform) -> None:
    service = platform.live()
    platform.version(2)
    rollout = platform.start()
    service.refresh_from_db()
    with pytest.raises(InvalidTransition):
        rollout_promote(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    assert InferenceService.objects.get().changes == service.changes
    assert not AuditEntry.objects.filter(action="rollout.promote").exists()


def test_only_the_newest_rollout_can_be_retried(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.version(3)
    older = platform.start("2")
    newer = platform.start("3")
    rollout_abort(rollout_id=newer.pk, actor="alice", now=platform.clock())
    with pytest.raises(InvalidTransition, match=rf"is not the newest of its service, {newer.pk} is; retry that one"):
        rollout_retry(rollout_id=older.pk, actor="alice", now=platform.clock())


def test_a_retried_canary_is_the_same_revision(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    rollout_abort(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    for _ in range(3):
        platform.turn()
    assert platform.cluster.weights() == {"digits-00001": 100}
    rollout_retry(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    platform.turn()
    revision = Revision.objects.get(name="digits-00002")
    assert (revision.role, revision.stopped_at, Revision.objects.count()) == ("canary", None, 2)
