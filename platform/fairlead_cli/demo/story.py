"""Demo scenario on a running platform, in order, through the REST API as any CI job would.

    clear the last demo -> push v1 -> policy -> serve v1 -> keep and score its answers, gate on that -> traffic and
    labels -> push and roll out v2, v3 (which fails) and v4 (which is wrong) -> wait for the last labels

A demo may run again in the same folder: the service is its own (it names the demo's policy), so it is deleted and
created again, while models and versions stay: the trained files are kept, and the same file again is the same version.
A service of the same name that someone else made is left alone, and the demo reports it.
"""

import hashlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from fairlead_cli.client import Client, Json, path
from fairlead_cli.commands.models import wait_checked
from fairlead_cli.demo.evaluation import Window
from fairlead_cli.demo.labels import SCORED_OUTPUT, feedback_path
from fairlead_cli.demo.watch import follow
from fairlead_cli.errors import CliError, NotFound
from fairlead_cli.files.upload_sources import source_of
from fairlead_cli.output.waiting import poll_until

MODEL, POLICY, NAMESPACE, SERVICE = "digits", "demo-canary", "default", "digits"
SCORER = "accuracy"
# Percentage points of wrong answers more than stable's. Labels come seconds late: few must do.
QUALITY: Json = {"scorer": SCORER, "maxWorse": 2, "minLabels": 30}
_CHECK_S, _READY_S, _ROLLOUT_S, _GONE_S, _JOINED_S = 120.0, 90.0, 300.0, 90.0, 30.0
_LOOK_EVERY_S = 0.2


def policy(hold_seconds: int, quality: Json | None = None) -> Json:
    """Return the demo's policy: a canary of five steps, all but the last with an analysis.

    Args:
        quality: gate on labels, part of the first analysis. A step waits for labels that are due, some 20 s: one with
            few clients is where to wait.
    """
    analysis: Json = {
        "minRequests": 60,
        "maxErrorPercent": 1.0,
        "maxErrorIncreasePercent": 1.0,
        # Both models answer in a fraction of a millisecond; a busy laptop's noise is larger than their difference.
        "latencyQuantile": 0.99,
        "maxSlowPercent": 75,
        "deadline": "2m",
    }
    hold = f"{hold_seconds}s"
    steps: list[Json] = [{"weight": weight, "hold": hold, "analysis": analysis} for weight in (10, 25, 50, 75)]
    if quality:
        steps[0]["analysis"] = {**analysis, "quality": quality}
    steps.append({"weight": 100, "hold": hold})
    return {
        "name": POLICY,
        "strategy": "canary",
        "steps": steps,
        "onInconclusive": "abort",
        "scaleDownDelay": "5s",
        "progressDeadline": "1m",
    }


def service_document(version: int) -> Json:
    """Return the demo's service file, serving one version of the model."""
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {
            "predictor": {
                "minReplicas": 1,
                "model": {"modelFormat": {"name": "onnx"}, "storageUri": f"models:/{MODEL}/{version}"},
            },
            "rollout": {"policy": POLICY},
        },
    }


@dataclass(frozen=True, slots=True)
class Chapter:
    """One finished rollout; `rollout` is its last state in the API."""

    version: int
    rollout: Json
    windows: list[Window]


@dataclass(slots=True)
class Story:
    """The demo against one platform.

    Attributes:
        say: receives one sentence per action.
        show: makes the display of a running rollout.
    """

    client: Client
    folder: Path
    say: Callable[[str], None]
    show: Callable[[], AbstractContextManager[Callable[[Json], None]]]

    def clear(self) -> None:
        """Take down the service of an earlier demo."""
        where = path("services", NAMESPACE, SERVICE)
        try:
            service = self.client.get(where)
            if service["policy"] != POLICY:
                raise CliError(
                    f"there is a service {NAMESPACE}/{SERVICE} that the demo did not make; delete it "
                    f"(`fairlead services delete {SERVICE}`) or run the demo in another folder with --home"
                )
            self.say("taking down the service of an earlier demo")
            self.client.delete(where)
        except NotFound:
            return
        poll_until(
            lambda: self._exists(where),
            lambda found: not found,
            timeout_s=_GONE_S,
            every_s=_LOOK_EVERY_S,
            what="the end of the old service",
        )

    def push(self, name: str) -> int:
        """Register FOLDER/NAME.onnx and return its version's number once it is READY."""
        file = self.folder / f"{name}.onnx"
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        pushed = self.client.upload(path("models", MODEL, "versions"), source_of(file), digest, lambda _count: None)
        version = wait_checked(self.client, MODEL, pushed["number"], timeout_s=_CHECK_S)
        number = int(version["number"])
        self.say(f"registered {file.name} as {MODEL} version {number}: {version['status']}")
        return number

    def serve(self, version: int, hold_seconds: int) -> None:
        """Make the policy and the service, and wait until it answers."""
        self.client.put(path("policies", POLICY), policy(hold_seconds))
        where = path("services", NAMESPACE, SERVICE)
        self.client.put(where, service_document(version))
        service = poll_until(
            lambda: self.client.get(where),
            lambda seen: seen["phase"] in {"Ready", "Degraded"},
            timeout_s=_READY_S,
            every_s=_LOOK_EVERY_S,
            what=f"service {NAMESPACE}/{SERVICE}",
        )
        if service["phase"] != "Ready":
            raise CliError(f"service {NAMESPACE}/{SERVICE} is {service['phase']}: {service['reason']}")
        self.say(f"serving version {version} at {service['url']}")

    def gate_on_labels(self, hold_seconds: int) -> None:
        """Keep the service's answers for a day, score them once their labels come, and let the policy gate on that."""
        where = feedback_path(NAMESPACE, SERVICE)
        self.client.put(f"{where}/answers", {"share_percent": 100, "days": 1, "output": SCORED_OUTPUT})
        self.client.put(f"{where}/scorers/{SCORER}", {"kind": "accuracy"})
        self.client.put(path("policies", POLICY), policy(hold_seconds, QUALITY))
        self.say("keeping all answers for a day; labels will come seconds after them and score their accuracy")

    def joined(self, sent: int) -> Json:
        """Return the counts of the service's labels once so many are joined with their answers, or time is up."""
        where = feedback_path(NAMESPACE, SERVICE)
        deadline = time.monotonic() + _JOINED_S
        while (seen := self.client.get(where))["joined"] < sent and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)
        return seen

    def roll_out(self, version: int) -> Chapter:
        """Roll a version out by the service's policy and follow it to its end."""
        body = {"version": str(version), "policy": POLICY}
        rollout = self.client.post(path("services", NAMESPACE, SERVICE, "rollouts"), body)
        with self.show() as draw:
            ended, windows = follow(self.client, rollout, draw, timeout_s=_ROLLOUT_S)
        self.say(f"rollout of version {version} ended {ended['phase']}: {ended['reason']['message']}")
        return Chapter(version, ended, windows)

    def service(self) -> Json:
        """Return the service as it is now."""
        return self.client.get(path("services", NAMESPACE, SERVICE))

    def _exists(self, where: str) -> bool:
        try:
            self.client.get(where)
        except NotFound:
            return False
        return True
