import pytest

from accounts.models import AuditEntry
from common.errors import Conflict, InvalidInput, NotFound
from deployments.models import RolloutPolicy
from deployments.services import policy_apply, policy_delete
from tests.deployments._support.platform import POLICY, Platform


def test_a_changed_policy_gets_a_new_version_and_the_same_one_does_not(platform: Platform) -> None:
    _, created = policy_apply(document=POLICY, name="careful", actor="alice", now=platform.clock())
    assert created
    for document, version in [(POLICY, 1), ({**POLICY, "scaleDownDelay": "5m"}, 2)]:
        policy, created = policy_apply(document=document, name="careful", actor="alice", now=platform.clock())
        assert (created, policy.version) == (False, version)
    assert AuditEntry.objects.filter(action="policy.apply").count() == 2


def test_a_refused_policy_leaves_the_one_before(platform: Platform) -> None:
    platform.policy()
    with pytest.raises(InvalidInput):
        platform.policy(steps=[])
    assert RolloutPolicy.objects.get().document["steps"][0]["weight"] == 10


def test_a_policy_that_a_service_names_is_not_deleted(platform: Platform) -> None:
    platform.live()
    with pytest.raises(Conflict, match="policy 'careful' is named by default/digits; name another policy there first"):
        policy_delete(name="careful", actor="alice", now=platform.clock())


def test_a_policy_that_nobody_names_is_deleted_although_a_rollout_followed_it(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="bold")
    platform.start(policy="bold")
    policy_delete(name="bold", actor="alice", now=platform.clock())
    assert [step.weight for step in platform.view().rollout.steps] == [10, 50]  # type: ignore[union-attr]


def test_an_unknown_policy_cannot_be_deleted(platform: Platform) -> None:
    with pytest.raises(NotFound, match="there is no policy 'careful'"):
        policy_delete(name="careful", actor="alice", now=platform.clock())
