"""The process that wakes services, as a container starts it: it watches, answers Envoy, and ends."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import grpc
import httpx

from integrations.clusters.kubernetes.waker.calls import METHOD
from tests.integrations._support.api_servers import Handler, api_server
from tests.integrations._support.wakers import DIGITS, Asleep, CheckResponse, call, policy, token
from tests.servers.parts import free_port

ROOT = Path(__file__).parents[2]


def test_it_wakes_a_service_of_its_cluster_until_it_is_terminated(tmp_path: Path) -> None:
    cluster, port, metrics_port = Asleep(), free_port(), free_port()
    listed = {"securitypolicies": [policy()], "deployments": [], "endpointslices": []}

    def answer(handler: Handler) -> None:
        kind = handler.path.partition("?")[0].rpartition("/")[2]
        if kind not in listed:
            cluster.answer(handler)
        elif "watch=" in handler.path:
            handler.say(200, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}})
        else:
            items = [cluster.deployment()] if kind == "deployments" else listed[kind]
            for each in items:
                each["metadata"] |= {"namespace": DIGITS["namespace"], "resourceVersion": "5"}
            handler.say(200, {"metadata": {"resourceVersion": "9"}, "items": items})

    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))},
        "FAIRLEAD_HOME": str(tmp_path),
        "FAIRLEAD_SECRET_KEY": "x" * 40,
        "FAIRLEAD_WAKER_ADDRESS": f"127.0.0.1:{port}",
        "FAIRLEAD_WAKER_METRICS_ADDRESS": f"127.0.0.1:{metrics_port}",
    }
    with api_server(tmp_path, answer) as kubeconfig:
        command = [sys.executable, str(ROOT / "manage.py"), "wake_services", "--kubeconfig", str(kubeconfig)]
        with subprocess.Popen(command, env=variables) as process:
            try:
                _until_woken(cluster, port)
                page = httpx.get(f"http://127.0.0.1:{metrics_port}/metrics", trust_env=False).text
                assert "fairlead_waker_held_requests 0.0" in page
                assert 'fairlead_waker_starts_total{result="started"}' in page
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 0
            finally:
                process.kill()
    assert set(cluster.scaled) == {(1, "fairlead-waker")}


def _until_woken(cluster: Asleep, port: int) -> None:
    deadline = time.monotonic() + 60
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        check, sent = channel.unary_unary(METHOD), call(bearer=token())
        while not cluster.scaled:
            assert time.monotonic() < deadline
            with suppress(grpc.RpcError):  # it listens a moment later, and holds the call once it knows the service
                found = CheckResponse.FromString(check(sent, timeout=2, wait_for_ready=True))
                assert not found.denied_response.status.code
