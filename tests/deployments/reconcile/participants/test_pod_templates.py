"""When a revision's pod template is pinned, and that it then stays."""

from typing import Any

from common.errors import Unavailable
from deployments.models import InferenceService, Revision
from deployments.services import service_stop
from integrations.clusters.base import Desired, DesiredRevision
from tests.deployments._support.platform import Platform

FIRST, SECOND = "digits-00001", "digits-00002"
OLD: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{"name": "runtime", "image": "runtime:1"}]}}
NEW: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{"name": "runtime", "image": "runtime:2"}]}}


def _template(name: str) -> dict[str, Any]:
    return dict(Revision.objects.get(name=name).pod_templates)


def _applied(platform: Platform, name: str) -> DesiredRevision:
    return next(each for each in platform.cluster.applied[-1].revisions if each.name == name)


def test_a_revision_is_pinned_once_a_replica_is_ready(platform: Platform) -> None:
    platform.version(1)
    platform.cluster.broken[FIRST] = "the image cannot be pulled"
    platform.cluster.templates = {FIRST: {FIRST: OLD}}
    platform.apply(policy=None)
    for _ in range(3):
        platform.turn()
    assert _template(FIRST) == {}, "a corrected cluster file still reaches it"
    assert not _applied(platform, FIRST).has_served
    platform.cluster.broken.clear()
    for _ in range(2):
        platform.turn()
    assert _template(FIRST) == {FIRST: OLD}
    assert _applied(platform, FIRST).pod_templates == {FIRST: OLD}
    assert _applied(platform, FIRST).has_served


def test_a_pinned_revision_keeps_its_template_and_the_next_one_gets_its_own(platform: Platform) -> None:
    _serving(platform)
    platform.cluster.templates = {FIRST: {FIRST: NEW}, SECOND: {SECOND: NEW}}
    platform.promoted(2)
    assert _template(FIRST) == {FIRST: OLD}
    assert _template(SECOND) == {SECOND: NEW}


def test_pinning_is_no_new_desired_state(platform: Platform) -> None:
    platform.version(1)
    platform.apply(policy=None)
    for _ in range(3):
        platform.turn()
    before = InferenceService.objects.get().generation
    platform.cluster.templates = {FIRST: {FIRST: OLD}}
    platform.turn()
    assert _template(FIRST) == {FIRST: OLD}
    assert InferenceService.objects.get().generation == before


def test_a_stopped_service_of_an_earlier_release_is_pinned_as_it_served(platform: Platform) -> None:
    platform.version(1)
    platform.apply(policy=None)
    for _ in range(3):
        platform.turn()
    service_stop(namespace="default", name="digits", actor="alice", now=platform.clock())
    for _ in range(2):
        platform.turn()
    platform.cluster.templates = {FIRST: {FIRST: OLD}}
    platform.turn()
    assert _template(FIRST) == {FIRST: OLD}


def test_templates_that_cannot_be_read_hold_up_no_turn(platform: Platform) -> None:
    platform.version(1)
    platform.apply(policy=None)
    for _ in range(3):
        platform.turn()

    def away(_desired: Desired) -> None:
        raise Unavailable("the API server does not answer")

    platform.cluster.on_templates = away
    platform.cluster.templates = {FIRST: {FIRST: OLD}}
    applied = len(platform.cluster.applied)
    platform.turn()
    assert len(platform.cluster.applied) == applied + 1
    assert _applied(platform, FIRST).has_served, "the cluster keeps what runs meanwhile"
    assert _template(FIRST) == {}


def _serving(platform: Platform) -> None:
    platform.version(1)
    platform.cluster.templates = {FIRST: {FIRST: OLD}}
    platform.apply(policy=None)
    for _ in range(3):
        platform.turn()
    assert _template(FIRST) == {FIRST: OLD}


def test_what_a_new_revision_would_get_is_recorded_until_one_has_it(platform: Platform) -> None:
    _serving(platform)
    platform.cluster.changes = {FIRST: "image runtime:1 -> runtime:2"}
    for _ in range(2):
        platform.turn()
    assert [each.template_changes for each in platform.view().revisions] == ["image runtime:1 -> runtime:2"]
    changes = InferenceService.objects.get().changes
    platform.turn()
    assert InferenceService.objects.get().changes == changes, "the same again is no change"
    platform.cluster.changes = {}
    platform.turn()
    assert [each.template_changes for each in platform.view().revisions] == [""]
