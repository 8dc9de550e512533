"""What one watch makes of what an API server says, in the order in which such things come."""

from typing import Any

import pytest

from integrations.clusters.kubernetes.watches.state import (
    RESYNC_S,
    Watch,
    ended,
    failed,
    heard,
    listed,
    wait_s,
)


def item(name: str, version: int, service: str = "digits") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version), "labels": {"fairlead/service": service}}}


def event(kind: str, *args: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "object": item(*args, **more)}


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "90"}}}


@pytest.fixture
def watch() -> Watch:
    """Give a watch that knows two objects of two services."""
    return listed(Watch(), [item("a", 1), item("b", 2, "letters")], "5", now=100.0)[0]


def test_the_first_list_tells_of_every_service() -> None:
    watch, services = listed(Watch(), [item("a", 1), item("b", 2, "letters")], "5", now=100.0)
    assert (services, watch.resource_version) == ({"digits", "letters"}, "5")
    assert not watch.must_list(100.0)


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
def test_a_later_list_tells_of_what_changed_since(items: list[Any], services: set[str], watch: Watch) -> None:
    assert listed(watch, items, "9", now=200.0)[1] == services


@pytest.mark.parametrize(
    ("said", "services", "names"),
    [
        pytest.param(event("ADDED", "c", 6), {"digits"}, {"a", "b", "c"}, id="added"),
        pytest.param(event("ADDED", "a", 1), set(), {"a", "b"}, id="known already"),
        pytest.param(event("MODIFIED", "a", 6), {"digits"}, {"a", "b"}, id="modified"),
        pytest.param(event("DELETED", "b", 6, service="letters"), {"letters"}, {"a"}, id="deleted"),
        pytest.param(BOOKMARK, set(), {"a", "b"}, id="bookmark"),
    ],
)
def test_an_event_tells_of_its_service(said: Any, services: set[str], names: set[str], watch: Watch) -> None:
    after, told = heard(watch, said)
    assert (told, set(after.objects)) == (services, names)
    assert after.resource_version == said["object"]["metadata"]["resourceVersion"]


def test_what_is_gone_is_listed_anew_and_what_was_missed_is_told(watch: Watch) -> None:
    watch, told = heard(watch, GONE)
    assert (told, watch.must_list(100.0), watch.problem) == (set(), True, "too old resource version")
    assert listed(watch, [item("b", 2, "letters")], "50", now=101.0)[1] == {"digits"}


def test_after_a_break_it_goes_on_from_where_it_was(watch: Watch) -> None:
    watch, _ = heard(watch, BOOKMARK)
    watch = failed(watch, "the connection broke")
    assert (watch.must_list(100.0), watch.resource_version, watch.failures) == (False, "90", 1)


def test_everything_is_listed_anew_once_in_a_while(watch: Watch) -> None:
    assert not watch.must_list(100.0 + RESYNC_S - 1)
    assert watch.must_list(100.0 + RESYNC_S)


def test_each_failure_is_waited_for_longer_up_to_a_bound_and_never_all_at_once(watch: Watch) -> None:
    waits = []
    for _ in range(12):
        watch = failed(watch, "away")
        waits.append(wait_s(watch, 1.0))
        assert wait_s(watch, 0.0) == waits[-1] / 2
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits[-1] == 30.0


def test_a_stream_that_worked_or_ended_in_peace_is_not_waited_for(watch: Watch) -> None:
    away = failed(watch, "away")
    assert wait_s(ended(away), 1.0) == 0.0
    assert wait_s(heard(away, BOOKMARK)[0], 1.0) == 0.0


def test_a_stream_that_is_gone_each_time_is_asked_for_less_and_less_often(watch: Watch) -> None:
    for number in range(1, 4):
        watch, _ = heard(watch, GONE)
        watch, _ = listed(watch, [], "60", now=100.0)
        assert watch.failures == number
