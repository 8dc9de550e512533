"""Model pools."""

import pools.selectors
from tests import scenes
from tests.browser.states.state import PageStates, Stage, State
from tests.pools._support.pages import PoolCluster, busy, thrashing

LONG = "as-long-a-name-as-a-service-can-have-" + "x" * 20
POOL = "/pools/default/warm"


def _none(_: Stage) -> str:
    scenes.service()
    return "/pools/"


def _several(_: Stage) -> str:
    scenes.model_pool("pooled", "another")
    scenes.model_pool(name=LONG)
    return "/pools/"


def _empty(stage: Stage) -> str:
    stage.patch.setattr(pools.selectors, "driver_now", lambda *_: PoolCluster({}))
    scenes.model_pool()
    return POOL


def _busy(stage: Stage) -> str:
    stage.patch.setattr(pools.selectors, "driver_now", lambda *_: busy())
    scenes.model_pool("pooled", "another", LONG)
    return POOL


def _small(stage: Stage) -> str:
    stage.patch.setattr(pools.selectors, "driver_now", lambda *_: thrashing())
    scenes.model_pool("pooled", LONG)
    scenes.never_fits(LONG)
    return POOL


def _away(stage: Stage) -> str:
    cluster = busy()
    cluster.away = "the cluster does not answer"
    stage.patch.setattr(pools.selectors, "driver_now", lambda *_: cluster)
    scenes.model_pool("pooled")
    return POOL


PAGES = {
    "deployments:pool-list": PageStates(
        title="Model pools",
        states={
            "empty": State(_none, "answers for many models from few replicas"),
            "busy": State(_several, LONG),
        },
        without={"error": "it reads the database alone"},
    ),
    "deployments:pool-detail": PageStates(
        title="default/warm",
        states={
            "empty": State(_empty, "The first request of a service loads its model"),
            "busy": State(_busy, "Slowest loads"),
            "busy-small": State(_small, "never fits: it is larger"),
            "error": State(_away, "Some figures are missing"),
        },
    ),
}
