from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from queue import Empty
from typing import Any, Never

import pytest
from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from deployments.models import InferenceService
from tests._support.small_disk import filled, small_disk
from tests.deployments._support.platform import Platform

Capture = Callable[..., AbstractContextManager[list[Any]]]


def _taken() -> list[str]:
    """Take all hints out of the broker that the settings name; return the names of their tasks."""
    names = []
    with current_app.connection_for_read() as connection, connection.SimpleQueue("celery") as queue, suppress(Empty):
        while True:
            message = queue.get_nowait()
            message.ack()
            names.append(message.headers["task"])
    return names


def test_a_change_sends_a_hint_once_it_is_committed(
    platform: Platform, django_capture_on_commit_callbacks: Capture
) -> None:
    for folder in ("queue", "processed", "control"):
        (settings.HOME / "broker" / folder).mkdir(parents=True, exist_ok=True)
    platform.version(1)
    with django_capture_on_commit_callbacks(execute=True):
        _taken()
        platform.apply(policy=None)
        assert _taken() == [], "not before the commit"
    assert _taken() == ["deployments.tasks.reconcile"]


def test_without_a_broker_the_change_stands_and_the_log_says_so(
    platform: Platform,
    django_capture_on_commit_callbacks: Capture,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: object, **__: object) -> Never:
        raise OperationalError("the broker is away")

    monkeypatch.setattr(current_app, "send_task", refuse)
    platform.version(1)
    with django_capture_on_commit_callbacks(execute=True):
        platform.apply(policy=None)
    assert InferenceService.objects.exists()
    assert "was not sent, the next sweep will find it: the broker is away" in caplog.text


def test_on_a_full_disk_the_change_stands_that_was_committed(
    platform: Platform, django_capture_on_commit_callbacks: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    if not settings.BROKER_URL.startswith("filesystem:"):
        pytest.skip("the broker has no files")
    (settings.HOME / "broker" / "control").mkdir(parents=True, exist_ok=True)
    platform.version(1)
    with small_disk(settings.HOME / "broker" / "queue", 64) as queue:
        with filled(queue), django_capture_on_commit_callbacks(execute=True):
            platform.apply(policy=None)
        assert "was not sent, the next sweep will find it: cannot add file" in caplog.text
        assert list(queue.iterdir()) == []
