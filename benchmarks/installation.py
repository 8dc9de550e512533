"""A whole installation for benchmarks: `fairlead up` on free ports with the demo's models, service and traffic."""

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from fairlead_cli.client import Client, Json, path, poll_until
from fairlead_cli.config import Access
from fairlead_cli.demo import family
from fairlead_cli.demo.requests import Request, RequestLog
from fairlead_cli.demo.story import NAMESPACE, SERVICE, Story
from fairlead_cli.up.home import Home

ENDED = frozenset({"Healthy", "Degraded", "Aborted"})
_ANSWERS, _ANSWERS_S, _GONE_S = 30, 60.0, 60.0


@dataclass
class Installation:
    """A running installation with the service up and traffic on it."""

    client: Client
    story: Story
    log: RequestLog
    versions: dict[str, int]

    def requests(self) -> list[Request]:
        """Return all requests so far."""
        self.log.read()
        return self.log.requests

    def start(self, version: int, policy: str) -> Json:
        """Start a rollout."""
        wish = {"version": str(version), "policy": policy}
        return self.client.post(path("services", NAMESPACE, SERVICE, "rollouts"), wish)

    def rollout(self, rollout: Json) -> Json:
        """Return a rollout as it is now."""
        return self.client.get(path("rollouts", rollout["id"]))

    def live(self) -> int:
        """Return the version that is stable, once all else has stopped."""
        service = poll_until(
            self.story.service,
            lambda seen: sum(each["replicas_wanted"] > 0 for each in seen["revisions"]) == 1,
            timeout_s=_GONE_S,
            every_s=0.2,
            what="the end of the revisions that are not live",
        )
        return next(int(each["model_version"]) for each in service["revisions"] if each["replicas_wanted"])


@contextmanager
def installation(folder: Path, *, rate: float, hold_s: int) -> Iterator[Installation]:
    """Run everything below `folder` and end it with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    home, address, gateway = Home((folder / "home").resolve()), free_address(), free_address()
    arguments = ["--home", str(home.path), "--address", address, "--gateway-address", gateway]
    models, log = folder / "models", folder / "requests.jsonl"
    models.mkdir(exist_ok=True)
    family.train(models)
    log.unlink(missing_ok=True)
    with family.platform(arguments, home):
        token = home.token.read_text(encoding="utf-8").strip()
        with Client(Access(f"http://{address}", token)) as client:
            story = Story(client, models, _say, lambda: nullcontext(lambda _rollout: None))
            story.clear()
            versions = {name: story.push(name) for name in ("v1", "v2", "v3")}
            story.serve(versions["v1"], hold_s)
            sent = ["--gateway", gateway, "--service", f"{NAMESPACE}/{SERVICE}", "--rate", str(rate)]
            sent += ["--images", str(models / "held-out.npz"), "--log", str(log)]
            with family.traffic(sent, folder / "traffic.log"):
                running = Installation(client, story, RequestLog(log), versions)
                poll_until(
                    running.requests,
                    lambda seen: sum(request.ok for request in seen) >= _ANSWERS,
                    timeout_s=_ANSWERS_S,
                    every_s=0.1,
                    what="the first answers",
                )
                yield running


def _say(sentence: str) -> None:
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {sentence}", file=sys.stderr, flush=True)


def free_address() -> str:
    """Return an address of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
