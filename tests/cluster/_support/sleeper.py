"""A service that may sleep behind Envoy Gateway, as the reconciler applies it, its requests, and streams left open."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import grpc
import httpx
import pytest

from integrations.clusters.base import Access, Desired, DesiredRevision
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.apply import caller_keys
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.metrics import counters
from serving_runtime.proto import message
from tests.cluster._support.guarded import KEYS, ROUTES, WITHIN_S, token
from tests.cluster._support.removal import is_removed
from tests.cluster._support.waker_process import REFERENCE
from tests.cluster.harness import Harness
from tests.integrations._support.runtimes import infer_json, infer_message, model, until

NAME = "digits-00001"
StreamAnswer = message("inference.ModelStreamInferResponse")


class Sleeper:
    """A service that may sleep, as the reconciler applies it."""

    def __init__(self, cluster: Harness, image: str = "", **more: Any) -> None:
        options = replace(cluster.options, waker=REFERENCE, runtime_image=image or cluster.options.runtime_image)
        self.driver, self.api = KubernetesDriver(cluster.api, options), cluster.api
        self.client = httpx.Client(base_url=cluster.gateway.url, timeout=90, trust_env=False)
        self.channel = grpc.insecure_channel(cluster.gateway.url.removeprefix("http://"))
        stored, self.generation = cluster.store(model(1)), 0
        self.revision = DesiredRevision(NAME, "digits", "1", stored.uri, stored.digest, 1, 100, may_sleep=True, **more)

    def apply(self, replicas: int, slept_at: float | None, look: Callable[[], object], what: str) -> None:
        """Apply again and again until `look` holds and the gateway does what is desired."""
        self.generation += 1
        revision = replace(self.revision, replicas=replicas, slept_at=slept_at)
        desired = Desired("default", "digits", self.generation, (revision,), access=Access())

        def done() -> bool:
            self.driver.apply(desired)
            seen = self.driver.observe("default", "digits")
            return bool(seen.generation == self.generation and not seen.message and look())

        until(done, what, WITHIN_S)

    def deployment(self) -> dict[str, Any]:
        found = self.api.fetch(resource_types.DEPLOYMENT, "default", NAME)
        assert found is not None
        return found

    def pods(self) -> int:
        return len(self.driver.observe("default", "digits").revisions[0].replicas)

    def in_flight(self) -> int:
        return sum(each.in_flight or 0 for each in counters.collect(self.driver.observe("default", "digits")))

    def routing(self) -> str:
        policy = self.api.fetch(resource_types.TRAFFIC_POLICY, "default", "digits")
        return str((policy or {}).get("spec", {}).get("routingType", ""))

    def sleep(self, slept_at: float) -> None:
        """Have it sleep, as the reconciler does once no request came."""
        self.apply(0, slept_at, lambda: not self.pods(), "its replicas ended")
        assert self.routing() == "Service"

    def post_over_http2(self, url: str) -> str:
        """Post as curl does over HTTP/2, and return its status and version."""
        command = ["curl", "-s", "--http2-prior-knowledge", "-o", os.devnull, "-w", "%{http_code} %{http_version}"]
        command += ["-H", f"authorization: Bearer {token()}", "-d", "{}", f"{url}{ROUTES['main'][1]}"]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=90).stdout

    def post(self, bearer: str, content: bytes = b"{}") -> int:
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        return self.client.post(ROUTES["main"][1], content=content, headers=headers).status_code

    def infer(self) -> httpx.Response:
        """Send a request that the real runtime answers."""
        headers = {"authorization": f"Bearer {token()}"}
        return self.client.post(ROUTES["main"][1], content=infer_json(), headers=headers)

    def call(self, method: str, bearer: str) -> str:
        metadata = [("fairlead-service", "default/digits"), ("authorization", f"Bearer {bearer}")]
        try:
            self.channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(b"", metadata=metadata, timeout=90)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def stream(self) -> int:
        """Send a stream of one message over gRPC, and return the number of answers."""
        metadata = [("fairlead-service", "default/digits"), ("authorization", f"Bearer {token()}")]
        stream = self.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        return len(list(stream(iter([b""]), metadata=metadata, timeout=90)))


class OpenStream:
    """A stream of infer requests over gRPC that the client leaves open."""

    def __init__(self, channel: grpc.Channel, bearer: str) -> None:
        metadata = [("fairlead-service", "default/digits"), ("authorization", f"Bearer {bearer}")]
        self._requests: SimpleQueue[bytes] = SimpleQueue()
        method = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        self._call = method(iter(self._requests.get, b""), metadata=metadata, timeout=120)

    def send(self) -> None:
        self._requests.put(infer_message())

    def answers(self, number: int) -> list[str]:
        """Return the errors of the next answers, which are empty."""
        return [StreamAnswer.FromString(next(self._call)).error_message for _ in range(number)]

    def ended(self) -> str:
        """Wait until it ends without a further answer, and return its status."""
        with pytest.raises(grpc.RpcError):
            next(self._call)
        self._requests.put(b"")
        return str(self._call.code().name)


@contextmanager
def serving(cluster: Harness, image: str = "", **more: Any) -> Iterator[Sleeper]:
    caller_keys.push(cluster.api, KEYS, ["default"])
    found = Sleeper(cluster, image, **more)
    found.apply(1, None, lambda: found.infer().status_code == 200, "the service answers")
    yield found
    found.generation += 1
    until(lambda: is_removed(found.driver, "digits", found.generation), "the service is gone", WITHIN_S)
    found.channel.close()
    found.client.close()
