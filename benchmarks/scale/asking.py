"""What is asked: pages and API calls through the whole of Django, each timed by what it costs the processors.

The time of a call is that of this process and of its database connection's process, as the kernel counts them, so that
neither what else a machine does nor the network is in it.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import connection
from django.test import Client

from accounts.domain.scopes import Scope
from benchmarks.scale.filling import BIG_MODEL
from deployments.selectors import change_marks
from tests import scenes

REPEATS = 5
_SERVICE, _MODEL = "service-00042", "model-000007"
_PAGES = {
    "Home": "/",
    "services": "/services/",
    "services, of a phase": "/services/?phase=Progressing",
    "services, searched": "/services/?q=service-00042",
    "services, all searched": "/services/?q=service",
    "services, none found": "/services/?q=nothing",
    "a service": f"/services/default/{_SERVICE}/",
    "models": "/models/",
    "models, searched": "/models/?search=model-000007",
    "models, all searched": "/models/?search=model",
    "models, none found": "/models/?search=nothing",
    "models with an alias": "/models/?alias=champion",
    "a model": f"/models/{_MODEL}/",
    "the largest model": f"/models/{BIG_MODEL}/",
    "a version": f"/models/{_MODEL}/versions/2/",
    "a version, to deploy": f"/deploy/{_MODEL}/2/",
    "audit": "/audit/",
    "audit, by user": "/audit/?user=user-7",
    "policies": "/policies/",
    "platform": "/platform/",
    "cluster": "/platform/clusters/local/",
    "GPUs": "/platform/clusters/local/gpus",
    "webhooks": "/webhooks/",
    "teams": "/teams/",
    "tokens": "/tokens/",
    "metrics": "/metrics",
}
_CALLS = {
    "services": "services",
    "services, newest": "services?ordering=-created_at",
    "services by name": "services?ordering=-name",
    "services, searched": "services?search=service-00042",
    "services, all searched": "services?search=service",
    "services of a phase": "services?phase=Progressing",
    "services of a model": f"services?model={_MODEL}",
    "a service": f"services/default/{_SERVICE}",
    "its events": f"services/default/{_SERVICE}/events",
    "its revisions": f"services/default/{_SERVICE}/revisions",
    "its rollouts": f"services/default/{_SERVICE}/rollouts",
    "its traffic": f"services/default/{_SERVICE}/traffic",
    "models": "models",
    "models, newest": "models?ordering=-created_at",
    "models, searched": "models?search=model-000007",
    "models, all searched": "models?search=model",
    "models by prefix": "models?name_prefix=model-00000",
    "models with a tag": "models?tag=team%3Dteam-7",
    "models with an alias": "models?alias=champion",
    "models of a platform": "models?platform=onnxruntime_onnx",
    "a model": f"models/{_MODEL}",
    "versions of the largest model": f"models/{BIG_MODEL}/versions",
    "the same, by size": f"models/{BIG_MODEL}/versions?ordering=-size_bytes",
    "the same, rejected ones": f"models/{BIG_MODEL}/versions?status=REJECTED",
    "a version": f"models/{_MODEL}/versions/2",
    "audit": "audit",
    "audit by actor": "audit?actor=user-7+%28token+ci%29",
    "audit by action": "audit?action=model_version.register",
    "audit of an object": f"audit?target=models/{_MODEL}/versions/2",
    "audit under an object": f"audit?under=models/{_MODEL}",
    "audit by request": "audit?request_id=0123456789abcdef",
    "policies": "policies",
    "clusters": "clusters",
    "who am I": "whoami",
    "Prometheus targets": "prometheus/targets",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What one call took: queries, milliseconds of processors (median), bytes of the answer."""

    queries: int
    processor_ms: float
    bytes: int


class Asking:
    """Somebody who may see everything, with a browser and with a token."""

    def __init__(self) -> None:
        token = scenes.token(Scope.ADMIN, "root")
        self._browser = Client(raise_request_exception=True)
        self._browser.post("/signin/", {"token": token})
        self._program = Client(headers={"Authorization": f"Bearer {token}"})

    def everything(self) -> Mapping[str, Asked]:
        """Return what each page and call took."""
        found = {f"page: {name}": self._asked(self._browser, path) for name, path in _PAGES.items()}
        found |= {f"API: {name}": self._asked(self._program, f"/api/v1/{path}") for name, path in _CALLS.items()}
        return found | {"open pages, each second": _taken(lambda: (change_marks([1, 2, 3]), 0)[1])}

    def _asked(self, client: Client, path: str) -> Asked:
        def ask() -> int:
            answer = client.get(path)
            if answer.status_code != 200:
                raise RuntimeError(f"GET {path} answers {answer.status_code}: {answer.content[:300]!r}")
            return len(answer.content)

        return _taken(ask)


def _taken(ask: Callable[[], int]) -> Asked:
    ask()  # templates and plans are made
    with counted_queries() as queries:
        size = ask()
    times = []
    for _ in range(REPEATS):
        began = processor_s()
        ask()
        times.append(processor_s() - began)
    return Asked(queries.count, round(1000 * statistics.median(times), 2), size)


@dataclass
class Queries:
    """How many there were."""

    count: int = 0

    def __call__(self, execute: Callable[..., object], *args: object) -> object:
        """Let one through, as `execute_wrapper` wants it."""
        self.count += 1
        return execute(*args)


@contextmanager
def counted_queries() -> Iterator[Queries]:
    """Give the block a count of its queries."""
    queries = Queries()
    with connection.execute_wrapper(queries):
        yield queries


def processor_s() -> float:
    """Return how long processors have worked for this process and its database connection's so far."""
    connection.ensure_connection()
    backend: int = connection.connection.info.backend_pid
    on_processor_ns = int(Path(f"/proc/{backend}/schedstat").read_text().split()[0])
    return time.process_time() + on_processor_ns / 1e9
