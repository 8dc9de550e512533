"""Services whose answers cannot be kept, and what keeping changes of how often a service is looked at."""

import sqlite3
from pathlib import Path

import pytest
from django.db import connection

from clusters.models import Cluster
from common.errors import Conflict, NotFound
from deployments.models import InferenceService, Revision
from deployments.services import service_delete
from feedback.models import Answer, Kept
from feedback.services.answers import KeepOrder, answers_keep, answers_stop
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform
from tests.feedback._support.keeping import SERVICE, Keeping


def keep(platform: Platform) -> None:
    answers_keep(**SERVICE, order=KeepOrder(), actor="alice", now=platform.clock())


def test_a_service_that_is_not_there(platform: Platform) -> None:
    with pytest.raises(NotFound, match="there is no service default/digits"):
        keep(platform)


def test_a_cluster_that_cannot_record_is_refused(platform: Platform) -> None:
    platform.live()
    Cluster.objects.update(kind="kubernetes", document={**LEAST, "name": "local"})
    with pytest.raises(Conflict, match="runs on cluster local, whose file says no controlPlaneUrl"):
        keep(platform)


def test_a_pool_is_refused(platform: Platform) -> None:
    platform.live()
    Revision.objects.update(pool="default/warm")
    with pytest.raises(Conflict, match="model pool default/warm serves many models and gives Fairlead no answers"):
        keep(platform)


def test_a_custom_predictor_is_refused(platform: Platform) -> None:
    platform.live()
    Revision.objects.update(custom={"image": "registry/x@sha256:1"})
    with pytest.raises(Conflict, match="a custom predictor, whose container gives Fairlead no answers to keep"):
        keep(platform)


def test_a_service_that_keeps_answers_has_turns_all_the_time(platform: Platform) -> None:
    platform.live()
    platform.turn()
    assert is_settled()
    keep(platform)
    for _ in range(3):
        platform.turn()
        assert not is_settled()
    answers_stop(**SERVICE, actor="bob", now=platform.clock())
    for _ in range(3):
        platform.turn()
    assert is_settled()


def is_settled() -> bool:
    service = InferenceService.objects.get()
    return service.settled == service.changes


def test_everything_goes_with_the_service(platform: Platform) -> None:
    keeping = Keeping(platform)
    keeping.answer("a")
    service_delete(namespace="default", name="digits", actor="bob", now=platform.clock())
    while InferenceService.objects.exists():
        platform.turn()
    assert not Kept.objects.exists()
    assert not Answer.objects.exists()


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="looks into the database's file")
def test_the_database_holds_no_value_as_it_was(platform: Platform, tmp_path: Path) -> None:
    keeping = Keeping(platform, outputs=["label"], keeps_inputs=True)
    keeping.answer("a")
    file = tmp_path / "copy.sqlite3"
    with sqlite3.connect(file) as copy:
        for line in connection.connection.iterdump():
            copy.execute(line)
    content = file.read_bytes()
    assert b"271828.25" not in content
    assert bytes(Answer.objects.get().sealed) in content
