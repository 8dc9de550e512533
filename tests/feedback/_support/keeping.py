"""A live service whose answers are kept, and the exchanges that its taps record."""

from typing import Any

from deployments.models import InferenceService
from feedback.models import Answer, Kept
from feedback.services.answers import KeepOrder, answers_keep
from integrations.clusters.base import Exchange, Tap
from tests.deployments._support.platform import Platform

SERVICE = {"namespace": "default", "name": "digits"}
PROBABILITIES = {"name": "probabilities", "datatype": "FP32", "shape": [2, 3], "data": [0.1, 0.7, 0.2, 0.5, 0.25, 0.25]}
LABEL = {"name": "label", "datatype": "INT64", "shape": [2], "data": [1, 0]}
INPUT = {"name": "image", "datatype": "FP32", "shape": [2, 2], "data": [0.5, 0.125, 271828.25, 0.0]}


class Keeping:
    """A live service, and what is kept of its answers."""

    def __init__(self, platform: Platform, **order: Any) -> None:
        self.platform = platform
        platform.live()
        self.keep(**order)
        platform.turn()

    def keep(self, **order: Any) -> Kept:
        return answers_keep(**SERVICE, order=KeepOrder(**order), actor="alice", now=self.platform.clock())

    def exchange(
        self,
        request_id: Any,
        revision: str = "digits-00001",
        *,
        after_s: float = 1.0,
        outputs: Any = (PROBABILITIES, LABEL),
        inputs: Any = (INPUT,),
        parameters: Any = None,
        error_code: str = "",
    ) -> Exchange:
        request = {"inputs": list(inputs), **({} if parameters is None else {"parameters": parameters})}
        at = self.platform.clock().timestamp() + after_s
        return Exchange(request_id, revision, "1", at, request, {"outputs": list(outputs)}, error_code)

    def record(self, *exchanges: Exchange) -> None:
        """Let taps have recorded these."""
        self.platform.cluster.recorded.setdefault(("default", "digits"), []).extend(exchanges)

    def answer(self, *names: str, **exchange: Any) -> None:
        """Let the service answer requests of these ids, and a turn read them."""
        self.record(*(self.exchange(name, **exchange) for name in names))
        self.platform.turn()

    def row(self) -> Kept:
        return Kept.objects.get()

    def ids(self, revision: str = "digits-00001") -> list[str]:
        return list(Answer.objects.filter(revision=revision).order_by("pk").values_list("request_id", flat=True))

    def taps(self) -> dict[str, Tap | None]:
        desired = self.platform.cluster.desired["default", "digits"]
        return {revision.name: revision.tap for revision in desired.revisions}

    def service(self) -> InferenceService:
        return InferenceService.objects.get()
