"""What stands in for the cluster that services run on, in the sweeps that are measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from integrations.clusters.base import Observed, Sample
from tests.deployments._support.fakes import FakeCluster

_EDGES = (1000.0, 5000.0, 10_000.0)


@dataclass
class OutsideCluster(FakeCluster):
    """Runs what was applied, and nothing happens to it by itself."""

    def settle_applied(self) -> None:
        """Do what was applied since the last call."""
        for key in {(desired.namespace, desired.service) for desired in self.applied}:
            self.observed[key] = self._fulfilled(self.desired[key])
        self.applied.clear()


class Counters:
    """What clients get of every revision: twenty requests a second, one of a thousand of which fails."""

    def __init__(self) -> None:
        self._began = timezone.now()

    def __call__(self, observed: Observed, page_of: object = None) -> Sequence[Sample]:  # noqa: ARG002
        requests = round(20 * (timezone.now() - self._began).total_seconds())
        counts = (requests // 2, requests - requests // 2, 0, 0)
        return [
            each
            for revision in observed.revisions
            for each in (
                Sample("gateway", revision.name, 1.0, requests, 0, requests // 1000),
                Sample(f"{revision.name}-0", revision.name, 1.0, requests, 0, requests // 1000, _EDGES, counts),
            )
        ]
