"""Home and the list of services: nothing yet, much at once, what broke, and a page that is not live any more."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from clusters.models import Cluster
from deployments.domain.phases import Code, Phase
from deployments.models import InferenceService, Revision, Rollout
from deployments.reconcile.service_change import changing
from deployments.services import service_stop
from registry.models import ModelVersion, RegisteredModel
from tests import scenes
from tests.browser.states.state import PageStates, Stage, State

LONGEST = "as-long-a-name-as-a-service-can-have-" + "x" * 20
WAVE = [30.0, 32.0, 36.0, 41.0, 44.0, 46.0, 43.0, 39.0, 35.0, 31.0, 28.0, 30.0]
PAUSED = {"phase": Phase.PAUSED, "reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}
FAILED = {
    "phase": Phase.DEGRADED,
    "reason_code": Code.ANALYSIS_FAILED,
    "reason_message": "the canary fails 4.1 % of its requests (37 of 902), and the limit is 1 %",
}


def silence(page: Page) -> None:
    """Let the page's stream end, and no other one begin; the page's clock is the test's."""
    page.clock.install()
    page.route("**/stream*", lambda route: route.abort())


def grows_old(page: Page) -> None:
    """Wait until the page says that it is not live."""
    page.clock.run_for(75_000)
    expect(page.locator("body[data-stale]")).to_be_attached()


def service_sick(name: str = "sick") -> InferenceService:
    """Return a service of which no replica is ready."""
    sick = scenes.service(name)
    with changing(sick.pk, now=timezone.now()) as change:
        change.service.phase, change.service.reason = "Degraded", f"no replica of {name}-00001 is ready"
        change.service.standing = "ReplicasNotReady"
    return sick


def rollout_failed(of: InferenceService, version: int = 3) -> Rollout:
    """Return a rollout that its analysis ended."""
    row = scenes.rollout(of, version=version)
    Rollout.objects.filter(pk=row.pk).update(finished_at=timezone.now(), **FAILED)
    return row


def cluster_away(name: str = "edge") -> Cluster:
    """Return a cluster that does not answer."""
    return Cluster.objects.create(
        name=name,
        kind="kubernetes",
        problem="https://edge.example:6443 did not answer within 5 s",
        silent_since=timezone.now(),
        created_at=timezone.now(),
    )


def version_awaited(model: str = "fraud-scores") -> ModelVersion:
    """Return a version that its model wants approved."""
    version = scenes.model_version(7, model)
    RegisteredModel.objects.filter(name=model).update(requires_approval=True)
    return version


def _home_empty(_: Stage) -> str:
    return "/"


def _home_busy(_: Stage) -> str:
    for name in ("digits", "ranker", "question-similarity"):
        scenes.traffic(scenes.service(name), *WAVE * 10)
    long = scenes.service(LONGEST)
    scenes.traffic(long, *[1200.0 + 40 * step for step in range(60)], errors=0.013)
    scenes.move(scenes.rollout(long), step_index=1, **PAUSED)
    scenes.move(scenes.rollout(scenes.service("scorer")), step_index=1, **PAUSED)
    scenes.rollout(scenes.service("detector"), step_index=1)
    version_awaited()
    return "/"


def service_stopped(name: str = "digits") -> InferenceService:
    """Return a service that served until four minutes ago."""
    service, now = scenes.service(name), timezone.now()
    scenes.traffic(service, *WAVE * 8, errors=0.01, until=now - timedelta(minutes=4))
    service_stop(namespace="default", name=name, actor="alice", now=now)
    with changing(service.pk, now=now) as change:
        change.service.observed = {}
        change.service.standing = ""
        change.service.reason = "it was stopped, and nothing of it runs; resume it to serve again"
    return service


def _home_stopped(_: Stage) -> str:
    service_stopped()
    return "/"


def _home_begins(_: Stage) -> str:
    service_stopped()
    scenes.move(scenes.rollout(scenes.service("ranker")), phase=Phase.PENDING, reason_message="the canary starts")
    return "/"


def _home_error(stage: Stage) -> str:
    _home_busy(stage)
    rollout_failed(scenes.service("segmenter"))
    service_sick()
    cluster_away()
    return "/"


def _services_busy(_: Stage) -> str:
    scenes.traffic(scenes.service(), *WAVE * 10)
    long = scenes.service(LONGEST)
    scenes.traffic(long, *[1200.0 + 40 * step for step in range(60)], errors=0.013)
    scenes.move(scenes.rollout(long), step_index=1, **PAUSED)
    ranker = scenes.service("ranker")
    placement = {"accelerator": "nvidia.com/mig-1g.10gb", "products": [], "why": "the least that holds it"}
    Revision.objects.filter(service=ranker).update(accelerator="auto", placement=placement)
    scenes.traffic(ranker, *[0.0] * 50, *[4.0, 9.0] * 15)
    done = scenes.rollout(ranker)
    Rollout.objects.filter(pk=done.pk).update(phase=Phase.HEALTHY, finished_at=timezone.now())
    scenes.copies(scenes.service("idle"), 60)
    return "/services/"


def _services_error(_: Stage) -> str:
    sick = service_sick()
    scenes.traffic(sick, *[20.0] * 40, *[0.0] * 6)
    rollout_failed(scenes.service("segmenter"))
    scenes.service("ranker")
    return "/services/"


def _services_none_found(_: Stage) -> str:
    scenes.service("ranker")
    return "/services/?q=nobody"


def _services_stopped(_: Stage) -> str:
    service_stopped()
    scenes.move(scenes.rollout(scenes.service("ranker")), phase=Phase.PENDING)
    return "/services/"


def _services_quiet(_: Stage) -> str:
    scenes.service()
    return "/services/"


PAGES = {
    "deployments:home": PageStates(
        title="Home",
        states={
            "empty": State(_home_empty, "Complete three steps"),
            "busy": State(_home_busy, "Promote or abort"),
            "busy-stopped": State(_home_stopped, "Nothing is live: 1 service is stopped."),
            "busy-begins": State(_home_begins, "Not begun"),
            "error": State(_home_error, "did not answer within 5 s"),
            "error-stale": State(_home_busy, "Not live: this is how it was", silence, grows_old, is_refused=True),
        },
    ),
    "deployments:service-list": PageStates(
        title="Services",
        states={
            "empty": State(lambda _: "/services/", "Clients call services"),
            "empty-none-found": State(_services_none_found, "No services match"),
            "busy": State(_services_busy, "1 to 50 of 64"),
            "busy-stopped": State(_services_stopped, "resume it to serve again"),
            "error": State(_services_error, "No replica of sick-00001 is ready"),
            "error-stale": State(_services_quiet, "Not live: this is how it was", silence, grows_old, is_refused=True),
        },
    ),
}
