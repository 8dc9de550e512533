"""Services that follow an object of a cluster: what the object would undo is refused, and no more."""

from collections.abc import Callable

import pytest

from common.errors import Conflict
from deployments.domain.service_state.owner import Owner, stored_owner
from deployments.models import InferenceService
from deployments.services import (
    service_apply,
    service_delete,
    service_restart,
    service_resume,
    service_rollback,
    service_stop,
)
from tests.deployments._support.platform import Platform

OWNER = Owner("production", "default", "digits", uid="1")


def followed(platform: Platform, owner: Owner = OWNER) -> InferenceService:
    platform.live()
    platform.promoted()
    document = InferenceService.objects.get().document
    service, created = service_apply(
        document=document, namespace=None, name=None, actor="git", now=platform.clock(), by=owner
    )
    assert not created
    assert stored_owner(service.owner_object) == owner
    return service


def changes(platform: Platform) -> dict[str, Callable[[], object]]:
    named = {"namespace": "default", "name": "digits", "actor": "alice"}
    return {
        "apply": lambda: platform.apply(uri="models:/digits/2", replicas=2),
        "roll out": lambda: platform.start("1"),
        "undo": lambda: service_rollback(**named, revision=None, now=platform.clock()),
        "stop": lambda: service_stop(**named, now=platform.clock()),
        "resume": lambda: service_resume(**named, now=platform.clock()),
        "delete": lambda: service_delete(**named, now=platform.clock()),
    }


def test_each_change_that_the_object_would_undo_is_refused_with_its_name(platform: Platform) -> None:
    service = followed(platform)
    for change in changes(platform).values():
        with pytest.raises(Conflict, match="follows the object InferenceService default/digits on cluster production"):
            change()
    other = Owner("production", "default", "digits", uid="2")
    with pytest.raises(Conflict, match="follows the object"):
        service_apply(document=service.document, namespace=None, name=None, actor="git", now=platform.clock(), by=other)
    service_restart(namespace="default", name="digits", actor="alice", now=platform.clock())


def test_an_object_that_adopts_changes_refuses_none(platform: Platform) -> None:
    followed(platform, Owner("production", "default", "digits", uid="1", adopts=True))
    for change in changes(platform).values():
        change()
    assert InferenceService.objects.get().deleting_at is not None


def test_its_object_deletes_it(platform: Platform) -> None:
    followed(platform)
    service_delete(namespace="default", name="digits", actor="git", now=platform.clock(), by=OWNER)
    assert InferenceService.objects.get().phase == "Deleting"
