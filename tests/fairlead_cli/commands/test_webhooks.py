"""`fairlead webhooks`."""

from collections.abc import Callable
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]
HOOK = {
    "id": 4,
    "team": None,
    "url": "https://a.example/",
    "events": ["RolloutHealthy"],
    "description": "",
    "enabled": True,
    "created_at": "t",
    "created_by": "ann",
}


def delivery(status: str = "PENDING", answer_status: int | None = None, answer: str = "") -> dict[str, Any]:
    return {
        "id": 9,
        "event": "Test",
        "status": status,
        "tries": 1,
        "answer_status": answer_status,
        "answer": answer,
        "created_at": "t",
        "finished_at": None,
    }


def test_a_new_webhook_is_shown_with_its_secret(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /webhooks", {**HOOK, "secret": "whsec_1"}, status=201)

    code, said, told = fairlead(
        *("webhooks", "create", "https://a.example/", "--event", "RolloutHealthy", "--event", "Test", "--team", "red")
    )

    assert (code, said.splitlines()[0].split()) == (0, ["secret", "whsec_1"])
    assert api.seen[0].document == {"url": "https://a.example/", "events": ["RolloutHealthy", "Test"], "team": "red"}
    assert "only time" in told


@pytest.mark.parametrize(
    ("options", "document"),
    [
        (["--disable"], {"enabled": False}),
        (["--enable", "--description", "ours"], {"enabled": True, "description": "ours"}),
        (["--post-to", "https://b.example/", "--event", "A"], {"url": "https://b.example/", "events": ["A"]}),
    ],
)
def test_only_what_is_named_is_changed(fairlead: Fairlead, api: Any, options: list[str], document: Any) -> None:
    api.on("PATCH /webhooks/4", HOOK)

    assert fairlead("webhooks", "edit", "4", *options)[0] == 0
    assert api.seen[0].document == document


def test_the_installations_webhooks_are_told_apart_from_a_teams(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /webhooks", {"next": None, "results": [HOOK, {**HOOK, "id": 5, "team": "red"}]})

    _, said, _ = fairlead("webhooks", "list")

    assert [line.split("  ")[1].strip() for line in said.splitlines()[1:]] == ["whole installation", "red"]


@pytest.mark.parametrize(
    ("ended", "code", "complaint"),
    [
        pytest.param(delivery("DELIVERED", 204), 0, "", id="taken"),
        pytest.param(delivery("FAILED", 500, "oops"), 3, "webhook 4 answered 500: oops\n", id="refused"),
        pytest.param(delivery("FAILED", None, "no answer"), 3, "webhook 4: no answer\n", id="no answer"),
        pytest.param(
            delivery("PENDING", 503), 3, "webhook 4 answered 503: nothing more was said\n", id="to come again"
        ),
    ],
)
@pytest.mark.parametrize("words", [("test", "4"), ("redeliver", "4", "8")], ids=["test", "redeliver"])
def test_the_exit_code_says_whether_it_was_taken(
    fairlead: Fairlead, api: Any, words: tuple[str, ...], ended: dict[str, Any], code: int, complaint: str
) -> None:
    api.on("POST /webhooks/4/test", delivery(), status=201)
    api.on("POST /webhooks/4/deliveries/8/redeliver", delivery(), status=201)
    api.on("GET /webhooks/4/deliveries/9", delivery(), ended)

    got, said, complained = fairlead("webhooks", *words)

    assert (got, complained) == (code, complaint)
    assert "status    " in said


def test_an_answer_that_does_not_come_ends_with_4(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /webhooks/4/test", delivery(), status=201)
    api.on("GET /webhooks/4/deliveries/9", delivery())

    assert fairlead("webhooks", "test", "4", "--timeout", "0")[0] == 4
