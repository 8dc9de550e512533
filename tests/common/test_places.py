"""Places for threads that compute."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.places import Places, waiting

DEADLINE_S = 30.0


def test_as_many_threads_compute_as_there_are_places_and_those_that_wait_have_none() -> None:
    places, lock, computing, most = Places(2), threading.Lock(), 0, 0
    together = threading.Barrier(8)

    def works() -> None:
        nonlocal computing, most
        with places.held():
            with lock:
                computing += 1
                most = max(most, computing)
            with lock:
                computing -= 1
            with waiting():
                together.wait(DEADLINE_S)  # all eight wait at once
            with lock:
                computing += 1
                most = max(most, computing)
            with lock:
                computing -= 1

    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(works) for _ in range(8)]:
            each.result(DEADLINE_S)
    assert most <= 2


def test_a_place_is_free_again_after_a_failure_in_it_and_in_a_wait() -> None:
    places = Places(1)
    with pytest.raises(ValueError, match="computing"), places.held():
        raise ValueError("computing")
    with pytest.raises(ValueError, match="waiting"), places.held(), waiting():
        raise ValueError("waiting")
    with places.held(), waiting(), waiting(), ThreadPoolExecutor(1) as pool:
        pool.submit(_has_one, places).result(DEADLINE_S)


def _has_one(places: Places) -> None:
    with places.held():
        pass


def test_a_thread_without_a_place_waits_as_ever() -> None:
    with waiting():
        pass
