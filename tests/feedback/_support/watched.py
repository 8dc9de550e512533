"""A live service whose answers are kept, with requests of a shape that the test chooses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from feedback.models import DriftBlock, DriftFeature
from feedback.services.answers import KeepOrder, answers_keep
from integrations.clusters.base import Exchange
from tests.deployments._support.platform import Platform

SERVICE = {"namespace": "default", "name": "digits"}
STABLE, CANARY = "digits-00001", "digits-00002"
EVEN = (0.1,) * 10
OFTEN_3 = (0.07,) * 3 + (0.37,) + (0.26 / 6,) * 6
OF_CLASS, OF_SCORE, OF_MEAN = "class of label", "score of label", "mean of image"


@dataclass
class Watched:
    """A service that is watched; `feed` is a minute of requests and a turn."""

    platform: Platform
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    number: int = 0

    def __post_init__(self) -> None:
        self.platform.live()
        answers_keep(**SERVICE, order=KeepOrder(), actor="alice", now=self.platform.clock())
        self.platform.turn()

    def exchange(self, shares: Sequence[float], *, revision: str, moved: float, rows: int) -> Exchange:
        """Return a request of some rows with its answer."""
        self.number += 1
        images = self.random.normal(moved, 1, (rows, 40))
        classes = self.random.choice(len(shares), rows, p=np.array(shares) / sum(shares))
        scores = np.full((rows, len(shares)), 0.02)
        scores[np.arange(rows), classes] = self.random.uniform(0.5, 1, rows)
        return Exchange(
            f"request-{self.number}",
            revision,
            "1",
            self.platform.clock().timestamp(),
            {"inputs": [tensor("image", images)]},
            {"outputs": [tensor("label", scores)]},
        )

    def bring(self, *exchanges: Exchange) -> None:
        """Let the taps have recorded exchanges."""
        recorded = self.platform.cluster.recorded.setdefault(("default", "digits"), [])
        recorded.extend(exchanges)

    def feed(
        self,
        *,
        shares: Sequence[float] = EVEN,
        canary: Sequence[float] | None = None,
        moved: float = 0.0,
        minutes: int = 1,
        rows: int = 120,
    ) -> None:
        """Let minutes pass with so many rows in each, in requests of 60."""
        for _ in range(minutes):
            for revision, its in ((STABLE, shares), (CANARY, canary)):
                if its is not None:
                    made = [self.exchange(its, revision=revision, moved=moved, rows=60) for _ in range(rows // 60)]
                    self.bring(*made)
            self.platform.turn(seconds=61)

    def learn(self) -> None:
        """Let the reference be learned."""
        self.feed(minutes=24, rows=240)
        self.platform.clock.go_on(timedelta(days=7).total_seconds())
        self.feed(minutes=1)

    def row(self, name: str = OF_CLASS) -> DriftFeature:
        return DriftFeature.objects.get(name=name)

    def state(self, name: str = OF_CLASS) -> dict[str, Any]:
        found: dict[str, Any] = self.row(name).state or {}
        return found

    def bins(self, name: str = OF_CLASS) -> dict[str, Any]:
        found: dict[str, Any] = self.row(name).bins or {}
        return found

    def block(self) -> DriftBlock:
        return DriftBlock.objects.get()


def tensor(name: str, values: Any) -> dict[str, Any]:
    """Return a tensor of FP32 in V2's JSON form."""
    array = np.asarray(values, float)
    return {"name": name, "datatype": "FP32", "shape": list(array.shape), "data": array.ravel().tolist()}
