"""Feedback of a service: nothing kept, labels on their way, quality of two revisions, values that cannot be read."""

import random
from datetime import timedelta

from django.utils import timezone

from accounts.domain.scopes import Scope
from clusters.models import Cluster
from deployments.models import InferenceService
from feedback.models import Answer, Label, ServiceScorer
from tests import scenes
from tests.browser.states.of_home import LONGEST
from tests.browser.states.state import PageStates, Stage, State
from tests.deployments._support.cluster_files import LEAST
from tests.feedback._support.scenes import DIGIT, Given, answered, kept, scorer, tensors


def _page(service: InferenceService) -> str:
    return f"/services/{service.namespace}/{service.name}/feedback/"


def _empty(_: Stage) -> str:
    return _page(scenes.service())


def _waiting(_: Stage) -> str:
    service, now = scenes.service(), timezone.now()
    kept(service, now, rows=120, bytes=24_000)
    InferenceService.objects.update(kept_percent=100)
    scorer(service, now)
    Label.objects.create(
        service=service, request_id="r1", value=1, given_at=now, given_by="alice", received_at=now, next_try_at=now
    )
    return _page(service)


def scored(name: str = "digits", hours: int = 60, per_hour: int = 12) -> InferenceService:
    """Return a service with scores of two revisions over hours, with slices and worst answers."""
    service, now, seeded = scenes.service(name), timezone.now(), random.Random(3)
    scenes.rollout(service)
    kept(service, now, parameters=["region", "channel"], outputs=["probabilities"], keeps_inputs=True)
    InferenceService.objects.update(kept_percent=100)
    right, far = scorer(service, now), scorer(service, now, "how-far-off", "absoluteError", bound=20)
    ServiceScorer.objects.filter(pk=far.pk).update(
        unscored=3, unscored_reason="the label is 'seven'; expected a number"
    )
    values = {"inputs": tensors(pixels=DIGIT), "outputs": tensors(probabilities=[0.02, 0.05, 0.93])}
    given = []
    for hour in range(hours):
        if hour in (20, 21, 22):
            continue  # nobody sent requests
        for revision, wrong in ((f"{name}-00001", 0.04), (f"{name}-00002", 0.12)):
            if revision.endswith("2") and hour > hours // 2:
                continue
            for number in range(per_hour):
                region = seeded.choice(("north", "south", "a-region-with-quite-a-long-name-of-its-own"))
                is_wrong = seeded.random() < (0.5 if wrong > 0.1 and region == "south" else wrong)
                given.append(
                    Given(
                        f"{hour:03}-{number:03}-{revision}-{'f' * 20}",
                        revision,
                        now - timedelta(hours=hour, minutes=4 * number),
                        top=[[8 if is_wrong else 3, 0.93]],
                        loss=float(is_wrong),
                        delay_s=seeded.expovariate(1 / 300),
                        parameters={"region": region, "channel": seeded.choice(("app", "web"))},
                        values=values if is_wrong else None,
                    )
                )
    answered(service, [right], given)
    answered(service, [far], [Given("far", f"{name}-00001", now, top=[[0, 17.25]], label=12.5, loss=0.2375)])
    return service


def _busy(_: Stage) -> str:
    return f"{_page(scored(LONGEST))}?scorer=right"


def _reader(_: Stage) -> str:
    return f"{_page(scored(hours=2))}?scorer=right"


def _unreadable(_: Stage) -> str:
    service = scored(hours=2)
    Answer.objects.exclude(sealed=b"").update(sealed=b"damaged")
    return f"{_page(service)}?scorer=right"


def _cannot(_: Stage) -> str:
    service = scenes.service()
    Cluster.objects.update(kind="kubernetes", document={**LEAST, "name": "local"})
    return _page(service)


PAGES = {
    "deployments:feedback": PageStates(
        title="Feedback of",
        states={
            "empty": State(_empty, "Complete three steps"),
            "empty-waiting": State(_waiting, "No scores in the last"),
            "busy": State(_busy, "canary worse"),
            "busy-reader": State(_reader, "They show clients", scope=Scope.READ),
            "error": State(_unreadable, "FAIRLEAD_SECRET_KEY"),
            "error-cannot": State(_cannot, "cannot keep answers"),
        },
    ),
}
