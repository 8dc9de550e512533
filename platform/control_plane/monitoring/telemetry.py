"""Metrics of Celery's processes: counted by Celery's signals, served on their own page.

Web shows its metrics at `/metrics`, and listens on `FAIRLEAD_WEB_METRICS_ADDRESS`, the worker on
`FAIRLEAD_METRICS_ADDRESS` and beat on `FAIRLEAD_BEAT_METRICS_ADDRESS`, where those are set. Counters live in the
process, so a worker must run its tasks on threads (`--pool threads`), as `fairlead up` does.
"""

import logging
import time
from typing import Any

from celery.signals import after_task_publish, beat_init, task_failure, task_postrun, task_prerun, worker_ready
from django.conf import settings
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, start_http_server

logger = logging.getLogger(__name__)

TASK_DURATION = Histogram(
    "fairlead_task_duration_seconds",
    "Duration of one task in the worker.",
    ["task"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0),
)
TASKS_FAILED = Counter("fairlead_tasks_failed_total", "Tasks that ended with an unhandled exception.", ["task"])
TASKS_SENT = Counter("fairlead_tasks_sent_total", "Tasks this process handed to the broker.", ["task"])
_began: dict[str, float] = {}


@task_prerun.connect
def _note_begin(task_id: str, **_: object) -> None:
    _began[task_id] = time.monotonic()


@task_postrun.connect
def _note_end(task_id: str, task: Any, **_: object) -> None:
    began = _began.pop(task_id, None)
    if began is not None:
        TASK_DURATION.labels(task.name).observe(time.monotonic() - began)


@task_failure.connect
def _note_failure(sender: Any, **_: object) -> None:
    TASKS_FAILED.labels(sender.name).inc()


@after_task_publish.connect
def _note_sent(sender: Any, **_: object) -> None:
    TASKS_SENT.labels(str(sender)).inc()


@worker_ready.connect
def _serve_worker(**_: object) -> None:
    serve(settings.METRICS_ADDRESS)


@beat_init.connect
def _serve_beat(**_: object) -> None:
    # Also where the worker embeds it: that beat is a process of its own.
    serve(settings.BEAT_METRICS_ADDRESS)


def serve(address: tuple[str, int] | None, registry: CollectorRegistry = REGISTRY) -> None:
    """Serve this process's metrics, where an address for them is set.

    A port in use is logged and leaves the process without a page: it must not keep services from being reconciled.
    """
    if address is None:
        return
    host, port = address
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        logger.error("metrics cannot be served on %s: %s", place, error.strerror or error)
    else:
        logger.info("metrics are served on http://%s/metrics", place)
