"""One container of a pod, as a process of this machine, and the probes that ask how it is."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import httpx

from tests.cluster._support.node.around import Around
from tests.cluster.plane import ends_with_us, in_url

Json = dict[str, Any]
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.2, 5.0
_MESSAGE_BYTES = 2048
_TERMINATION_MESSAGE = "/dev/termination-log"
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


class Host(Protocol):
    """What a container asks of its pod."""

    ip: str

    def folders(self, container: Json) -> Iterator[tuple[str, Path]]:
        """Yield each mount path of a container and the folder it is here."""

    def field(self, path: str) -> str:
        """Return what the downward API says of the pod."""

    def secret(self, name: str) -> dict[str, str]:
        """Return what a Secret of the pod's namespace has."""

    def command(self, container: Json, argv: Sequence[str]) -> Sequence[str]:
        """Return the command line on this machine."""

    def log(self, name: str) -> Path:
        """Return the file with what a container says."""

    def has_image(self, container: Json) -> bool:
        """Return whether there is a command for the container's image."""

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an event of the pod."""

    def around(self, container: Json) -> Around:
        """Return what a container finds around it besides its folders."""


class Container:
    """One container: its process, and how it is doing."""

    def __init__(self, spec: Json, pod: Host, *, once: bool = False) -> None:
        self._spec, self._pod, self._once = spec, pod, once
        self.name = str(spec["name"])
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = self.succeeded = False
        self.starts = 0
        self._started_at = 0.0
        self._again_at = 0.0
        self._last: Json = {}
        self._log_starts: list[int] = []
        self._pulls = 0
        self._wants_too_much = False
        self._probes = {kind: Probe(spec[kind]) for kind in _PROBES if kind in spec}

    @property
    def is_sidecar(self) -> bool:
        """Return whether it is an init container that runs beside the others to their end."""
        return self._spec.get("restartPolicy") == "Always"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pre_stop_s(self) -> float:
        return float(self._spec.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0))

    def tick(self, *, probed: bool) -> None:
        """Start it where it does not run, note its end, ask its probes; one that is not probed is to succeed once."""
        if self.has_ended:
            return
        if self.process is None:
            if time.monotonic() >= self._again_at and self._is_pulled():
                self._start()
        elif (code := self.process.poll()) is not None:
            self._ended(code)
            self.succeeded = code == 0 and (self._once or not probed)
        elif self._is_over_limit():
            self._wants_too_much = True
            self.signal(signal.SIGKILL)
        elif probed:
            self._probe()

    @property
    def has_ended(self) -> bool:
        """Return whether it ran for the only time that it was to."""
        return self._once and self.process is None and bool(self._last)

    def said(self, *, previous: bool) -> bytes | None:
        """Return what its last process said, or the one before that; None where there was none."""
        starts = self._log_starts[:-1] if previous else self._log_starts
        if not starts:
            return None
        end = self._log_starts[-1] if previous else None
        return self._pod.log(self.name).read_bytes()[starts[-1] : end]

    def _is_pulled(self) -> bool:
        if self._pod.has_image(self._spec):
            return True
        image = self._spec["image"]
        self._pulls += 1
        self._again_at = time.monotonic() + _FIRST_BACKOFF_S
        if self._pulls == 1:
            self._pod.event("Warning", "Failed", f'Failed to pull image "{image}": {image}: not found')
        else:
            self._pod.event("Warning", "BackOff", f'Back-off pulling image "{image}"')
        return False

    def usage(self) -> tuple[float, int] | None:
        """Return the seconds of CPU and the bytes of memory of its one process; None where there is none."""
        if self.process is None:
            return None
        try:
            place = Path(f"/proc/{self.process.pid}")
            fields = place.joinpath("stat").read_text().rpartition(")")[2].split()
            pages = int(place.joinpath("statm").read_text().split()[1])
            ticks = int(fields[11]) + int(fields[12])
        except (OSError, IndexError):  # it has just ended
            return None
        return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")

    def _is_over_limit(self) -> bool:
        limit = self._spec.get("resources", {}).get("limits", {}).get("memory")
        used = None if limit is None else self.usage()
        return used is not None and used[1] > _bytes(limit)

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
            "lastState": {"terminated": self._last} if self._last and not (self.succeeded or self.has_ended) else {},
        }

    def _state(self) -> Json:
        if self.is_running:
            return {"running": {"startedAt": moment(self._started_at)}}
        if self.succeeded or self.has_ended:
            return {"terminated": self._last}
        if self._pulls:
            image, reason = self._spec["image"], "ErrImagePull" if self._pulls == 1 else "ImagePullBackOff"
            return {"waiting": {"reason": reason, "message": f'Back-off pulling image "{image}"'}}
        reason = "CrashLoopBackOff" if self._last else "PodInitializing"
        return {"waiting": {"reason": reason}}

    @property
    def _message(self) -> Path:
        return self._pod.log(self.name).with_suffix(".message")

    def run(self, *argv: str) -> str:
        """Run a command as the container would, beside its process, and return what it printed (`kubectl exec`)."""
        command, env = self._prepared(argv)
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return done.stdout

    def begin(self, argv: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a command as the container would, beside its process, its streams being pipes."""
        command, env = self._prepared(argv)
        pipe = subprocess.PIPE
        return subprocess.Popen(ends_with_us(*command), env=env, stdin=pipe, stdout=pipe, stderr=pipe)

    def _prepared(self, argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """Return a command line as it is on this machine, and the whole environment."""
        folders = dict(self._pod.folders(self._spec))
        folders[_TERMINATION_MESSAGE] = self._message
        around = self._pod.around(self._spec)
        env = dict(around.variables)
        for source in self._spec.get("envFrom", ()):
            env.update(self._pod.secret(source["secretRef"]["name"]))
        for each in self._spec.get("env", ()):
            value = self._value(each, folders)
            if value is not None:
                env[each["name"]] = _filled(value, env)
        command = self._pod.command(self._spec, [_here(_filled(each, env), folders) for each in argv])
        temporary = {"TMPDIR": str(folders["/tmp"])} if "/tmp" in folders else {}
        # The settings of the tests' own process are none of an image's.
        machine = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))}
        return [*around.prefix, *command], {**machine, **temporary, **env}

    def _start(self) -> None:
        self._message.unlink(missing_ok=True)
        command, env = self._prepared([*self._spec.get("command", ()), *self._spec.get("args", ())])
        with self._pod.log(self.name).open("ab") as log:
            self._log_starts.append(log.tell())
            self.process = subprocess.Popen(
                ends_with_us(*command),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.starts += 1
        self._started_at = time.time()
        for probe in self._probes.values():
            probe.begin()

    def _value(self, env: Json, folders: Mapping[str, Path]) -> str | None:
        """Return a variable's value; None where it is of a Secret's key that is optional and not there."""
        if "valueFrom" not in env:
            return _here(env.get("value", ""), folders)
        if "fieldRef" in env["valueFrom"]:
            return self._pod.field(env["valueFrom"]["fieldRef"]["fieldPath"])
        source = env["valueFrom"]["secretKeyRef"]
        found = self._pod.secret(source["name"])
        return found.get(source["key"]) if source.get("optional") else found[source["key"]]

    def _ended(self, code: int) -> None:
        spoken = self._message.read_bytes() if self._message.exists() else self.said(previous=False) or b""
        said = spoken[-_MESSAGE_BYTES:].decode(errors="replace")
        exit_code = code if code >= 0 else 128 - code
        policy = self._spec.get("terminationMessagePolicy")
        self._last = {
            "exitCode": exit_code,
            "reason": "OOMKilled" if self._wants_too_much else "Completed" if exit_code == 0 else "Error",
            "message": said if exit_code and policy == "FallbackToLogsOnError" else "",
            "startedAt": moment(self._started_at),
            "finishedAt": moment(time.time()),
        }
        self.process, self.ready, self._wants_too_much = None, False, False
        if exit_code and not self._once:
            self._pod.event("Warning", "BackOff", f"Back-off restarting failed container {self.name}")
        self._again_at = time.monotonic() + min(_FIRST_BACKOFF_S * 2 ** (self.starts - 1), _LONGEST_BACKOFF_S)

    def _probe(self) -> None:
        startup = self._probes.get("startupProbe")
        if startup is not None and startup.is_good is not True:
            self._ask_or_kill("Startup", startup)
            return
        readiness, liveness = self._probes.get("readinessProbe"), self._probes.get("livenessProbe")
        self.ready = readiness is None or self._ask("Readiness", readiness) is True
        if liveness is not None:
            self._ask_or_kill("Liveness", liveness)

    def _ask(self, what: str, probe: "Probe") -> bool | None:
        failures = probe.failures
        answer = probe.ask(self._spec, self._pod.ip)
        if probe.failures > failures:
            self._pod.event("Warning", "Unhealthy", f"{what} probe failed: {probe.said}")
        return answer

    def _ask_or_kill(self, what: str, probe: "Probe") -> None:
        if self._ask(what, probe) is False:
            self._pod.event(
                "Normal", "Killing", f"Container {self.name} failed {what.lower()} probe, will be restarted"
            )
            self.signal(signal.SIGKILL)


class Probe:
    """Asks a container how it is; `is_good` is None until it has answered once."""

    def __init__(self, spec: Json) -> None:
        self._spec = spec
        self.begin()

    def begin(self) -> None:
        self.is_good: bool | None = None
        self.said = ""
        self.failures = 0
        self._next_at = time.monotonic() + self._spec.get("initialDelaySeconds", 0)

    def ask(self, container: Json, ip: str) -> bool | None:
        """Return how it is; False only after as many failures in a row as the probe allows."""
        if time.monotonic() < self._next_at:
            return self.is_good
        # A startup probe is asked more often than it says, since a test has no time to wait for its period.
        self._next_at = time.monotonic() + min(self._spec.get("periodSeconds", 10), 1) * 0.2
        if self._answers(container, ip):
            self.is_good, self.failures = True, 0
        else:
            self.failures += 1
            if self.failures >= self._spec.get("failureThreshold", 3):
                self.is_good = False
        return self.is_good

    def _answers(self, container: Json, ip: str) -> bool:
        timeout_s = self._spec.get("timeoutSeconds", 1)
        if "exec" in self._spec:
            done = subprocess.run(self._spec["exec"]["command"], check=False, capture_output=True, timeout=timeout_s)
            return done.returncode == 0
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        if "tcpSocket" in self._spec:
            port = self._spec["tcpSocket"]["port"]
            try:
                socket.create_connection((ip, ports.get(port, port)), timeout=timeout_s).close()
            except OSError as error:
                self.said = f"dial tcp {ip}:{ports.get(port, port)}: {error}"
                return False
            return True
        asked = self._spec["httpGet"]
        url = f"http://{in_url(ip)}:{ports.get(asked['port'], asked['port'])}{asked['path']}"
        try:
            answer = _ASKING.get(url, timeout=timeout_s)
        except httpx.HTTPError as error:
            self.said = f'Get "{url}": {error}'
            return False
        self.said = f"HTTP probe failed with statuscode: {answer.status_code}"
        return answer.is_success


_ASKING = httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
"""Asks as kubelets do, by a connection of its own each time; kept, since a new client reads all authorities."""


def _filled(text: str, env: Mapping[str, str]) -> str:
    """Return a text with the values of the variables that it names as $(NAME)."""
    return re.sub(r"\$\((\w+)\)", lambda found: env.get(found[1], found[0]), text)


def _here(word: str, folders: Mapping[str, Path]) -> str:
    """Return a word of a command line or an environment with a mount's path replaced by the folder it is here."""
    for mount, folder in sorted(folders.items(), key=lambda item: -len(item[0])):
        found = re.fullmatch(rf"(|[^/]*=|[^/]*=file://){re.escape(mount)}(/.*)?", word)
        if found:
            return f"{found[1]}{folder}{found[2] or ''}"
    return word


def _bytes(quantity: str) -> int:
    """Return a quantity of memory, in bytes or in Ki, Mi, Gi, as a number."""
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
    return int(quantity[:-2]) * units[quantity[-2:]] if quantity[-2:] in units else int(quantity)


def moment(seconds: float) -> str:
    """Return a time since the epoch as the API has it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
