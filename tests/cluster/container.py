"""One container of a pod, as a process of this machine, and the probes that ask how it is."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import httpx

from tests.cluster.plane import ends_with_us

Json = dict[str, Any]
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.2, 5.0
_MESSAGE_BYTES = 2048
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


class Host(Protocol):
    """What a container asks of its pod."""

    ip: str

    def folders(self, container: Json) -> Iterator[tuple[str, Path]]:
        """Yield each mount path of a container and the folder it is here."""

    def field(self, path: str) -> str:
        """Return what the downward API says of the pod."""

    def command(self, container: Json, argv: Sequence[str]) -> Sequence[str]:
        """Return the command line on this machine."""

    def log(self, name: str) -> Path:
        """Return the file with what a container says."""


class Container:
    """One container: its process, and how it is doing."""

    def __init__(self, spec: Json, pod: Host) -> None:
        self._spec, self._pod = spec, pod
        self.name = str(spec["name"])
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = self.succeeded = False
        self.starts = 0
        self._started_at = 0.0
        self._again_at = 0.0
        self._last: Json = {}
        self._probes = {kind: Probe(spec[kind]) for kind in _PROBES if kind in spec}

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pre_stop_s(self) -> float:
        return float(self._spec.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0))

    def tick(self, *, probed: bool) -> None:
        """Start it where it does not run, note its end, ask its probes; one that is not probed is to succeed once."""
        if self.process is None:
            if time.monotonic() >= self._again_at:
                self._start()
        elif (code := self.process.poll()) is not None:
            self._ended(code)
            self.succeeded = code == 0 and not probed
        elif probed:
            self._probe()

    def stop(self) -> None:
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, number)

    def status(self) -> Json:
        return {
            "name": self.name,
            "image": self._spec["image"],
            "imageID": self._spec["image"],
            "ready": self.ready or self.succeeded,
            "started": self.is_running,
            "restartCount": max(0, self.starts - 1),
            "state": self._state(),
            "lastState": {"terminated": self._last} if self._last and not self.succeeded else {},
        }

    def _state(self) -> Json:
        if self.is_running:
            return {"running": {"startedAt": _moment(self._started_at)}}
        if self.succeeded:
            return {"terminated": self._last}
        reason = "CrashLoopBackOff" if self._last else "PodInitializing"
        return {"waiting": {"reason": reason}}

    def _start(self) -> None:
        folders = dict(self._pod.folders(self._spec))
        env = {each["name"]: self._value(each, folders) for each in self._spec.get("env", ())}
        argv = [*self._spec.get("command", ()), *self._spec.get("args", ())]
        argv = [re.sub(r"\$\((\w+)\)", lambda found: env.get(found[1], found[0]), each) for each in argv]
        command = self._pod.command(self._spec, [_here(each, folders) for each in argv])
        temporary = {"TMPDIR": str(folders["/tmp"])} if "/tmp" in folders else {}
        with self._pod.log(self.name).open("ab") as log:
            self.process = subprocess.Popen(
                ends_with_us(*command),
                env={**os.environ, **temporary, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.starts += 1
        self._started_at = time.time()
        for probe in self._probes.values():
            probe.begin()

    def _value(self, env: Json, folders: Mapping[str, Path]) -> str:
        if "valueFrom" in env:
            return self._pod.field(env["valueFrom"]["fieldRef"]["fieldPath"])
        return _here(env.get("value", ""), folders)

    def _ended(self, code: int) -> None:
        said = self._pod.log(self.name).read_bytes()[-_MESSAGE_BYTES:].decode(errors="replace")
        exit_code = code if code >= 0 else 128 - code
        policy = self._spec.get("terminationMessagePolicy")
        self._last = {
            "exitCode": exit_code,
            "reason": "Completed" if exit_code == 0 else "Error",
            "message": said if exit_code and policy == "FallbackToLogsOnError" else "",
            "startedAt": _moment(self._started_at),
            "finishedAt": _moment(time.time()),
        }
        self.process, self.ready = None, False
        self._again_at = time.monotonic() + min(_FIRST_BACKOFF_S * 2 ** (self.starts - 1), _LONGEST_BACKOFF_S)

    def _probe(self) -> None:
        startup = self._probes.get("startupProbe")
        if startup is not None and startup.is_good is not True:
            if startup.ask(self._spec, self._pod.ip) is False:
                self.signal(signal.SIGKILL)
            return
        readiness, liveness = self._probes.get("readinessProbe"), self._probes.get("livenessProbe")
        self.ready = readiness is None or readiness.ask(self._spec, self._pod.ip) is True
        if liveness is not None and liveness.ask(self._spec, self._pod.ip) is False:
            self.signal(signal.SIGKILL)


class Probe:
    """Asks a container how it is; `is_good` is None until it has answered once."""

    def __init__(self, spec: Json) -> None:
        self._spec = spec
        self.begin()

    def begin(self) -> None:
        self.is_good: bool | None = None
        self._failures = 0
        self._next_at = time.monotonic() + self._spec.get("initialDelaySeconds", 0)

    def ask(self, container: Json, ip: str) -> bool | None:
        """Return how it is; False only after as many failures in a row as the probe allows."""
        if time.monotonic() < self._next_at:
            return self.is_good
        # A startup probe is asked more often than it says, since a test has no time to wait for its period.
        self._next_at = time.monotonic() + min(self._spec.get("periodSeconds", 10), 1) * 0.2
        if self._answers(container, ip):
            self.is_good, self._failures = True, 0
        else:
            self._failures += 1
            if self._failures >= self._spec.get("failureThreshold", 3):
                self.is_good = False
        return self.is_good

    def _answers(self, container: Json, ip: str) -> bool:
        timeout_s = self._spec.get("timeoutSeconds", 1)
        if "exec" in self._spec:
            done = subprocess.run(self._spec["exec"]["command"], check=False, capture_output=True, timeout=timeout_s)
            return done.returncode == 0
        asked = self._spec["httpGet"]
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        url = f"http://{ip}:{ports.get(asked['port'], asked['port'])}{asked['path']}"
        try:
            return httpx.get(url, timeout=timeout_s, trust_env=False).is_success
        except httpx.HTTPError:
            return False


def _here(word: str, folders: Mapping[str, Path]) -> str:
    """Return a word of a command line or an environment with a mount's path replaced by the folder it is here."""
    for mount, folder in sorted(folders.items(), key=lambda item: -len(item[0])):
        found = re.fullmatch(rf"(|[^/]*=){re.escape(mount)}(/.*)?", word)
        if found:
            return f"{found[1]}{folder}{found[2] or ''}"
    return word


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
