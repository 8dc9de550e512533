"""Upgrades of the fleet on the reconciler: from a service that is behind to one that is not."""

from typing import Any

import pytest

from accounts.models import AuditEntry
from common.errors import Conflict, InvalidInput, InvalidTransition, NotFound
from deployments.models import InferenceService, Revision, Rollout
from deployments.services import service_delete, service_stop
from events.domain.kinds import UpgradeKind
from events.models import WebhookDelivery
from fleet.domain.waves import Phase, State
from fleet.models import FleetUpgrade, ServiceUpgrade
from fleet.services.progress import upgrade_advance
from fleet.services.upgrades import upgrade_cancel, upgrade_pause, upgrade_resume, upgrade_start
from tests import scenes
from tests.deployments._support.platform import Platform

FIRST, SECOND = "digits-00001", "digits-00002"
CHANGES = "image runtime:1 -> runtime:2"


def _template(image: str) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": [{"name": "runtime", "image": image}]}}


@pytest.fixture
def behind(platform: Platform) -> Platform:
    """Return a platform whose service runs the image of an earlier release, without a policy."""
    platform.cluster.templates = {FIRST: {FIRST: _template("runtime:1")}, SECOND: {SECOND: _template("runtime:2")}}
    platform.version(1)
    platform.apply(policy=None)
    platform.until(lambda: Revision.objects.get(name=FIRST).pod_templates)
    platform.cluster.changes = {FIRST: CHANGES}
    platform.until(lambda: Revision.objects.get(name=FIRST).template_changes)
    return platform


def _start(platform: Platform, **more: Any) -> FleetUpgrade:
    asked: dict[str, Any] = {"cluster": "", "namespace": "", "percent": 25, "at_once": 5, **more}
    return upgrade_start(**asked, actor="ann", now=platform.clock())


def _sent() -> list[tuple[str, str]]:
    """Return the event and message of each delivery."""
    rows = WebhookDelivery.objects.order_by("pk")
    return [(row.event, row.payload["message"]) for row in rows]


def _moved(upgrade: FleetUpgrade) -> tuple[str, str]:
    upgrade.refresh_from_db()
    return upgrade.phase, ServiceUpgrade.objects.get(upgrade=upgrade).state


def test_a_service_goes_over_by_a_revision_of_the_same_version(behind: Platform) -> None:
    upgrade = _start(behind)
    assert _moved(upgrade) == (Phase.RUNNING, State.WAITING)
    for _ in range(2):
        upgrade_advance(now=behind.clock())
    assert _moved(upgrade) == (Phase.RUNNING, State.UPGRADING)
    rollout = Rollout.objects.get()
    assert ServiceUpgrade.objects.get().rollout_id == rollout.pk, "two runs start one rollout"
    assert (rollout.from_revision.name, rollout.to_revision.name) == (FIRST, SECOND)
    assert rollout.to_revision.model_version_id == rollout.from_revision.model_version_id
    behind.until(lambda: behind.rollout().phase == "Healthy")
    upgrade_advance(now=behind.clock())
    assert _moved(upgrade) == (Phase.COMPLETE, State.UPGRADED)
    assert Revision.objects.get(name=SECOND).pod_templates == {SECOND: _template("runtime:2")}
    with pytest.raises(Conflict, match="no service is behind"):
        _start(behind)
    entry = AuditEntry.objects.get(action="rollout.start")
    assert (entry.actor, entry.detail["upgrade"]) == ("ann", f"fleet/upgrades/{upgrade.pk}")


def test_a_failed_rollout_pauses_the_upgrade_and_it_resumes_without_it(behind: Platform) -> None:
    scenes.webhook(*UpgradeKind)
    upgrade = _start(behind)
    upgrade_advance(now=behind.clock())
    behind.cluster.broken[SECOND] = "the image cannot be pulled"
    behind.cluster.refused.add(SECOND)
    behind.until(lambda: behind.rollout().phase == "Degraded")
    upgrade_advance(now=behind.clock())
    assert _moved(upgrade)[1] == State.FAILED
    assert upgrade.phase == Phase.COMPLETE, "no further service"
    assert upgrade.message == "1 of 1 services failed"
    assert [event for event, _ in _sent()] == ["FleetUpgradeStarted", "FleetUpgradeComplete"], "no pause in between"
    assert Revision.objects.get(name=FIRST).role == "stable"


def test_of_two_services_the_second_waits_for_the_first_and_for_a_resumption(behind: Platform) -> None:
    scenes.webhook(*UpgradeKind)
    upgrade = _start(behind)
    first = ServiceUpgrade.objects.get()
    further = InferenceService.objects.get()
    further.pk, further.name, further._state.adding = None, "letters", True
    further.save()
    ServiceUpgrade.objects.create(upgrade=upgrade, service=further, wave=2, changes=CHANGES)
    upgrade_advance(now=behind.clock())
    second = ServiceUpgrade.objects.get(service=further)
    assert second.state == State.WAITING
    Rollout.objects.filter(pk=Rollout.objects.get().pk).update(phase="Degraded", reason_message="errors rose")
    upgrade_advance(now=behind.clock())
    upgrade.refresh_from_db()
    assert upgrade.phase == Phase.PAUSED
    assert "default/digits failed (rollout" in upgrade.message
    assert _sent()[1:] == [("FleetUpgradePaused", f"upgrade {upgrade.pk} of the fleet is Paused: {upgrade.message}")]
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state) == (State.FAILED, State.WAITING)
    upgrade_resume(upgrade_id=upgrade.pk, actor="ann", now=behind.clock())
    upgrade_advance(now=behind.clock())
    second.refresh_from_db()
    assert second.state == State.SKIPPED, "it has no revision that is behind"
    upgrade.refresh_from_db()
    assert (upgrade.phase, upgrade.message) == (Phase.COMPLETE, "1 of 2 services failed")
    assert [event for event, _ in _sent()[2:]] == ["FleetUpgradeResumed", "FleetUpgradeComplete"]
    assert _sent()[-1][1].endswith("is Complete: 1 of 2 services failed")


def test_a_paused_upgrade_starts_nothing_and_a_cancelled_one_skips_what_waits(behind: Platform) -> None:
    upgrade = _start(behind)
    said: dict[str, Any] = {"upgrade_id": upgrade.pk, "actor": "ann", "now": behind.clock()}
    upgrade_pause(**said)
    upgrade_advance(now=behind.clock())
    assert _moved(upgrade) == (Phase.PAUSED, State.WAITING)
    with pytest.raises(InvalidTransition, match="pause needs one that is Running"):
        upgrade_pause(**said)
    upgrade_cancel(**said)
    assert _moved(upgrade) == (Phase.CANCELLED, State.SKIPPED)
    assert upgrade_advance(now=behind.clock()) is None
    with pytest.raises(InvalidTransition):
        upgrade_resume(**said)
    assert not Rollout.objects.exists()
    actions = AuditEntry.objects.filter(action__startswith="upgrade.").order_by("id")
    assert list(actions.values_list("action", flat=True)) == ["upgrade.start", "upgrade.pause", "upgrade.cancel"]


def test_webhooks_of_the_installation_get_each_phase_once(behind: Platform) -> None:
    for owner in (None, "default"):
        scenes.webhook(*UpgradeKind, team=owner)
    upgrade = _start(behind, namespace="default")
    about = f"upgrade {upgrade.pk} of the fleet is"
    said: dict[str, Any] = {"upgrade_id": upgrade.pk, "actor": "ann", "now": behind.clock()}
    upgrade_pause(**said)
    upgrade_resume(**said)
    for _ in range(2):
        upgrade_advance(now=behind.clock())
    upgrade_pause(**said)
    upgrade_cancel(**said)
    assert _sent() == [
        ("FleetUpgradeStarted", f"{about} Running: ann started it; services in namespace default: 1"),
        ("FleetUpgradePaused", f"{about} Paused: ann paused it"),
        ("FleetUpgradeResumed", f"{about} Running: ann resumed it"),
        ("FleetUpgradePaused", f"{about} Paused: ann paused it"),
        ("FleetUpgradeCancelled", f"{about} Cancelled: ann cancelled it"),
    ]
    first, *_, last = (row.payload for row in WebhookDelivery.objects.order_by("pk"))
    assert (first["upgrade"], first["phase"]) == (upgrade.pk, "Running")
    assert {state: count for state, count in first["services"].items() if count} == {"Waiting": 1}
    assert {state: count for state, count in last["services"].items() if count} == {"Upgrading": 1}


def test_one_upgrade_is_open_at_a_time(behind: Platform) -> None:
    first = _start(behind)
    scenes.webhook(*UpgradeKind)
    with pytest.raises(Conflict, match=f"upgrade {first.pk} of the fleet is Running already"):
        _start(behind)
    assert _sent() == []


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"percent": 0}, InvalidInput, "percent is 0; expected 1 to 100"),
        ({"at_once": 101}, InvalidInput, "at_once is 101; expected 1 to 100"),
        ({"namespace": "A"}, InvalidInput, "namespace is 'A'"),
        ({"cluster": "gone"}, NotFound, "gone"),
        ({"namespace": "other"}, Conflict, "no service in namespace other is behind"),
    ],
)
def test_what_cannot_be_started(behind: Platform, asked: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _start(behind, **asked)


def test_a_service_with_a_rollout_of_its_own_waits_for_its_end(behind: Platform) -> None:
    upgrade = _start(behind)
    behind.version(2)
    behind.policy(name="quick", steps=[{"weight": 50, "pause": True}])
    behind.start("2", "quick")
    upgrade_advance(now=behind.clock())
    row = ServiceUpgrade.objects.get(upgrade=upgrade)
    assert (row.state, row.message) == (State.WAITING, f"waits for the end of the rollout to {SECOND}")
    assert Rollout.objects.count() == 1


def test_a_service_whose_file_is_not_what_it_serves_fails_with_the_reason(behind: Platform) -> None:
    service = InferenceService.objects.get()
    service.document["spec"]["predictor"]["minReplicas"] = 3
    service.save()
    upgrade = _start(behind)
    upgrade_advance(now=behind.clock())
    assert "would change more than its pods" in ServiceUpgrade.objects.get(upgrade=upgrade).message
    assert _moved(upgrade)[1] == State.FAILED


def test_stopped_and_deleted_services_are_skipped(behind: Platform) -> None:
    upgrade = _start(behind)
    service_stop(namespace="default", name="digits", actor="bob", now=behind.clock())
    upgrade_advance(now=behind.clock())
    assert _moved(upgrade) == (Phase.COMPLETE, State.SKIPPED)
    service_delete(namespace="default", name="digits", actor="bob", now=behind.clock())
    InferenceService.objects.all().delete()
    assert not ServiceUpgrade.objects.exists()
