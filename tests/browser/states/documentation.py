"""What the documentation's pictures show: pages as they are in a good moment."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page

from registry.models import ModelVersion
from tests import scenes
from tests.browser.states import of_home, of_platform
from tests.browser.states.of_home import PAUSED, WAVE
from tests.browser.states.of_models import LINEAGE, measured
from tests.browser.states.of_services import canary_measured, canary_traffic
from tests.browser.states.state import Arrange, Stage


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the documentation.

    Attributes:
        name: of its file in `docs/images/`.
        height: of the screen that it shows, in pixels; the width is always the same.
    """

    name: str
    arrange: Arrange
    height: int
    act: Callable[[Page], None] = lambda _page: None


def _home(_: Stage) -> str:
    for name in ("digits", "ranker", "question-similarity"):
        scenes.traffic(scenes.service(name), *WAVE * 10)
    scenes.move(scenes.rollout(scenes.service("scorer")), step_index=1, **PAUSED)
    scenes.rollout(scenes.service("detector"), step_index=1)
    of_home.rollout_failed(scenes.service("segmenter"))
    return "/"


def _services(_: Stage) -> str:
    _home(_)
    scenes.traffic(of_home.service_sick("faces"), *[20.0] * 40, *[0.0] * 6)
    return "/services/"


def _service(_: Stage) -> str:
    service = scenes.service()
    scenes.traffic(service, *WAVE * 18, errors=0.002)
    canary_measured(scenes.rollout(service))
    canary_traffic(service)
    return "/services/default/digits/"


def _rollout(_: Stage) -> str:
    row = scenes.rollout(scenes.service())
    canary_measured(row)
    return f"/services/default/digits/rollouts/{row.pk}/"


def _version(_: Stage) -> str:
    scenes.service()
    scenes.model_version(2)
    version = scenes.model_version(3)
    measured(version)
    lineage = {
        **LINEAGE,
        "run_url": "https://ci.example/runs/1204",
        "parameters": {"learning_rate": 0.001, "epochs": 12},
    }
    said = "Tells digits of 8 x 8 pixels apart. Trained on *nine thousand* images."
    tags = {"team": "vision", "stage": "candidate"}
    ModelVersion.objects.filter(pk=version.pk).update(lineage=lineage, description=said, tags=tags)
    return "/models/digits/versions/3/"


PICTURES = [
    Picture("home", _home, 900),
    Picture("services", _services, 620),
    Picture("service-detail", _service, 860),
    Picture("rollout", _rollout, 1150),
    Picture("version", _version, 1000),
    Picture("gpus", of_platform.gpus_busy, 1000),
]
