"""Looking again until something is there."""

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead_cli.errors import StoppedWaiting, TimedOut, Unreachable
from fairlead_cli.output.waiting import wait_until


def test_waiting_returns_what_is_done() -> None:
    states = iter([1, 2, 3, 4])

    assert wait_until(lambda: next(states), lambda seen: seen == 3, timeout_s=5, every_s=0, what="three") == 3


def test_waiting_survives_a_restart_of_the_control_plane() -> None:
    answers: Iterator[Any] = iter([Unreachable("down"), Unreachable("down"), "up"])

    def look() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    assert wait_until(look, lambda seen: seen == "up", timeout_s=5, every_s=0, what="it") == "up"


def test_ctrl_c_says_that_what_was_waited_for_goes_on() -> None:
    def look() -> int:
        raise KeyboardInterrupt

    with pytest.raises(StoppedWaiting, match=r"no longer waiting for the end of rollout 7; it goes on") as caught:
        wait_until(look, lambda _seen: False, timeout_s=5, every_s=0, what="the end of rollout 7")

    assert caught.value.exit_code == 130


def test_waiting_ends_with_its_time() -> None:
    with pytest.raises(TimedOut, match=r"the check of m was not there after 0 s"):
        wait_until(lambda: 1, lambda _seen: False, timeout_s=0, every_s=0, what="the check of m")
