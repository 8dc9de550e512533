"""Leases and claims are renewed while their work goes on: not once it ended, not when they are lost, not for ever."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.db import DatabaseError

from deployments.reconcile.renewal import Renewals

EVERY_S, DEADLINE_S = 0.02, 30.0


@dataclass
class Claim:
    """What is renewed: counts it, and says what comes of it."""

    answers: Callable[[int], bool] = lambda _count: True
    renewed: int = 0

    def renew(self) -> bool:
        self.renewed += 1
        return self.answers(self.renewed)


def until(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(EVERY_S / 2)


def test_what_is_held_is_renewed_until_its_work_ends() -> None:
    renewals, ended, held = Renewals(EVERY_S), Claim(), Claim()
    with renewals.renewed(held.renew):
        with renewals.renewed(ended.renew):
            until(lambda: ended.renewed > 1)
        of_ended, of_held = ended.renewed, held.renewed
        until(lambda: held.renewed > of_held + 3)
    assert ended.renewed <= of_ended + 1, "one that had begun"


def test_what_is_lost_is_renewed_no_more_and_the_others_are() -> None:
    renewals, lost, held = Renewals(EVERY_S), Claim(lambda count: count < 2), Claim()
    with renewals.renewed(held.renew), renewals.renewed(lost.renew):
        until(lambda: held.renewed > 5)
    assert lost.renewed == 2


def test_an_error_of_the_database_is_survived() -> None:
    def fails_at_first(count: int) -> bool:
        if count < 3:
            raise DatabaseError("it is away")
        return True

    renewals, claim = Renewals(EVERY_S), Claim(fails_at_first)
    with renewals.renewed(claim.renew):
        until(lambda: claim.renewed > 4)


def test_work_that_hangs_is_not_renewed_for_ever() -> None:
    renewals, hanging, held = Renewals(EVERY_S, longest_s=10 * EVERY_S), Claim(), Claim()
    with renewals.renewed(hanging.renew):
        until(lambda: hanging.renewed > 5)
        with renewals.renewed(held.renew):
            until(lambda: held.renewed > 8)
    assert hanging.renewed == 9
