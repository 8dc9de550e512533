"""What a replica had to do lately, from counters."""

from deployments.domain.autoscaling.load_window import WINDOW_S, looked, looks_json, readings, stored_looks
from deployments.domain.service_file.scaling import ScaleMetric
from integrations.clusters.base import Sample

TARGETS = {ScaleMetric.CONCURRENCY: 10.0, ScaleMetric.RPS: 100.0, ScaleMetric.QUEUE_TIME: 50.0}


def _sample(
    source: str, in_flight: int | None, requests: int = 0, *, failed: int = 0, queue_us: int = 0, since: float = 1.0
) -> Sample:
    return Sample(source, "digits-00001", since, requests, 0, failed, in_flight=in_flight, queue_us=queue_us)


def _values(looks: dict, targets: dict = TARGETS) -> dict[str, tuple[float | None, int]]:
    return {reading.metric.value: (reading.value, reading.measured) for reading in readings(looks, targets)}


def test_requests_in_flight_are_averaged_and_rates_taken_over_the_last_seconds() -> None:
    looks: dict = {}
    for second, in_flight in enumerate((4, 8, 12)):
        sample = _sample("a", in_flight, 100 * second, queue_us=100 * second * 20_000)
        looks = looked(looks, [sample], "digits-00001", float(second))
    assert _values(looks) == {"concurrency": (8, 1), "rps": (100, 1), "avg_time_queue_ms": (20, 1)}


def test_the_mean_is_over_the_replicas() -> None:
    looks = looked({}, [_sample("a", 4), _sample("b", 8)], "digits-00001", 0.0)
    assert _values(looks) == {"concurrency": (6, 2), "rps": (None, 0), "avg_time_queue_ms": (None, 0)}


def test_what_is_of_others_or_too_old_does_not_count() -> None:
    gateway, other = _sample("gateway", None), Sample("x-0", "other", 1.0, 0, 0, 0, in_flight=9)
    looks = looked({}, [_sample("a", 50), gateway, other], "digits-00001", 0.0)
    looks = looked(looks, [_sample("a", 2)], "digits-00001", WINDOW_S + 1)
    assert _values(looks)["concurrency"] == (2, 1)


def test_what_was_seen_with_other_replicas_is_forgotten() -> None:
    alone = looked({}, [_sample("a", 30)], "digits-00001", 0.0)
    together = looked(alone, [_sample("a", 10), _sample("b", 10)], "digits-00001", 2.0)
    assert _values(together)["concurrency"] == (10, 2), "else more would be started for a load that is already shared"
    assert _values(looked(together, [_sample("a", 20)], "digits-00001", 4.0))["concurrency"] == (20, 1)
    assert looked(together, [], "digits-00001", 4.0) == {}


def test_counters_of_a_process_that_began_again_are_not_compared_with_those_before() -> None:
    looks = looked({}, [_sample("a", 0, 1000)], "digits-00001", 0.0)
    looks = looked(looks, [_sample("a", 0, 10, since=2.0)], "digits-00001", 2.0)
    assert _values(looks)["rps"] == (None, 0)


def test_no_request_answered_is_no_waiting_unless_one_is_in_flight() -> None:
    idle = looked(looked({}, [_sample("a", 0, 5)], "digits-00001", 0.0), [_sample("a", 0, 5)], "digits-00001", 2.0)
    assert _values(idle)["avg_time_queue_ms"] == (0, 1)
    stuck = looked(looked({}, [_sample("a", 3, 5)], "digits-00001", 0.0), [_sample("a", 3, 5)], "digits-00001", 2.0)
    assert _values(stuck)["avg_time_queue_ms"] == (None, 0)


def test_looks_survive_being_stored() -> None:
    looks = looked({}, [_sample("a", 4, 7, queue_us=3)], "digits-00001", 0.5)
    assert stored_looks(looks_json(looks)) == looks
