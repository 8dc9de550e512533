"""Labels that follow their requests, in batches, over real HTTP."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.client import Client
from fairlead_cli.config import Access
from fairlead_cli.demo.labels import LabelCounts, LabelSender, read_counts
from fairlead_cli.output.waiting import poll_until

FEEDBACK = "POST /services/default/digits/feedback"
TAKEN = {"received": 1, "changed": 1, "repeated": 0}


@pytest.fixture
def client(api: Any) -> Iterator[Client]:
    with Client(Access(api.url, "flt_test")) as client:
        yield client


@pytest.fixture
def sender(client: Client) -> Callable[..., LabelSender]:
    def make(**options: Any) -> LabelSender:
        made = LabelSender(client, "default", "digits", **{"every_s": 0.01, "delay_s": 0.0, **options})
        made.start()
        return made

    return make


def wait_for(condition: Callable[[], bool]) -> None:
    poll_until(condition, bool, timeout_s=10, every_s=0.01, what="the sender")


def labels(api: Any) -> list[list[tuple[str, int]]]:
    """Return the batches that arrived."""
    return [[(each["request_id"], each["value"]) for each in seen.document["labels"]] for seen in api.seen]


def test_labels_go_to_the_service_with_the_id_of_their_request(sender: Any, api: Any) -> None:
    api.on(FEEDBACK, TAKEN, status=202)
    made = sender()
    made.add("a", 3)
    wait_for(lambda: made.counts.sent == 1)
    made.add("b", 0)

    assert made.close() == LabelCounts(sent=2)
    assert labels(api) == [[("a", 3)], [("b", 0)]]
    assert api.seen[0].headers["authorization"] == "Bearer flt_test"


def test_they_go_when_their_time_has_come_and_those_left_at_the_end(sender: Any, api: Any) -> None:
    api.on(FEEDBACK, TAKEN, status=202)
    now = [100.0]
    made = sender(delay_s=5.0, clock=lambda: now[0])
    made.add("early", 1)
    now[0] = 103.0
    made.add("late", 2)
    now[0] = 105.0
    wait_for(lambda: made.counts.sent == 1)
    assert labels(api) == [[("early", 1)]]

    made.close()

    assert labels(api) == [[("early", 1)], [("late", 2)]]


def test_what_fails_is_sent_again(sender: Any, api: Any) -> None:
    refusal = {"error": {"code": "unavailable", "message": "later, please", "field": None, "request_id": ""}}
    api.answers[FEEDBACK] = [(503, refusal), (0, None), (202, TAKEN)]
    made = sender()
    made.add("a", 3)
    wait_for(lambda: made.counts.sent == 1)

    counts = made.close()

    assert (counts.sent, counts.unsent, counts.failures) == (1, 0, 2)
    assert "went away" in counts.message
    assert labels(api) == [[("a", 3)]] * 3


def test_what_cannot_be_sent_at_the_end_is_counted_and_written(sender: Any, api: Any, tmp_path: Path) -> None:
    api.refuse(FEEDBACK, 409, "nothing is kept of service default/digits")
    made = sender()
    for request_id in ("a", "b"):
        made.add(request_id, 3)

    counts = made.close()
    counts.write(tmp_path / "labels.json")

    assert (counts.sent, counts.unsent, counts.message) == (0, 2, "nothing is kept of service default/digits")
    assert counts.failures >= 1
    assert read_counts(tmp_path / "labels.json") == counts


def test_a_full_queue_leaves_further_labels_out(sender: Any, api: Any) -> None:
    api.on(FEEDBACK, TAKEN, status=202)
    made = sender(delay_s=3600.0, most_waiting=2)
    for request_id in ("a", "b", "c"):
        made.add(request_id, 3)

    assert made.close() == LabelCounts(sent=2, unsent=1)
    assert labels(api) == [[("a", 3), ("b", 3)]]


def test_many_labels_go_in_batches(sender: Any, api: Any) -> None:
    api.on(FEEDBACK, TAKEN, status=202)
    made = sender(delay_s=3600.0)
    for number in range(2001):
        made.add(str(number), 3)

    assert made.close().sent == 2001
    assert [len(batch) for batch in labels(api)] == [2000, 1]
