"""Time and randomness come from the caller, so that all of the control plane can be run in simulated time.

Edges (`rooms.EDGES`) read them; the others that do today are in a list that may only shrink.
"""

import ast

from tests.nets._support.modules import modules
from tests.nets._support.recording import check_shrinks
from tests.nets.contracts import clock
from tests.nets.contracts.rooms import APPS, LEVELS, is_edge

ROOMS = {room for level in LEVELS for room in level}


def test_only_edges_read_clock_and_randomness() -> None:
    found = [
        f"{name}: {what}"
        for name, module in modules().items()
        if module.room in ROOMS and not is_edge(name) and ".migrations." not in name
        for what in clock.reads(name)
    ]
    check_shrinks("clock_and_randomness.txt", found, "take `now` or the number from the caller")


def test_what_reads_the_clock_would_be_seen() -> None:
    code = """
import time, uuid
import random as dice
from datetime import UTC, datetime
from django.utils import timezone
from secrets import compare_digest, token_hex

def wait(clock=time.monotonic): ...

print(datetime.now(UTC), timezone.now(), uuid.uuid4(), dice.random(), token_hex(4))
print(compare_digest("a", "b"), dice.Random(1), datetime.fromtimestamp(0), timezone.timedelta)
"""
    assert sorted({full for full in clock._used(ast.parse(code)) if clock._is_reading(full)}) == [
        "datetime.datetime.now",
        "django.utils.timezone.now",
        "random.random",
        "secrets.token_hex",
        "time.monotonic",
        "uuid.uuid4",
    ]


def test_edges_are_known_by_their_path() -> None:
    assert is_edge("registry.tasks")
    assert is_edge("integrations.oidc")
    assert not is_edge("registry.services")
    assert "common" not in APPS
    assert not is_edge("common.durations")
