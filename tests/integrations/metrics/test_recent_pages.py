"""Pages of replicas that many services share are read once for all looks of a few seconds."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.errors import Unavailable
from integrations.clusters.base import Observed, ObservedReplica, ObservedRevision, ReplicaPhase
from integrations.metrics.counters import collect
from integrations.metrics.recent_pages import LONGEST_S, RecentPages


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Pages:
    """Counts reads; the page says which read it is."""

    def __init__(self, text: str = "") -> None:
        self.reads = 0
        self.text = text

    def __call__(self) -> str:
        self.reads += 1
        return f"{self.text}{self.reads}"


def test_a_page_is_read_again_when_it_is_older_than_asked() -> None:
    clock, page = Clock(), Pages()
    recent = RecentPages(clock=clock)
    assert [recent.read("a", page, age_s=5), recent.read("a", page, age_s=5)] == ["1", "1"]
    clock.now += 3
    assert (recent.read("a", page, age_s=5), recent.read("a", page, age_s=2)) == ("1", "2")
    clock.now += 5.5
    assert recent.read("a", page, age_s=5) == "3"
    assert recent.read("b", page, age_s=5) == "4", "another replica has its own"


def test_a_replica_that_does_not_answer_is_asked_once_and_then_again() -> None:
    clock, page = Clock(), Pages()
    recent = RecentPages(clock=clock)

    def silent() -> str:
        page()
        raise Unavailable("it is silent")

    for _ in range(3):
        with pytest.raises(Unavailable, match="it is silent"):
            recent.read("a", silent, age_s=5)
    assert page.reads == 1
    clock.now += 6
    assert recent.read("a", page, age_s=5) == "2"


def test_an_unexpected_error_is_not_kept() -> None:
    recent = RecentPages(clock=Clock())
    with pytest.raises(ZeroDivisionError):
        recent.read("a", lambda: str(1 // 0), age_s=5)
    assert recent.read("a", Pages(), age_s=5) == "1"


def test_pages_leave_by_age_and_the_oldest_by_size() -> None:
    clock = Clock()
    recent = RecentPages(clock=clock, most_bytes=25)
    first, second, third = Pages("x" * 9), Pages("y" * 9), Pages("z" * 9)
    for name, page in (("a", first), ("b", second), ("c", third)):
        recent.read(name, page, age_s=5)
        clock.now += 1
    recent.read("b", second, age_s=5)
    recent.read("a", first, age_s=5)
    assert (first.reads, second.reads, third.reads) == (2, 1, 1), "only the oldest left"
    clock.now += LONGEST_S + 1
    recent.read("c", third, age_s=5)
    recent.read("b", second, age_s=1000)
    assert (second.reads, third.reads) == (2, 2)


def test_who_asks_for_a_page_that_is_being_read_waits_for_it() -> None:
    recent, began, may_end, page = RecentPages(), threading.Event(), threading.Event(), Pages()

    def slow() -> str:
        began.set()
        assert may_end.wait(10)
        return page()

    with ThreadPoolExecutor(4) as readers:
        asked = [readers.submit(recent.read, "a", slow, age_s=5) for _ in range(4)]
        assert began.wait(10)
        may_end.set()
        assert [each.result(10) for each in asked] == ["1"] * 4
    assert page.reads == 1


def test_looks_at_a_thousand_services_of_a_pool_read_each_replica_once() -> None:
    reads: list[str] = []
    replicas = tuple(
        ObservedReplica(f"many-{number}", ReplicaPhase.READY, metrics_url=f"http://127.0.0.1:{number}")
        for number in range(3)
    )
    rows = "".join(f'nv_inference_request_success{{model="ns.s{n}",version="1"}} {n}\n' for n in range(1000))

    def page_of(_namespace: str, replica: ObservedReplica) -> str:
        reads.append(replica.name)
        return f"process_start_time_seconds 5\n{rows}"

    def requests(number: int) -> int:
        revision = ObservedRevision(f"s{number}-00001", 100, replicas, pooled_as=f"ns.s{number}@1")
        observed = Observed(f"team-{number % 7}", f"s{number}", 1, (revision,))
        return sum(each.requests for each in collect(observed, page_of))

    assert [requests(number) for number in range(1000)] == [3 * number for number in range(1000)]
    # A slow machine may take longer than a page may be old.
    assert len(reads) <= 3 * 3
    assert set(reads) == {"many-0", "many-1", "many-2"}


def test_replicas_of_a_services_own_are_read_at_each_look() -> None:
    reads: list[str] = []

    def page_of(_namespace: str, replica: ObservedReplica) -> str:
        reads.append(replica.name)
        return "process_start_time_seconds 5\n"

    replica = ObservedReplica("own-0", ReplicaPhase.READY, metrics_url="http://127.0.0.1:1")
    for _ in range(3):
        collect(Observed("ns", "own", 1, (ObservedRevision("own-00001", 100, (replica,)),)), page_of)
    assert reads == ["own-0"] * 3
