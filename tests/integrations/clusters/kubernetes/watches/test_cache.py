"""What the cache knows after lists, events and writes of our own, in whatever order they come."""

import copy
from typing import Any

import pytest

from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.manifests.names import MANAGED, SERVICE
from integrations.clusters.kubernetes.watches.cache import EVERYWHERE, Cache, Key, Known, key_of

KIND = resource_types.DEPLOYMENT
DIGITS = {SERVICE: "digits"}
TIME = "2026-01-01T00:00:00Z"


def item(name: str, version: int, service: str = "digits", namespace: str = "team", **more: Any) -> dict[str, Any]:
    labels = {**MANAGED, SERVICE: service}
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata, "spec": {"replicas": version}, **more}


def known(*items: dict[str, Any], kind: resource_types.Kind = KIND) -> dict[Key, Known]:
    return {key_of(each): Known.of(kind, each) for each in items}


def names(cache: Cache, service: str = "digits") -> list[str]:
    return [each["metadata"]["name"] for each in cache.list(KIND, "team", {SERVICE: service})]


@pytest.fixture
def cache() -> Cache:
    """Give a cache of one namespace with two objects of two services, as of version 5."""
    made = Cache()
    made.keep(["team"])
    made.list_begins(KIND)
    assert made.listed(KIND, EVERYWHERE, known(item("a", 1), item("b", 2, "letters")), "5") == {
        ("team", "digits"),
        ("team", "letters"),
    }
    return made


def test_it_covers_a_kind_once_that_was_listed_and_until_its_watch_is_lost(cache: Cache) -> None:
    assert cache.covers(KIND, "team")
    assert not cache.covers(KIND, "another")
    assert not cache.covers(resource_types.POD, "team")
    cache.lost(KIND, EVERYWHERE)
    assert not cache.covers(KIND, "team")


def test_it_gives_back_what_it_was_given_with_its_version(cache: Cache) -> None:
    found = cache.get(KIND, "team", "a")
    assert found is not None
    assert (found["kind"], found["metadata"]["resourceVersion"], found["spec"]) == ("Deployment", "1", {"replicas": 1})
    assert cache.get(KIND, "team", "c") is None
    assert names(cache) == ["a"]


@pytest.mark.parametrize(
    ("items", "services"),
    [
        pytest.param([item("a", 1), item("b", 2, "letters")], set(), id="nothing"),
        pytest.param([item("a", 7), item("b", 2, "letters")], {"digits"}, id="one changed"),
        pytest.param([item("a", 1)], {"letters"}, id="one went"),
        pytest.param([item("a", 1), item("b", 2, "letters"), item("c", 8, "third")], {"third"}, id="one came"),
        pytest.param([item("a", 7, "other"), item("b", 2, "letters")], {"digits", "other"}, id="one changed hands"),
    ],
)
def test_a_later_list_reports_what_changed_since(items: list[Any], services: set[str], cache: Cache) -> None:
    assert cache.listed(KIND, EVERYWHERE, known(*items), "9") == {("team", service) for service in services}


def test_a_list_does_not_undo_what_was_written_after_it(cache: Cache) -> None:
    cache.written(KIND, item("c", 12))
    assert cache.listed(KIND, EVERYWHERE, known(item("a", 1), item("b", 2, "letters")), "9") == set()
    assert names(cache) == ["a", "c"]


@pytest.mark.parametrize(
    ("kind", "said", "services", "left"),
    [
        pytest.param("ADDED", item("c", 6), {"digits"}, ["a", "c"], id="added"),
        pytest.param("ADDED", item("a", 1), set(), ["a"], id="known already"),
        pytest.param("MODIFIED", item("a", 6), {"digits"}, ["a"], id="modified"),
        pytest.param("DELETED", item("a", 6), {"digits"}, [], id="deleted"),
        pytest.param("ADDED", item("c", 6, namespace="strangers"), set(), ["a"], id="of another namespace"),
        pytest.param("BOOKMARK", {"metadata": {"resourceVersion": "90"}}, set(), ["a"], id="bookmark"),
    ],
)
def test_an_event_reports_its_service(kind: str, said: Any, services: set[str], left: list[str], cache: Cache) -> None:
    assert cache.heard(KIND, EVERYWHERE, kind, said) == {("team", service) for service in services}
    assert names(cache) == left


def test_a_write_of_our_own_is_known_at_once_and_its_event_changes_nothing(cache: Cache) -> None:
    cache.written(KIND, item("a", 7))
    mark = cache.mark("team", "digits", [KIND])
    found = cache.get(KIND, "team", "a")
    assert found is not None
    assert found["spec"] == {"replicas": 7}
    assert cache.heard(KIND, EVERYWHERE, "MODIFIED", item("a", 6)) == set()  # of before, and late
    assert cache.heard(KIND, EVERYWHERE, "MODIFIED", item("a", 7)) == set()
    assert cache.mark("team", "digits", [KIND]) == mark


def test_what_is_gone_already_does_not_come_back_by_the_answer_to_an_earlier_write(cache: Cache) -> None:
    cache.heard(KIND, EVERYWHERE, "ADDED", item("c", 6))
    cache.heard(KIND, EVERYWHERE, "DELETED", item("c", 8))
    cache.written(KIND, item("c", 7))
    assert names(cache) == ["a"]


def test_a_write_while_the_first_list_is_made_is_known_after_it() -> None:
    cache = Cache()
    cache.keep(["team"])
    cache.written(resource_types.POD, item("p", 3))
    cache.list_begins(KIND)
    cache.written(KIND, item("a", 3))
    cache.written(KIND, item("b", 7))
    cache.written(KIND, item("c", 8, namespace="strangers"))
    cache.listed(KIND, EVERYWHERE, {}, "5")
    assert names(cache) == ["b"], "what the list lacks and is older than it was deleted since"
    assert cache.get(resource_types.POD, "team", "p") is None
    assert cache.get(KIND, "strangers", "c") is None


def test_the_late_report_of_a_deletion_leaves_what_was_created_since_by_that_name(cache: Cache) -> None:
    cache.written(KIND, item("a", 9))
    assert cache.heard(KIND, EVERYWHERE, "DELETED", item("a", 8)) == set()
    assert names(cache) == ["a"]
    assert cache.heard(KIND, EVERYWHERE, "DELETED", item("a", 10)) == {("team", "digits")}
    assert names(cache) == []


def test_a_namespace_that_is_added_is_not_covered_before_it_was_listed(cache: Cache) -> None:
    cache.keep(["team", "added"])
    assert not cache.covers(KIND, "added")
    assert cache.mark("added", "digits", [KIND]) is None
    of_added = item("z", 6, namespace="added")
    cache.listed(KIND, EVERYWHERE, known(item("a", 1), of_added), "9")
    assert cache.covers(KIND, "added")
    assert cache.get(KIND, "added", "z") is not None


def test_after_a_restore_from_a_backup_nothing_of_before_is_known(cache: Cache) -> None:
    cache.heard(KIND, EVERYWHERE, "MODIFIED", item("a", 90))
    cache.written(KIND, item("c", 91))
    cache.lost(KIND, EVERYWHERE)
    changed = cache.listed(KIND, EVERYWHERE, known(item("a", 1)), "20")
    assert changed == {("team", "digits"), ("team", "letters")}
    found = cache.get(KIND, "team", "a")
    assert found is not None
    assert found["spec"] == {"replicas": 1}
    assert names(cache) == ["a"]
    assert cache.heard(KIND, EVERYWHERE, "MODIFIED", item("a", 21)) == {("team", "digits")}


def test_a_kind_that_the_cluster_has_no_more_has_no_objects(cache: Cache) -> None:
    assert cache.listed(KIND, EVERYWHERE, {}, "0") == {("team", "digits"), ("team", "letters")}
    assert names(cache) == []


def test_a_mark_changes_with_what_a_turn_would_do_and_with_nothing_else(cache: Cache) -> None:
    def mark(service: str = "digits") -> object:
        return cache.mark("team", service, [KIND])

    before, of_letters = mark(), mark("letters")
    noise = item("a", 8, status={"observedGeneration": 3, "updatedReplicas": 2})
    noise["spec"] = {"replicas": 1}
    assert cache.heard(KIND, EVERYWHERE, "MODIFIED", noise) == set()
    assert mark() == before
    changed = copy.deepcopy(noise)
    changed["metadata"]["resourceVersion"], changed["spec"] = "9", {"replicas": 2}
    assert cache.heard(KIND, EVERYWHERE, "MODIFIED", changed) == {("team", "digits")}
    assert mark() != before
    assert mark("letters") == of_letters
    assert cache.mark("team", "digits", [KIND, resource_types.POD]) is None


def test_namespaces_that_are_kept_no_more_are_forgotten(cache: Cache) -> None:
    cache.keep([])
    assert cache.get(KIND, "team", "a") is None
    assert names(cache) == []


def condition(kind: str, status: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "message": message, "lastTransitionTime": TIME}


def autoscaler(version: int, status: str, message: str, load: int) -> dict[str, Any]:
    conditions = [condition("ScalingActive", status, message)]
    return item("a", version) | {"spec": {}, "status": {"conditions": conditions, "currentMetrics": [load]}}


def test_the_load_that_an_autoscaler_measures_is_no_change_and_its_blindness_is() -> None:
    kind, cache = resource_types.AUTOSCALER, Cache()
    cache.keep(["team"])
    cache.listed(kind, "team", known(autoscaler(1, "True", "it sees 5", 5), kind=kind), "5")
    assert cache.heard(kind, "team", "MODIFIED", autoscaler(6, "True", "it sees 9", 9)) == set()
    assert cache.heard(kind, "team", "MODIFIED", autoscaler(7, "False", "no metrics", 0)) == {("team", "digits")}
    found = cache.get(kind, "team", "a")
    assert found is not None
    assert found["status"]["conditions"] == [{"type": "ScalingActive", "status": "False", "message": "no metrics"}]
