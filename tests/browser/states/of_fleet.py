"""Upgrades of the fleet."""

from django.utils import timezone

from deployments.models import InferenceService, Revision
from fleet.domain.waves import State as ServiceState
from fleet.models import FleetUpgrade, ServiceUpgrade
from fleet.services.upgrades import upgrade_cancel, upgrade_pause, upgrade_start
from tests import scenes
from tests.browser.states.state import PageStates, Stage, State

CHANGES = (
    "image registry.example/fairlead/serving-runtime:0.2.0 -> 0.3.0; terminationGracePeriodSeconds 40 -> 70; "
    "container runtime: memory limit 2Gi -> 3Gi"
)
LONG = "as-long-a-name-as-a-service-can-have-" + "x" * 20


def _behind(*names: str) -> None:
    for name in names:
        scenes.service(name)
    Revision.objects.update(template_changes=CHANGES)


def _upgrade() -> FleetUpgrade:
    return upgrade_start(cluster="", namespace="", percent=25, at_once=5, actor="alice", now=timezone.now())


def _up_to_date(_: Stage) -> str:
    _behind("digits", "ranker")
    upgrade_cancel(upgrade_id=_upgrade().pk, actor="alice", now=timezone.now())
    Revision.objects.update(template_changes="")
    return "/platform/fleet/"


def _to_start(_: Stage) -> str:
    _behind("digits", "ranker", LONG)
    return "/platform/fleet/"


def _in_progress(_: Stage) -> str:
    _behind("digits", "ranker", "words", LONG)
    upgrade = _upgrade()
    service = InferenceService.objects.get(name="digits")
    rows = ServiceUpgrade.objects.filter(upgrade=upgrade)
    rows.filter(service__name=LONG).update(state=ServiceState.UPGRADED, ended_at=timezone.now())
    said = f"rollout {scenes.rollout(service).pk} is Progressing: 10 % of requests"
    rows.filter(service=service).update(state=ServiceState.UPGRADING, message=said)
    return "/platform/fleet/"


def _paused(_: Stage) -> str:
    _behind("digits", "ranker")
    upgrade = _upgrade()
    upgrade_pause(upgrade_id=upgrade.pk, actor="alice", now=timezone.now())
    why = "rollout 7 is Degraded: server errors rose from 0.1 % to 4 %"
    said = f"service default/digits failed ({why}); resume to go on without it, or cancel"
    FleetUpgrade.objects.update(message=said)
    failed = ServiceUpgrade.objects.filter(upgrade=upgrade, service__name="digits")
    failed.update(state=ServiceState.FAILED, message=why, ended_at=timezone.now())
    return "/platform/fleet/"


PAGES = {
    "deployments:fleet": PageStates(
        title="Fleet",
        states={
            "empty": State(_up_to_date, "Every service has the pods of the present release"),
            "busy": State(_in_progress, "10 % of requests"),
            "busy-to-start": State(_to_start, "Upgrade in waves"),
            "error": State(_paused, "resume to go on without it, or cancel"),
        },
    ),
}
