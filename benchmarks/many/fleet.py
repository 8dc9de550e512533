"""An installation with many services of the demo's model."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from benchmarks.installation import ENDED, free_address
from fairlead_cli.client import Client, Json, path
from fairlead_cli.config import Access
from fairlead_cli.demo import family
from fairlead_cli.demo.story import NAMESPACE, Story, service_document
from fairlead_cli.output.waiting import poll_until
from fairlead_cli.up.home import Home

POLICY = "many"
_READY_S, _HEALTHY_S, _EVERY_S = 600.0, 900.0, 0.5


@dataclass
class Fleet:
    """What runs; `pid` is of `fairlead up`, `folder` has its state."""

    client: Client
    folder: Path
    gateway: str
    pid: int
    versions: dict[str, int]
    names: list[str] = field(default_factory=list)

    def serve(self, count: int) -> float:
        """Make so many services and wait until all are ready; returns how many seconds that took."""
        steps: list[Json] = [{"weight": 50, "hold": "2s"}, {"weight": 100}]
        policy = {
            "name": POLICY,
            "strategy": "canary",
            "steps": steps,
            "scaleDownDelay": "2s",
            "progressDeadline": "10m",
        }
        self.client.put(path("policies", POLICY), policy)
        began = time.monotonic()
        for index in range(count):
            name = f"digits-{index:04}"
            document = service_document(self.versions["v1"])
            document["metadata"]["name"], document["spec"]["rollout"]["policy"] = name, POLICY
            self.client.put(path("services", NAMESPACE, name), document)
            self.names.append(name)
        poll_until(
            lambda: [each["phase"] for each in self.client.all(path("services"))],
            lambda seen: all(phase == "Ready" for phase in seen),
            timeout_s=_READY_S,
            every_s=_EVERY_S,
            what=f"{count} ready services",
        )
        return time.monotonic() - began

    def roll_out(self) -> tuple[float, float]:
        """Roll out the second version of all at once.

        Returns:
            The seconds until the first and until the last rollout was healthy, from the first one's start.

        Raises:
            RuntimeError: one ended otherwise.
        """
        wish = {"version": str(self.versions["v2"]), "policy": POLICY}
        for name in self.names:
            self.client.post(path("services", NAMESPACE, name, "rollouts"), wish)
        rollouts = poll_until(
            lambda: [each["rollout"] for each in self.client.all(path("services"))],
            lambda seen: all(each["phase"] in ENDED for each in seen),
            timeout_s=_HEALTHY_S,
            every_s=_EVERY_S,
            what=f"the end of {len(self.names)} rollouts",
        )
        for each in rollouts:
            if each["phase"] != "Healthy":
                raise RuntimeError(f"the rollout of {each['service']} ended {each['phase']}: {each['reason']}")
        began = min(_seconds(each["started_at"]) for each in rollouts)
        ended = sorted(_seconds(each["finished_at"]) - began for each in rollouts)
        return ended[0], ended[-1]


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@contextmanager
def fleet(folder: Path) -> Iterator[Fleet]:
    """Start an installation below `folder` that has the demo's models and no service yet."""
    home, address, gateway = Home((folder / "home").resolve()), free_address(), free_address()
    models = folder / "models"
    models.mkdir()
    family.train(models)
    with family.platform(["--home", str(home.path), "--address", address, "--gateway-address", gateway], home) as up:
        token = home.token.read_text(encoding="utf-8").strip()
        with Client(Access(f"http://{address}", token)) as client:
            story = Story(client, models, _say, lambda: nullcontext(lambda _rollout: None))
            yield Fleet(client, home.path, gateway, up.pid, {name: story.push(name) for name in ("v1", "v2")})


def _say(sentence: str) -> None:
    print(f"{'':>20}  {sentence}", file=sys.stderr, flush=True)
