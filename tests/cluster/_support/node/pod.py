"""One pod as processes of this machine, as the stand-in for the kubelet runs it.

Honoured: init containers (with `restartPolicy: Always` beside the others, to their end), command, args with
$(VARIABLES), env (also from the pod's own fields, and from Secrets),
volumes (emptyDir, hostPath, persistentVolumeClaim, configMap, secret, projected tokens; see `volumes.py`), the token of
its account and names of Services (see `around.py`), startup, readiness and liveness probes (httpGet, tcpSocket, exec),
the preStop hook `sleep`, the termination grace, termination messages from their file or logs, memory limits (by the
size of a container's one process), images that are not there, and restarts with back-off. Nothing else is. Events tell
of failures, as those of a kubelet do.
"""

import base64
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.cluster._support.changes import Changes
from tests.cluster._support.node.around import Around, around
from tests.cluster._support.node.container import Container, moment
from tests.cluster._support.node.recorder import Recorder
from tests.cluster._support.node.volumes import Volumes

Json = dict[str, Any]
Image = Callable[[Sequence[str], str], Sequence[str]]
"""Returns the command line on this machine, given the container's own and the pod's address."""

_TICK_S = 0.05


class Pod(threading.Thread):
    """Runs a pod until it is told to end, and then deletes its object."""

    def __init__(
        self,
        found: Json,
        client: httpx.Client,
        folder: Path,
        ip: str,
        *,
        images: Mapping[str, Image],
        claims: Mapping[str, Path],
        files: Changes,
        finds_names: bool = False,
    ) -> None:
        super().__init__(name=found["metadata"]["name"])
        self._finds_names = finds_names
        self._found, self._client, self._folder, self.ip = found, client, folder, ip
        self._images = images
        self._volumes = Volumes(found, client, folder / "volumes", claims, files)
        self._recorder = Recorder(client, found, found["spec"]["nodeName"])
        self._grace_s: float | None = None
        self._killed = threading.Event()
        spec = found["spec"]
        self._once = spec.get("restartPolicy") == "Never"
        before = [Container(each, self, once=self._once) for each in spec.get("initContainers", ())]
        self._before = before
        self._init = [each for each in before if not each.is_sidecar]
        self._beside = [each for each in before if each.is_sidecar]
        self._main = [Container(each, self, once=self._once) for each in spec["containers"]]
        self._told: Json = {}
        self._begun = moment(time.time())
        self._turned: dict[str, tuple[bool, str]] = {}

    def end(self, grace_s: float) -> None:
        """Let it end by itself within so many seconds."""
        if self._grace_s is None:
            self._grace_s = grace_s

    @property
    def namespace(self) -> str:
        return str(self._found["metadata"]["namespace"])

    def said(self, container: str, *, previous: bool) -> bytes | None:
        """Return what a container's process said, or the one before it; None where there is none."""
        found = next((each for each in (*self._before, *self._main) if each.name == container), None)
        return None if found is None else found.said(previous=previous)

    def usage(self) -> Iterator[tuple[str, float, int]]:
        """Yield each container that runs, with the seconds of CPU and the bytes of memory that it took."""
        for container in (*self._beside, *self._main):
            if (used := container.usage()) is not None:
                yield container.name, *used

    def kill(self) -> None:
        """End it now and say nothing to the API server."""
        self._killed.set()

    def crash(self, container: str) -> None:
        """Kill a container's process, as its own fault would."""
        os.kill(self.pid(container), signal.SIGKILL)

    def pid(self, container: str) -> int:
        """Return a container's process."""
        process = next(each for each in (*self._beside, *self._main) if each.name == container).process
        assert process is not None
        return process.pid

    def run_in(self, container: str, *argv: str) -> str:
        """Run a command in a container and return what it printed (`kubectl exec`)."""
        return next(each for each in self._main if each.name == container).run(*argv)

    def begin_in(self, container: str, argv: Sequence[str]) -> "subprocess.Popen[bytes] | None":
        """Start a command in a container, its streams being pipes; None where no such container runs."""
        found = next((each for each in self._main if each.name == container and each.is_running), None)
        return None if found is None else found.begin(argv)

    def forget(self) -> None:
        """Delete the pod's object at once; its processes have ended."""
        self._client.request("DELETE", self._path, json={"gracePeriodSeconds": 0})

    def run(self) -> None:
        """Run the pod to its end."""
        from tests.cluster._support.node.kubelet import address  # noqa: PLC0415 - the kubelet makes pods

        try:
            with address(self.ip):
                try:
                    self._run()
                finally:
                    for container in (*self._before, *self._main):
                        container.stop()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        if not self._killed.is_set():
            self._delete()

    def _run(self) -> None:
        while not self._refresh():
            if self._is_over():
                return
            time.sleep(_TICK_S)
        for container in self._before:
            while not (container.starts if container.is_sidecar else container.succeeded or container.has_ended):
                if self._is_over():
                    return
                container.tick(probed=container.is_sidecar)
                self._tell()
                time.sleep(_TICK_S)
        while not self._is_over():
            for container in (*self._beside, *self._main) if all(each.succeeded for each in self._init) else ():
                container.tick(probed=True)
            self._refresh()
            self._tell()
            time.sleep(_TICK_S)
        if not self._killed.is_set():
            self._end()

    def _refresh(self) -> bool:
        """Bring what is new into the volumes; returns whether all is there that the pod needs to start."""
        try:
            return self._volumes.refresh()
        except httpx.HTTPError:
            return False  # the API server is away; what is there stays

    def _end(self) -> None:
        began = time.monotonic()
        sleeps = [each.pre_stop_s for each in self._main if each.is_running]
        self._killed.wait(min(max(sleeps, default=0.0), self._grace_s or 0.0))
        for containers in (self._main, self._beside[::-1]):
            for container in containers:
                container.signal(signal.SIGTERM)
            left_s = (self._grace_s or 0.0) - (time.monotonic() - began)
            deadline = time.monotonic() + max(left_s, 2.0)  # Kubernetes gives two seconds after a preStop that took all
            while any(each.is_running for each in containers) and time.monotonic() < deadline:
                if self._killed.is_set():
                    return
                time.sleep(_TICK_S)

    def _is_over(self) -> bool:
        return self._killed.is_set() or self._grace_s is not None

    def _tell(self) -> None:
        """Report the status where it changed."""
        told = self._status()
        if told == self._told:
            return
        try:
            headers = {"content-type": "application/merge-patch+json"}
            answer = self._client.patch(f"{self._path}/status", json={"status": told}, headers=headers)
        except httpx.HTTPError:
            return  # the API server is away; told again with the next tick
        if answer.is_success:
            self._told = told

    def _delete(self) -> None:
        while not self._killed.is_set():
            try:
                body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self._found["metadata"]["uid"]}}
                self._client.request("DELETE", self._path, json=body)
            except httpx.HTTPError:
                time.sleep(_TICK_S)
            else:
                return

    def _status(self) -> Json:
        initialised = all(each.starts if each.is_sidecar else each.succeeded for each in self._before)
        ready = initialised and all(each.ready for each in (*self._beside, *self._main))
        conditions = {"Initialized": initialised, "ContainersReady": ready, "Ready": ready}
        return {
            "phase": self._phase(initialised),
            "podIP": self.ip,
            "podIPs": [{"ip": self.ip}],
            "hostIP": "2001:db8::1" if ":" in self.ip else "192.0.2.1",
            "startTime": self._begun,
            "conditions": [self._condition(name, holds) for name, holds in conditions.items()],
            "initContainerStatuses": [each.status() for each in self._before],
            "containerStatuses": [each.status() for each in self._main],
        }

    def _condition(self, name: str, holds: bool) -> Json:
        """Return a condition with when it began to hold, or not to."""
        if self._turned.get(name, (not holds, ""))[0] is not holds:
            self._turned[name] = holds, moment(time.time())
        return {"type": name, "status": str(holds), "lastTransitionTime": self._turned[name][1]}

    def _phase(self, initialised: bool) -> str:
        if self._once and any(each.has_ended and not each.succeeded for each in (*self._init, *self._main)):
            return "Failed"
        if self._once and all(each.succeeded for each in self._main):
            return "Succeeded"
        return "Running" if initialised and any(each.starts for each in self._main) else "Pending"

    @property
    def _path(self) -> str:
        metadata = self._found["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

    def folders(self, container: Json) -> Iterator[tuple[str, Path]]:
        """Yield each mount path of a container and the folder it is here."""
        for mount in container.get("volumeMounts", ()):
            yield mount["mountPath"], self._volumes.folder(mount["name"])

    def secret(self, name: str) -> dict[str, str]:
        """Return what a Secret of the pod's namespace has."""
        answer = self._client.get(f"/api/v1/namespaces/{self._found['metadata']['namespace']}/secrets/{name}")
        found = answer.raise_for_status().json()["data"]
        return {key: base64.b64decode(value).decode() for key, value in found.items()}

    def field(self, path: str) -> str:
        """Return what the downward API says of the pod."""
        metadata = self._found["metadata"]
        fields = {"status.podIP": self.ip, "spec.nodeName": self._found["spec"]["nodeName"]}
        return {**fields, "metadata.name": metadata["name"], "metadata.namespace": metadata["namespace"]}[path]

    def command(self, container: Json, argv: Sequence[str]) -> Sequence[str]:
        """Return the command line on this machine."""
        return self._images[container["image"]](argv, self.ip)

    def has_image(self, container: Json) -> bool:
        """Return whether there is a command for the container's image."""
        return container["image"] in self._images

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an event of the pod."""
        self._recorder.record(kind, reason, message)

    def around(self, container: Json) -> Around:
        """Return what a container finds around it besides its folders."""
        hosts = self._folder / f"{container['name']}.hosts" if self._finds_names else None
        return around(self._client, self.namespace, dict(self.folders(container)), hosts)

    def log(self, name: str) -> Path:
        """Return the file with what a container says."""
        return self._folder / f"{name}.log"
