"""What was recorded for a service beside what its cluster was told: the two must tell the same story."""

import threading
from dataclasses import dataclass, field
from itertools import groupby

from django.db import transaction

from deployments.models import InferenceService
from deployments.reconcile.service_change import load
from integrations.clusters.base import Desired
from tests.deployments._support.platform import Platform

Weights = tuple[tuple[str, int], ...]
Replicas = tuple[tuple[str, int], ...]
Entry = tuple[int, Weights, Replicas]


@dataclass
class Ledger:
    """Watches one service; `note_recorded` is to be called after every turn, whatever became of it.

    Attributes:
        recorded, applied: the wishes in the order in which they were first seen: (generation, weights above zero,
            replicas).
    """

    platform: Platform
    recorded: list[Entry] = field(default_factory=list)
    applied: list[Entry] = field(default_factory=list)
    _noting: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.platform.cluster.on_apply = self._note_applied
        self.note_recorded()

    def note_recorded(self) -> None:
        """Write down what the database wishes now: as one moment has it, and in the order in which threads read it."""
        with self._noting, transaction.atomic():
            service = InferenceService.objects.select_for_update().get()  # whoever records has this lock
            wish = _entry(load(service.pk, now=self.platform.clock()).desired())
            if not self.recorded or self.recorded[-1] != wish:
                self.recorded.append(wish)

    def _note_applied(self, desired: Desired) -> None:
        self.note_recorded()
        assert _entry(desired) == self.recorded[-1], "what is applied is what is recorded at that moment"
        if self.applied:
            assert desired.generation >= self.applied[-1][0], "a lower generation is never applied"
        self.applied.append(_entry(desired))

    def check(self) -> None:
        """Assert that the applied weights are exactly the recorded sequence."""
        recorded, applied = self._weights(self.recorded), self._weights(self.applied)
        assert applied == recorded[-len(applied) :]
        assert len(applied) >= len(recorded) - 1, "at most what was wished before the watching began is missing"

    @staticmethod
    def _weights(entries: list[Entry]) -> list[Weights]:
        return [weights for weights, _ in groupby(weights for _, weights, _ in entries)]


def _entry(desired: Desired) -> Entry:
    weights = sorted((each.name, each.weight_percent) for each in desired.revisions if each.weight_percent)
    replicas = sorted((each.name, each.replicas) for each in desired.revisions)
    return desired.generation, tuple(weights), tuple(replicas)
