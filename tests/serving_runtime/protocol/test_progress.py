"""How long a message may take to arrive."""

import pytest

from serving_runtime.protocol.progress import Progress


@pytest.mark.parametrize(
    ("elapsed_s", "received", "slow"),
    [
        pytest.param(29, 0, False, id="half a minute is given to everybody"),
        pytest.param(31, 0, True, id="but not more without a byte"),
        pytest.param(90, 1024 * 1024, False, id="a megabyte may take a minute more"),
        pytest.param(100, 1024 * 1024, True, id="but not two"),
    ],
)
def test_too_slow(elapsed_s: float, received: int, slow: bool) -> None:
    assert Progress(0).too_slow(elapsed_s, received) is slow


def test_a_client_that_has_sent_much_may_stall_no_longer_than_others() -> None:
    progress = Progress(0)
    assert not progress.too_slow(1, 60 * 2**20)
    assert not progress.too_slow(30, 60 * 2**20)
    assert progress.too_slow(32, 60 * 2**20)


def test_a_client_that_is_as_slow_as_may_be_gets_through() -> None:
    progress = Progress(0)
    assert not any(progress.too_slow(second, second * 16 * 1024) for second in range(1, 3600))
