"""Labels at the gateway: a real Envoy and agent take them beside the model's address, for the control plane to read."""

import json
from http.client import (
    ACCEPTED,
    BAD_REQUEST,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    REQUEST_ENTITY_TOO_LARGE,
    SERVICE_UNAVAILABLE,
)
from typing import Any

import httpx

from integrations.clusters.base import Access
from integrations.clusters.base.logged_requests import read_line
from integrations.clusters.local.access_log_files import AccessLogFiles
from integrations.clusters.local.feedback_spool import batches, waiting_files
from tests.integrations._support.runtimes import Cluster, until

PATH = "/serving/default/digits/v2/models/digits/feedback"
LABELS = [{"request_id": "a-1", "value": 3}, {"request_id": "a-2", "value": ["cat", "dog"]}]


def post(cluster: Cluster, content: object, path: str = PATH, **headers: str) -> httpx.Response:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return httpx.post(cluster.url + path, content=body, headers=headers, timeout=20, trust_env=False)


def written(cluster: Cluster) -> list[tuple[str, list[dict[str, Any]]]]:
    found = [each for path in waiting_files(cluster.layout.feedback) for each in batches(path)]
    return [(each.service, each.labels) for each in found]


def test_labels_are_on_the_disk_once_they_are_answered_whatever_ends_after_that(cluster: Cluster) -> None:
    cluster.start()
    revision = cluster.revision(1, 100)
    cluster.apply_to("digits", 1, revision, takes_feedback=True)
    cluster.apply_to("closed", 1, revision)
    cluster.apply_to("keyed", 1, revision, takes_feedback=True, access=Access(teams=("fraud",)))
    until(lambda: post(cluster, {"labels": LABELS}).status_code == ACCEPTED, "the gateway takes labels")
    assert written(cluster) == [("default/digits", LABELS)]

    by_host = post(cluster, {"labels": LABELS[:1]}, "/v2/models/digits/feedback", host="digits.default.example")
    assert (by_host.status_code, by_host.json()) == (ACCEPTED, {"received": 1})
    assert written(cluster)[1:] == [("default/digits", LABELS[:1])]

    def refusal(content: object, path: str = PATH) -> tuple[int, str]:
        answer = post(cluster, content, path)
        return answer.status_code, answer.json()["error"]

    status, sentence = refusal({"labels": [*LABELS, {"request_id": "a-3", "value": float("nan")}]})
    assert (status, sentence[:6]) == (BAD_REQUEST, "row 3:")
    assert refusal(b"[" * 100_000)[0] == BAD_REQUEST
    assert refusal(b" " * (5 << 20))[0] == REQUEST_ENTITY_TOO_LARGE
    assert refusal({"labels": []}, PATH.replace("digits", "closed"))[0] == NOT_FOUND
    assert post(cluster, {"labels": LABELS}, PATH.replace("digits", "keyed")).status_code == 401
    read = httpx.get(cluster.url + PATH, timeout=20, trust_env=False)
    assert read.status_code == METHOD_NOT_ALLOWED
    assert len(written(cluster)) == 2, "nothing of what was refused"

    cluster.apply_to("infer", 1, revision, takes_feedback=True)
    named = PATH.replace("digits", "infer")
    until(lambda: post(cluster, {"labels": LABELS}, named).status_code == ACCEPTED, "a service named as a call")
    log = AccessLogFiles(cluster.layout.access_log).current
    until(lambda: b'"/default/infer/feedback"' in log.read_bytes(), "the line is written")
    assert [request for line in log.read_bytes().splitlines() if (request := read_line(line))] == [], "no inference"


def test_the_next_agent_takes_labels_and_meanwhile_they_are_refused(cluster: Cluster) -> None:
    cluster.hold()
    cluster.start()
    cluster.apply_to("digits", 1, cluster.revision(1, 100), takes_feedback=True)
    until(lambda: post(cluster, {"labels": LABELS}).status_code == ACCEPTED, "the gateway takes labels")
    url = cluster.url
    cluster.stop(9)
    answer = httpx.post(url + PATH, json={"labels": LABELS}, timeout=20, trust_env=False)
    assert answer.status_code == SERVICE_UNAVAILABLE
    cluster.start(address=url.removeprefix("http://"))
    until(lambda: post(cluster, {"labels": LABELS}).status_code == ACCEPTED, "the next agent takes labels")
    assert len(written(cluster)) == 2


def test_a_full_disk_refuses_labels_and_ends_nothing(cluster: Cluster) -> None:
    cluster.layout.feedback.parent.mkdir(parents=True, exist_ok=True)
    cluster.layout.feedback.write_text("no folder can be made here")
    cluster.start()
    cluster.apply_to("digits", 1, cluster.revision(1, 100), takes_feedback=True)
    until(lambda: post(cluster, {"labels": LABELS}).status_code == SERVICE_UNAVAILABLE, "the gateway has the route")
    answer = post(cluster, {"labels": LABELS})
    assert "cannot be written to this machine's disk" in answer.json()["error"]
    assert answer.headers["retry-after"] == "30"
    cluster.layout.feedback.unlink()
    assert post(cluster, {"labels": LABELS}).status_code == ACCEPTED
