"""One service, its rollouts, its configuration, the lines of its replicas."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from clusters.models import Cluster
from deployments.domain.phases import Code, Phase
from deployments.domain.service_state.desired import Role
from deployments.domain.service_state.drift import note, to_json
from deployments.domain.service_state.owner import Owner, owner_json
from deployments.models import InferenceService, Revision, Rollout, TrafficPoint
from deployments.reconcile.service_change import changing
from deployments.services import rollout_abort, service_stop
from deployments.web.services import log_views
from integrations.clusters.base import Drift, Observed, ObservedReplica, ObservedRevision, ReplicaPhase
from recordings.models import Recording
from tests import comparisons, measuring, scenes
from tests.browser.states.of_home import FAILED, LONGEST, PAUSED, WAVE, grows_old, silence
from tests.browser.states.state import PageStates, Stage, State
from tests.deployments._support.fakes import FakeCluster


def canary_traffic(service: InferenceService) -> None:
    """Let the canary have had a fourth of what stable had, and fail more of it, in the second half of the time."""
    canary = Revision.objects.get(service=service, role=Role.CANARY)
    points = list(TrafficPoint.objects.filter(service=service).order_by("at"))
    TrafficPoint.objects.bulk_create(
        TrafficPoint(
            service=service,
            revision=canary,
            at=point.at,
            seconds=point.seconds,
            requests=point.requests // 4,
            server_errors=point.requests // 100,
            latency=[[1500.0, point.requests // 4]],
            replicas=1,
        )
        for point in points[len(points) // 2 :]
    )


def recorded(service: InferenceService) -> None:
    """Let requests of the service be recorded, and a replay of them wait."""
    now = timezone.now()
    row = Recording.objects.create(
        service=service,
        consent="Measurements of machines; no person is in them",
        share_percent=10.0,
        max_requests=10_000,
        max_bytes=1 << 30,
        requests=3210,
        bytes=48 << 20,
        created_at=now,
        created_by="alice",
        expires_at=now + timedelta(days=7),
    )
    scenes.replay(row)


def drifted(service: InferenceService) -> None:
    """Let somebody have changed an object of the service by hand."""
    drift = Drift("Service/digits-00001", "spec.type", '"ClusterIP"', '"NodePort"', "kubectl-edit", 0.0)
    InferenceService.objects.filter(pk=service.pk).update(drift=to_json(note((), [drift], timezone.now())[0]))


def canary_measured(row: Rollout) -> None:
    """Let the canary be at its second step with evidence from both."""
    row.confirmed_at -= timedelta(minutes=3)
    row.save()
    measuring.measure(row, looks=30, canary_errors=0.002)
    row.analysis_runs.update(finished_at=row.confirmed_at, verdict="Successful")
    scenes.move(row, step_index=1)
    measuring.measure(row, looks=60, canary_errors=0.013, per_look=25)


def _fail(row: Rollout) -> None:
    """End the rollout as its analysis does."""
    now = timezone.now()
    Rollout.objects.filter(pk=row.pk).update(finished_at=now, weight=0, **FAILED)
    row.analysis_runs.update(finished_at=now, verdict="Failed")


def _of(service: InferenceService) -> str:
    return f"/services/{service.namespace}/{service.name}/"


def _at(row: Rollout) -> str:
    return f"{_of(row.service)}rollouts/{row.pk}/"


def _service_new(_: Stage) -> str:
    return _of(scenes.service())


def _service_busy(_: Stage) -> str:
    service = scenes.service(LONGEST)
    scenes.traffic(service, *WAVE * 18, errors=0.002)
    canary_measured(scenes.rollout(service))
    canary_traffic(service)
    scenes.replicas(service)
    recorded(service)
    service.owner_object = owner_json(
        Owner("production-of-eu-west-1", "ml-of-the-fraud-team", LONGEST, "7c2f", adopts=False)
    )
    service.save(update_fields=["owner_object"])
    return _of(service)


def _objectives(service: InferenceService, availability: float) -> None:
    """Let the service have an objective of both kinds; 2 % of the answers in its history take longer than 3 ms."""
    objectives = {"availability": availability, "latency": {"percent": 97, "withinMs": 3}}
    service.document["spec"]["objectives"] = objectives
    service.save(update_fields=["document"])


def _service_new_with_objectives(_: Stage) -> str:
    service = scenes.service()
    _objectives(service, 99.9)
    return _of(service)


def _service_within_objectives(_: Stage) -> str:
    service = scenes.service()
    scenes.traffic(service, *WAVE * 18, errors=0.002)
    _objectives(service, 99.5)
    return _of(service)


def _service_overspent(_: Stage) -> str:
    service = scenes.service()
    scenes.traffic(service, *WAVE * 18, errors=0.02)
    _objectives(service, 99.9)
    return _of(service)


def _service_shadow(_: Stage) -> str:
    service = scenes.service()
    comparisons.compared_shadow(service)
    return _of(service)


def _service_of_images(_: Stage) -> str:
    service = scenes.service()
    canary_measured(scenes.rollout(service))
    scenes.turn_into_images(service)
    return _of(service)


def _service_asleep(_: Stage) -> str:
    service = scenes.sleeper()
    scenes.traffic(service, *WAVE * 4, until=timezone.now() - timedelta(hours=3))
    Cluster.objects.update(prices={"currency": "EUR", "per_hour": {"replica": 0.5}})
    return _of(service)


def _service_waking(_: Stage) -> str:
    return _of(scenes.sleeper(LONGEST, is_waking=True))


def _service_never_fits(_: Stage) -> str:
    scenes.model_pool("digits")
    scenes.never_fits("digits")
    return "/services/default/digits/"


def _service_stopped(_: Stage) -> str:
    service = scenes.service(LONGEST)
    scenes.traffic(service, *WAVE * 8, until=timezone.now() - timedelta(minutes=4))
    service_stop(namespace=service.namespace, name=service.name, actor="alice (token alice)", now=timezone.now())
    return _of(service)


def _service_error(_: Stage) -> str:
    service = scenes.service()
    scenes.promoted(service)
    row = scenes.rollout(service, version=3)
    scenes.failure(service, "digits-00002")
    scenes.replicas(service)
    drifted(service)
    with changing(service.pk, now=timezone.now()) as change:
        change.service.phase, change.service.reason = "Degraded", "no replica of digits-00002 is ready"
    _fail(row)
    return _of(service)


def _rollout_pending(_: Stage) -> str:
    row = scenes.rollout(scenes.service())
    row.analysis_runs.all().delete()
    Rollout.objects.filter(pk=row.pk).update(phase=Phase.PENDING, confirmed_at=None, weight=0)
    return _at(row)


def _rollout_again(_: Stage) -> str:
    row = scenes.rollout(scenes.service())
    measuring.measure(row, looks=30, canary_errors=0.002)
    row.analysis_runs.update(finished_at=timezone.now(), verdict="Failed")
    said = {"reason_code": Code.CANARY_STARTING, "reason_message": "attempt 2: the canary's replicas are being started"}
    scenes.move(row, attempt=2, phase=Phase.PENDING, **said)
    row.analysis_runs.filter(attempt=2).delete()
    Rollout.objects.filter(pk=row.pk).update(confirmed_at=None)
    return _at(row)


def _rollout_busy(_: Stage) -> str:
    row = scenes.rollout(scenes.service(LONGEST))
    canary_measured(row)
    return _at(row)


def _rollout_paused(_: Stage) -> str:
    row = scenes.rollout(scenes.service())
    scenes.move(row, step_index=1, **PAUSED)
    return _at(row)


def _rollout_shadow(_: Stage) -> str:
    return _at(comparisons.compared_shadow(scenes.service()))


def _rollout_degraded(_: Stage) -> str:
    row = scenes.rollout(scenes.service())
    row.confirmed_at -= timedelta(minutes=3)
    row.save()
    measuring.measure(row, looks=30, canary_errors=0.05)
    _fail(row)
    return _at(row)


def _rollout_aborted(_: Stage) -> str:
    row = scenes.rollout(scenes.service())
    scenes.move(row, step_index=1)
    rollout_abort(rollout_id=row.pk, actor="alice (token alice)", now=timezone.now(), comment="wrong labels")
    return _at(row)


def _config(_: Stage) -> str:
    return f"{_of(scenes.service(LONGEST))}config/"


def _looks_at_a_change(page: Page) -> None:
    page.get_by_label("Maximum replicas").fill("4")
    page.keyboard.press("Enter")
    expect(page.locator("#config-plan ins").first).to_be_visible()


def _looks_at_nonsense(page: Page) -> None:
    text = page.get_by_role("textbox", name="The service file as YAML")
    text.fill(text.input_value() + "metadata: {}\n")
    page.get_by_role("button", name="Preview file changes").click()
    expect(page.locator("#config-plan")).to_contain_text("is there twice")


class _Talking(FakeCluster):
    """A cluster whose replica says much, in long lines too."""

    def log(self, namespace: str, service: str, replica: str) -> tuple[str, ...]:
        super().log(namespace, service, replica)
        said = [
            f"2026-01-01T12:00:{second:02d}Z GET /v2/models/digits/infer 200 {second * 37} us" for second in range(60)
        ]
        return (*said, "x" * 400, "Traceback: größer als erlaubt: モデルが大きすぎます")


def _replica(stage: Stage, cluster: FakeCluster) -> str:
    service = scenes.service()
    replica = ObservedReplica("digits-00001-0", ReplicaPhase.READY)
    seen = Observed("default", "digits", 1, (ObservedRevision("digits-00001", 100, (replica,)),))
    cluster.observed[("default", "digits")] = seen
    stage.patch.setattr(log_views, "driver_now", lambda *_: cluster)
    return f"{_of(service)}replicas/digits-00001-0/log"


class _Silent(FakeCluster):
    """A cluster whose replica has said nothing yet."""

    def log(self, namespace: str, service: str, replica: str) -> tuple[str, ...]:
        super().log(namespace, service, replica)
        return ()


PAGES = {
    "deployments:service-detail": PageStates(
        title="digits",
        states={
            "empty": State(_service_new, "No rollouts yet"),
            "empty-objectives": State(_service_new_with_objectives, "no requests"),
            "busy": State(_service_busy, "Recorded requests", title=LONGEST),
            "busy-objectives": State(_service_within_objectives, "Error budget left"),
            "busy-images": State(_service_of_images, "registry.example.com/fraud/predictor"),
            "busy-shadow": State(_service_shadow, "clients never see"),
            "busy-stopped": State(_service_stopped, "its address answers 503", title=LONGEST),
            "busy-asleep": State(_service_asleep, "replica hours so far, which is"),
            "busy-waking": State(_service_waking, "is waking: a request came", title=LONGEST),
            "error": State(_service_error, "Last failure of"),
            "error-never-fits": State(_service_never_fits, "never fits into model pool"),
            "error-objectives": State(_service_overspent, "Used up"),
            "error-stale": State(_service_new, "Not live: this is how it was", silence, grows_old, is_refused=True),
        },
    ),
    "deployments:rollout-detail": PageStates(
        title="digits 1 → 2",
        states={
            "empty": State(_rollout_pending, "No requests counted yet"),
            "busy": State(_rollout_busy, "Decision", title=LONGEST),
            "busy-again": State(_rollout_again, "attempt 1"),
            "busy-paused": State(_rollout_paused, "Step 2 asks for a person"),
            "busy-shadow": State(_rollout_shadow, "Answers compared"),
            "error": State(_rollout_degraded, "The canary fails 4.1 %"),
            "error-aborted": State(_rollout_aborted, "wrong labels"),
            "error-stale": State(_rollout_paused, "Not live: this is how it was", silence, grows_old, is_refused=True),
        },
    ),
    "deployments:service-config": PageStates(
        title="Configuration of",
        states={
            "busy": State(_config, "Planned changes", act=_looks_at_a_change),
            "error": State(_config, "is there twice", act=_looks_at_nonsense),
        },
        without={"empty": "every service has a file"},
    ),
    "deployments:replica-log": PageStates(
        title="digits-00001-0",
        states={
            "empty": State(lambda stage: _replica(stage, _Silent()), "No output yet"),
            "busy": State(lambda stage: _replica(stage, _Talking()), "größer als erlaubt"),
            "error": State(
                lambda stage: _replica(stage, FakeCluster(away="the local agent does not answer")),
                "The local agent does not answer",
                status=503,
                title="Not available",
                is_refused=True,
            ),
        },
    ),
}
