"""A revision's payload logger on the local cluster: real runtimes, real Envoy, a real receiver."""

import json
from typing import Any

from integrations.clusters.base import Logged, Logger
from tests.integrations._support.runtimes import RUNTIME
from tests.serving_runtime._support.event_receiver import receiving


def test_a_receiver_is_told_of_every_answer_that_clients_got(cluster: Any, traffic: Any, eventually: Any) -> None:
    with receiving() as receiver:
        cluster.start(runtime=RUNTIME, egress="127.0.0.0/8")
        cluster.apply(1, cluster.revision(1, 100, logger=Logger(receiver.url, Logged.RESPONSE)))
        cluster.until_ready(1)
        cluster.until_weights(r1=100)
        with traffic(cluster.url) as sent:
            sent.until_sent(50)
        eventually(lambda: len(receiver.posts) == len(sent.outcomes), "as many as there were requests")
    assert sent.failures == []
    for headers, body in receiver.posts:
        told = {name: headers[f"ce-{name}"] for name in ("namespace", "inferenceservicename", "component", "revision")}
        assert told == {
            "namespace": "default",
            "inferenceservicename": "digits",
            "component": "predictor",
            "revision": "digits-00001",
        }
        assert headers["ce-type"] == "org.kubeflow.serving.inference.response"
        assert len(json.loads(body)["outputs"][0]["data"]) > 0
