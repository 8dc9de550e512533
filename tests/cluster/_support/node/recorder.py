"""Events of one pod, as a kubelet records them: the same again raises its count."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import httpx

_LEAST_BETWEEN_S = 1.0


class Recorder:
    """Records events of a pod; what comes again too soon is left out, and so is what the API server does not take."""

    def __init__(self, client: httpx.Client, pod: dict[str, Any], node: str) -> None:
        self._client, self._pod, self._node = client, pod, node
        self._known: dict[tuple[str, str], tuple[str, int, float]] = {}

    def record(self, kind: str, reason: str, message: str) -> None:
        name, count, told_at = self._known.get((reason, message), ("", 0, 0.0))
        if time.monotonic() - told_at < _LEAST_BETWEEN_S and count:
            return
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata = self._pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/events"
        with suppress(httpx.HTTPError, KeyError):
            if count:
                changes = {"count": count + 1, "lastTimestamp": now}
                headers = {"content-type": "application/merge-patch+json"}
                self._client.patch(f"{path}/{name}", json=changes, headers=headers)
            else:
                about = {name: metadata[name] for name in ("namespace", "name", "uid")}
                event = {
                    "metadata": {"generateName": f"{metadata['name']}."},
                    "involvedObject": {"apiVersion": "v1", "kind": "Pod", **about},
                    "type": kind,
                    "reason": reason,
                    "message": message,
                    "count": 1,
                    "firstTimestamp": now,
                    "lastTimestamp": now,
                    "source": {"component": "kubelet", "host": self._node},
                }
                name = self._client.post(path, json=event).json()["metadata"]["name"]
            self._known[reason, message] = (name, count + 1, time.monotonic())
