"""A platform whose clients' requests get labels: they are scored in the tables as late as each label comes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from deployments.models import AnalysisRun, InferenceService, Rollout
from feedback.models import Kept, Score, ServiceScorer
from tests.deployments._support.platform import Platform

STABLE, CANARY = "digits-00001", "digits-00002"
Loss = Callable[[np.random.Generator, int], Any]


def wrong(share: float) -> Loss:
    """Return losses of answers of which so many are wrong."""
    return lambda random, count: (random.random(count) < share).astype(float)


@dataclass
class LabelledPlatform(Platform):
    """Every turn brings traffic of both sides; labels come `delay_s` after it.

    Attributes:
        losses: by revision.
        share: of the answers that get a label at all, by revision.
        copies: the canary gets copies of all requests.
        parameters: of the requests; makes them of a random generator.
    """

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    losses: dict[str, Loss] = field(default_factory=lambda: {STABLE: wrong(0.02), CANARY: wrong(0.02)})
    share: dict[str, float] = field(default_factory=dict)
    delay_s: float = 4.0
    copies: bool = False
    parameters: Callable[[np.random.Generator], dict[str, str]] = lambda _random: {}
    coming: list[tuple[datetime, Score]] = field(default_factory=list)
    requests: int = 0

    def keeps_again(self) -> None:
        """Keep the service's answers."""
        said = {"created_at": self.clock(), "created_by": "alice"}
        Kept.objects.create(
            service=InferenceService.objects.get(), share_percent=100, days=30, max_rows=10**6, max_bytes=2**30, **said
        )

    def keeps(self, kind: str = "accuracy", **options: Any) -> ServiceScorer:
        """Keep the service's answers, and score them."""
        self.keeps_again()
        service, said = InferenceService.objects.get(), {"created_at": self.clock(), "created_by": "alice"}
        return ServiceScorer.objects.create(service=service, name="accuracy", kind=kind, options=options, **said)

    def rolls_out(self, quality: dict[str, Any], *, step: dict[str, Any] | None = None, **policy: Any) -> Rollout:
        """Begin a rollout to version 2 by one step with a gate on quality."""
        self.version(2)
        gate = {"minRequests": 50, "quality": {"scorer": "accuracy", "maxWorse": 2, **quality}}
        steps = [{"weight": 20, **(step or {}), "analysis": gate}]
        self.policy(name="labelled", **{"steps": steps, "onInconclusive": "abort", **policy})
        return self.start(policy="labelled")

    def label(self, requests: int = 60, *, weight: int = 20) -> None:
        """Answer requests, and let the labels come that are due."""
        scorer, now = ServiceScorer.objects.get(), self.clock()
        for _ in range(requests):
            self.requests += 1
            is_canary = self.random.random() < weight / 100
            sides = (STABLE, CANARY) if self.copies and weight else ((CANARY,) if is_canary else (STABLE,))
            parameters, luck = self.parameters(self.random), self.random.random()
            for revision in sides:
                if luck >= self.share.get(revision, 1.0):
                    continue
                due = now + timedelta(seconds=self.delay_s)
                score = Score(
                    scorer=scorer, request_id=f"r-{self.requests}", revision=revision, answered_at=now,
                    labelled_at=due, scored_at=due, loss=float(self.losses[revision](self.random, 1)[0]),
                    parameters=parameters,
                )  # fmt: skip
                self.coming.append((due, score))
        Score.objects.bulk_create([score for due, score in self.coming if due <= now])
        self.coming = [(due, score) for due, score in self.coming if due > now]

    def turns(self, seconds: float, *, every: float = 2.0, until: Callable[[], object] = lambda: False) -> None:
        """Let time pass with traffic and labels."""
        for _ in range(round(seconds / every)):
            if until():
                return
            is_gated = AnalysisRun.objects.filter(rollout__finished_at=None).exists()
            weight = (self.copies_now() or self.cluster.weights().get(CANARY, 0)) if is_gated else 0
            self.traffic(60)
            self.label(60, weight=weight)
            self.turn(seconds=every)

    def copies_now(self) -> int:
        return self.cluster.copies().get(CANARY, 0)

    def reason(self) -> tuple[str, str]:
        return self.rollout().reason_code, self.rollout().reason_message

    def measured(self, metric: str = "quality:accuracy", step_index: int | None = 0) -> dict[str, Any]:
        run = AnalysisRun.objects.get(step_index=step_index)
        found: dict[str, Any] = next(each for each in run.measurements if each["metric"] == metric)
        return found

    def watched(self, step_index: int | None = 0) -> dict[str, Any]:
        found: dict[str, Any] = AnalysisRun.objects.get(step_index=step_index).evidence["labels"]["accuracy"]
        return found

    def blocks(self, step_index: int | None = 0) -> float:
        """Return how many blocks of labelled answers the attempt has had."""
        wealth = AnalysisRun.objects.get(step_index=step_index).evidence["wealth"]["quality:accuracy"]
        return float(wealth["moments"][0])
