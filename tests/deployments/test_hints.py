from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Never

import pytest
from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from deployments.models import InferenceService
from tests.deployments.conftest import Platform

Capture = Callable[..., AbstractContextManager[list[Any]]]


def _messages() -> list[str]:
    return [path.read_text() for path in (settings.HOME / "broker" / "queue").iterdir()]


def test_a_change_sends_a_hint_once_it_is_committed(
    platform: Platform, django_capture_on_commit_callbacks: Capture
) -> None:
    for folder in ("queue", "processed"):
        (settings.HOME / "broker" / folder).mkdir(parents=True, exist_ok=True)
    platform.version(1)
    with django_capture_on_commit_callbacks(execute=True):
        before = len(_messages())
        platform.apply(policy=None)
        assert len(_messages()) == before, "not before the commit"
    assert len(_messages()) == before + 1
    assert any("deployments.tasks.reconcile" in message for message in _messages())


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
