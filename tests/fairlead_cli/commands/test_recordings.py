"""`fairlead recordings`."""

from collections.abc import Callable
from typing import Any

Fairlead = Callable[..., tuple[int, str, str]]
RECORDING = {
    "id": 5,
    "service": "default/digits",
    "requests": 120,
    "max_requests": 10_000,
    "bytes": 4096,
    "share_percent": 12.5,
    "created_at": "2026-01-01",
    "created_by": "ann",
    "expires_at": "2026-01-08",
    "ended_at": None,
    "end_reason": "",
    "consent": "They agreed in writing.",
}
WHERE = "/services/default/digits/recordings"


def test_only_what_was_said_is_asked_for(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", RECORDING, status=201)
    line = ("recordings", "start", "digits", "--consent", "They agreed in writing.", "--share", "12.5")
    code, said, _ = fairlead(*line, "--retention", "24h")
    assert code == 0
    assert api.seen[0].document == {"consent": "They agreed in writing.", "share_percent": 12.5, "retention": "24h"}
    assert "They agreed in writing." in said
    assert "120 of 10000" in said


def test_without_consent_nothing_is_asked(fairlead: Fairlead, api: Any) -> None:
    code, _, told = fairlead("recordings", "start", "digits")
    assert code == 2
    assert "--consent" in told
    assert api.seen == []


def test_a_running_one_is_told_from_one_that_ended(fairlead: Fairlead, api: Any) -> None:
    ended = {**RECORDING, "id": 4, "ended_at": "2026-01-02"}
    api.on(f"GET {WHERE}", {"next": None, "results": [RECORDING, ended]})
    _, said, _ = fairlead("recordings", "list", "digits")
    first, second = said.splitlines()[-2:]
    assert "runs" in first
    assert "2026-01-02" in second


def test_stop_and_delete_name_the_recording(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}/5/stop", RECORDING)
    api.on(f"DELETE {WHERE}/5", {}, status=204)
    assert fairlead("recordings", "stop", "digits", "5")[0] == 0
    assert fairlead("recordings", "delete", "digits", "5")[:2] == (0, "deleted recording 5 of digits\n")
