"""What counts as having held."""

from typing import Any

import pytest

from fairlead_cli.demo import evaluation
from fairlead_cli.demo.evaluation import Share, Window
from fairlead_cli.demo.requests import Request

STABLE, CANARY, BAD, WRONG = "digits-00001", "digits-00002", "digits-00003", "digits-00004"
JOINED = {"sent": 200, "unsent": 0, "message": "", "joined": 200}


def requests(count: int, revision: str = STABLE, *, at: float = 10.0, **changes: Any) -> list[Request]:
    fields: dict[str, Any] = {
        "ended_at": at + 0.01,
        "protocol": "grpc",
        "ok": True,
        "message": "",
        "label": 3,
        "truth": 3,
    }
    return [Request(**{**fields, "at": at, "revision": revision, **changes})] * count


def window(weight: int, started_at: float = 0.0, ended_at: float = 100.0) -> Window:
    return Window(2, CANARY, weight, started_at, ended_at)


@pytest.mark.parametrize(
    ("weight", "canary", "stable", "ok"),
    [
        pytest.param(10, 100, 900, True, id="exactly the weight"),
        pytest.param(10, 140, 860, True, id="within chance"),
        pytest.param(10, 150, 850, False, id="more than chance explains"),
        pytest.param(10, 50, 950, False, id="less than chance explains"),
        pytest.param(100, 1000, 0, True, id="all of them"),
        pytest.param(100, 990, 10, False, id="all means all: nothing is left to chance at 100 %"),
        pytest.param(50, 30, 30, False, id="too few to tell is not good enough"),
        pytest.param(10, 0, 0, False, id="none at all"),
    ],
)
def test_a_share_fits_its_weight_or_not(weight: int, canary: int, stable: int, ok: bool) -> None:
    seen = evaluation.share(window(weight), requests(canary, CANARY) + requests(stable))

    assert (seen.requests, seen.ok) == (canary + stable, ok)


def test_only_requests_wholly_inside_a_window_count() -> None:
    edge = requests(5, at=99.995) + requests(5, at=-0.001) + requests(1, at=0.0) + requests(1, at=99.0)

    assert evaluation.share(window(10), edge).requests == 2


def test_rows_by_revision_are_oldest_first() -> None:
    sent = requests(3, CANARY) + requests(1, CANARY, label=4) + requests(2) + requests(1, "", ok=False, label=None)

    rows = evaluation.by_revision(sent, {STABLE: 1, CANARY: 2})

    assert [(row["revision"], row["requests"], row["failed"], row["accuracy_percent"]) for row in rows] == [
        ("(none answered)", 1, 1, None),
        (STABLE, 2, 0, 100.0),
        (CANARY, 4, 0, 75.0),
    ]


def test_rows_by_protocol_have_latencies() -> None:
    sent = requests(99, ended_at=10.001) + requests(1, ended_at=10.1) + requests(1, protocol="http-json", ok=False)

    assert evaluation.by_protocol(sent) == [
        {"protocol": "grpc", "requests": 100, "failed": 0, "latency_p50_ms": 1.0, "latency_p99_ms": 1.0},
        {"protocol": "http-json", "requests": 1, "failed": 1, "latency_p50_ms": 10.0, "latency_p99_ms": 10.0},
    ]


def rollout(phase: str, weight: int, revision: str, violated: str = "") -> dict[str, Any]:
    return {
        "phase": phase,
        "weight_actual": weight,
        "to_revision": revision,
        "to_version": int(revision[-1]),
        "reason": {"message": "why"},
        "analysis_runs": [
            {
                "measurements": [
                    {"metric": "errors", "verdict": "Successful"},
                    *([{"metric": violated, "verdict": "Failed"}] if violated else []),
                ]
            }
        ],
    }


WRONG_FOUND = rollout("Degraded", 0, WRONG, "quality:accuracy")


def judged(
    sent: list[Request],
    *,
    good: dict[str, Any] | None = None,
    bad: dict[str, Any] | None = None,
    mistaken: dict[str, Any] | None = None,
    labels: dict[str, Any] | None = None,
    weights: dict[str, int] | None = None,
    shares: tuple[Share, ...] = (),
) -> list[str]:
    """Return the names of the checks that failed."""
    serving = {CANARY: 100} if weights is None else weights
    checks = evaluation.checks(
        requests=sent,
        shares=shares,
        good=good or rollout("Healthy", 100, CANARY),
        failing=bad or rollout("Degraded", 0, BAD),
        mistaken=mistaken or WRONG_FOUND,
        labels={**JOINED, **(labels or {})},
        service={
            "phase": "Ready",
            "revisions": [{"name": name, "weight_actual": weight} for name, weight in {STABLE: 0, **serving}.items()],
        },
    )
    return [check.name for check in checks if not check.ok]


GOOD_TRAFFIC = requests(50) + requests(50, CANARY) + requests(5, BAD, ok=False, label=None, message="500")
ONLY_BAD, PROMOTED, ROLLED_BACK, LABELLED, FOUND_WRONG, SERVES = (
    "only the bad version failed requests",
    "version 2 promoted itself",
    "version 3 was rolled back",
    "labels came seconds late and found their answers",
    "version 4 was rolled back for its wrong answers",
    "version 2 serves all requests at the end",
)


def test_all_as_promised() -> None:
    assert judged(GOOD_TRAFFIC) == []


@pytest.mark.parametrize(
    ("case", "failed"),
    [
        pytest.param({"sent": []}, [ONLY_BAD], id="no traffic proves nothing"),
        pytest.param({"sent": requests(9)}, [ONLY_BAD], id="a bad version that failed nothing was not bad"),
        pytest.param(
            {"sent": [*GOOD_TRAFFIC, *requests(1, CANARY, ok=False)]}, [ONLY_BAD], id="a good version failed a request"
        ),
        pytest.param({"sent": [*GOOD_TRAFFIC, *requests(1, "", ok=False)]}, [ONLY_BAD], id="nobody answered a request"),
        pytest.param({"good": rollout("Paused", 50, CANARY)}, [PROMOTED], id="v2 did not get there"),
        pytest.param({"good": rollout("Healthy", 75, CANARY)}, [PROMOTED], id="v2 is healthy without all traffic"),
        pytest.param({"bad": rollout("Healthy", 100, BAD)}, [ROLLED_BACK], id="the bad one was let through"),
        pytest.param({"bad": rollout("Degraded", 10, BAD)}, [ROLLED_BACK], id="the bad one kept traffic"),
        pytest.param({"labels": {"sent": 0, "joined": 0}}, [LABELLED], id="no labels"),
        pytest.param({"labels": {"unsent": 1, "message": "refused"}}, [LABELLED], id="a label was not sent"),
        pytest.param({"labels": {"joined": 197}}, [LABELLED], id="some labels found no answer"),
        pytest.param({"mistaken": rollout("Healthy", 100, WRONG)}, [FOUND_WRONG], id="the wrong one was let through"),
        pytest.param(
            {"mistaken": rollout("Degraded", 0, WRONG, "latency")}, [FOUND_WRONG], id="the wrong one was only slow"
        ),
        pytest.param(
            {"mistaken": rollout("Degraded", 0, WRONG)}, [FOUND_WRONG], id="the wrong one was stopped by nothing found"
        ),
        pytest.param(
            {"sent": [*GOOD_TRAFFIC, *requests(1, WRONG, ok=False)]}, [ONLY_BAD], id="the wrong one failed a request"
        ),
        pytest.param({"weights": {CANARY: 90, BAD: 10}}, [SERVES], id="somebody else serves too"),
        pytest.param({"weights": {}}, [SERVES], id="nobody serves"),
        pytest.param(
            {"shares": (Share(window(25), 1000, 40.0, 6.0),)}, ["version 2 at 25 %"], id="a share that does not fit"
        ),
    ],
)
def test_each_promise_can_fail(case: dict[str, Any], failed: list[str]) -> None:
    assert judged(**{"sent": GOOD_TRAFFIC, **case}) == failed


def test_a_bad_version_may_be_caught_before_its_share_can_be_judged() -> None:
    few = [Share(Window(3, revision, 10, 0.0, 1.0), 40, 30.0, 21.0) for revision in (BAD, WRONG)]

    assert judged(GOOD_TRAFFIC, shares=tuple(few)) == []
    assert judged(GOOD_TRAFFIC, shares=(Share(window(10), 40, 10.0, 21.0),)) == ["version 2 at 10 %"]


def test_strange_failures_are_told_with_examples() -> None:
    sent = GOOD_TRAFFIC + requests(4, STABLE, ok=False, message="503 no healthy upstream")
    checks = evaluation.checks(
        requests=sent,
        shares=[],
        good=rollout("Healthy", 100, CANARY),
        failing=rollout("Degraded", 0, BAD),
        mistaken=WRONG_FOUND,
        labels=JOINED,
        service={"phase": "Ready", "revisions": []},
    )

    assert checks[0].message == (
        f"4 of {len(sent)} requests failed elsewhere: 4x grpc {STABLE}: 503 no healthy upstream"
    )


def test_labels_that_were_not_sent_are_reported_with_their_failure() -> None:
    checks = evaluation.checks(
        requests=GOOD_TRAFFIC,
        shares=[],
        good=rollout("Healthy", 100, CANARY),
        failing=rollout("Degraded", 0, BAD),
        mistaken=WRONG_FOUND,
        labels={"sent": 20, "unsent": 3, "message": "no answer from http://127.0.0.1:8080", "joined": 18},
        service={"phase": "Ready", "revisions": []},
    )

    assert [check.message for check in checks if check.name == LABELLED] == [
        "20 labels sent, 18 joined with their answers, 3 not sent: no answer from http://127.0.0.1:8080"
    ]
