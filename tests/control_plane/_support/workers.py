"""A Celery worker in a thread of the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from celery.contrib.testing.worker import start_worker

from control_plane.celery import app as platforms


@contextmanager
def working(app: Celery, **options: Any) -> Iterator[None]:
    """Run a worker of `app`, which is Celery's current application meanwhile; afterwards the platform's is again."""
    try:
        with start_worker(app, perform_ping_check=False, **options):
            yield
    finally:
        platforms.set_current()
        platforms.set_default()
