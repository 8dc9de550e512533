"""What clients notice when a part of `fairlead up` is killed: the figures of README's table "When something dies".

    python -m benchmarks.deaths [--rounds 10] [--only gateway,agent]

Starts `fairlead up` with one service of two replicas of the demo's model and sends it 100 requests a second over HTTP
and gRPC. In each round each part gets SIGKILL, one after the other (a part that dies twice within a minute is started
again after a longer pause). The next follows when the part is back and the service has its replicas again. Failed are
all requests that no replica answered, from the kill to then. Without answers is the longest time between two answers,
over all clients.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.installation import ENDED
from benchmarks.killing import answers, record, seconds_until, served_by
from benchmarks.many.fleet import Fleet, fleet
from fairlead_cli.client import Client, Json, path
from fairlead_cli.config import Access
from fairlead_cli.demo import family
from fairlead_cli.demo.requests import RequestLog
from fairlead_cli.demo.story import NAMESPACE, service_document
from fairlead_cli.output.waiting import poll_until
from fairlead_cli.up.home import Home

_RATE, _ROUNDS, _REPLICAS = 100.0, 10, 2
_SERVICE, _POLICY = "digits-deaths", "deaths"
_QUIET_S, _BEFORE_S = 3.0, 0.5
_READY_S, _ROLLOUT_S = 120.0, 180.0


@dataclass(frozen=True, slots=True)
class Round:
    """What one kill cost.

    Attributes:
        back_s: until the part was there again.
        silent_s: the longest time without an answer.
    """

    failed: int
    back_s: float
    silent_s: float


@dataclass
class Scene:
    """The running installation; `stack` ends what was started in it."""

    fleet: Fleet
    stack: ExitStack
    log: RequestLog
    up: int
    client: Client
    rollout: Json | None = None

    @property
    def run(self) -> Path:
        return self.fleet.folder / "run"

    @property
    def cluster(self) -> Path:
        return self.fleet.folder / "cluster"

    def pid(self, part: str) -> int:
        """Return the process of a part's record."""
        return int(record(self.run / f"{part}.json")["pid"])

    def is_other(self, part: str, pid: int) -> bool:
        """Return whether another process than `pid` is the part now."""
        return record(self.run / f"{part}.json").get("pid") not in {None, pid}

    def serves(self) -> bool:
        """Return whether the gateway answers for the service on a new connection."""
        return answers(self.fleet.gateway, f"/serving/{NAMESPACE}/{_SERVICE}/v2/health/ready")

    def is_whole(self) -> bool:
        """Return whether one revision has all its replicas ready, by the agent's status."""
        status = record(self.cluster / "status" / f"{NAMESPACE}.{_SERVICE}.json")
        phases = [each["phase"] for revision in status.get("revisions", ()) for each in revision["replicas"]]
        return len(phases) == _REPLICAS and set(phases) == {"Ready"}


def _worker(scene: Scene) -> float:
    """Kill the worker while half of the requests go to the next version."""
    live = next(each for each in _service(scene)["revisions"] if each["weight_actual"] == 100)
    versions = list(scene.fleet.versions.values())
    version = next(each for each in versions if each != int(live["model_version"]))
    wish = {"version": str(version), "policy": _POLICY}
    rollout = scene.client.post(path("services", NAMESPACE, _SERVICE, "rollouts"), wish)
    _wait(lambda: _rollout(scene, rollout)["weight_actual"] == 50, "a weight of 50 %", _ROLLOUT_S)
    scene.rollout = rollout
    ready = scene.run / "worker.ready"
    return _killed(
        scene,
        "worker",
        lambda pid: scene.is_other("worker", pid) and ready.read_text().strip() == str(scene.pid("worker")),
    )


def _replica(scene: Scene) -> float:
    name = min(each for each in served_by(scene.run) if "." in each)
    return _killed(scene, name, lambda pid: scene.is_other(name, pid) and scene.is_whole())


def _gateway(scene: Scene) -> float:
    return _killed(scene, "gateway", lambda _pid: scene.serves())


def _agent(scene: Scene) -> float:
    before = served_by(scene.run)
    back_s = _killed(scene, "agent", lambda pid: record(scene.cluster / "status.json").get("pid") not in {None, pid})
    if served_by(scene.run) != before:
        raise RuntimeError(f"the gateway or replicas are others than before: {before}, {served_by(scene.run)}")
    return back_s


def _holder(scene: Scene) -> float:
    return _killed(scene, "holder", lambda pid: scene.is_other("holder", pid) and scene.serves())


def _web(scene: Scene) -> float:
    address = record(scene.fleet.folder / "endpoints.json")["url"].removeprefix("http://")
    return _killed(scene, "web", lambda pid: scene.is_other("web", pid) and answers(address, "/readyz"))


def _up(scene: Scene) -> float:
    """Kill `fairlead up` itself and start it again at once, as a service manager would."""
    said = record(scene.fleet.folder / "endpoints.json")
    arguments = ["--home", str(scene.fleet.folder), "--address", said["url"].removeprefix("http://")]
    began = time.monotonic()
    os.kill(scene.up, signal.SIGKILL)
    again = family.platform([*arguments, "--gateway-address", scene.fleet.gateway], Home(scene.fleet.folder))
    os.waitpid(scene.up, 0)
    scene.up = scene.stack.enter_context(again).pid
    seconds_until(scene.serves, "an answer")
    return time.monotonic() - began


DEATHS: Mapping[str, Callable[[Scene], float]] = {
    "worker": _worker,
    "replica": _replica,
    "gateway": _gateway,
    "agent": _agent,
    "holder": _holder,
    "web": _web,
    "up": _up,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"how often each is killed, {_ROUNDS} by default")
    parser.add_argument("--only", default=",".join(DEATHS), help="parts to kill, all by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-deaths-") as folder, _scene(Path(folder)) as scene:
        costs: dict[str, list[Round]] = {name: [] for name in options.only.split(",")}
        for number in range(1, options.rounds + 1):
            for name, rounds in costs.items():
                rounds.append(_round(scene, name, number))
        print("| killed | failed, median (worst) | without answers, s | back after, s |\n| --- | --- | --- | --- |")
        for name, rounds in costs.items():
            cells = [_cell([each.failed for each in rounds], "g")]
            cells += [_cell([each.silent_s for each in rounds], ".2f"), _cell([each.back_s for each in rounds], ".2f")]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _round(scene: Scene, name: str, number: int) -> Round:
    scene.log.read()
    began_with, began = len(scene.log.requests), time.time()
    back_s = DEATHS[name](scene)
    if scene.rollout is not None:
        rollout, scene.rollout = scene.rollout, None
        _wait(lambda: _rollout(scene, rollout)["phase"] in ENDED, "the rollout's end", _ROLLOUT_S)
        if (ended := _rollout(scene, rollout))["phase"] != "Healthy":
            raise RuntimeError(f"the rollout ended {ended['phase']}: {ended['reason']}")
    seconds_until(scene.is_whole, "all replicas")
    time.sleep(_QUIET_S)
    scene.log.read()
    requests = scene.log.requests[began_with:]
    failed = [each for each in requests if not each.ok]
    answered = sorted(each.ended_at for each in requests if each.ok)
    silent_s = max((after - before for before, after in pairwise(answered)), default=time.time() - began)
    _say(f"{name}, {number}", f"{len(failed)} of {len(requests)} failed, back after {back_s:.2f} s")
    for message in sorted({each.message for each in failed})[:3]:
        _say("", message[:150])
    return Round(len(failed), back_s, silent_s)


def _killed(scene: Scene, part: str, is_back: Callable[[int], bool]) -> float:
    pid = scene.pid(part)
    os.kill(pid, signal.SIGKILL)
    return seconds_until(lambda: is_back(pid), f"another {part}")


@contextmanager
def _scene(folder: Path) -> Iterator[Scene]:
    with fleet(folder) as running, ExitStack() as stack:
        steps: list[Json] = [{"weight": 50, "hold": "5s"}, {"weight": 100}]
        policy = {"name": _POLICY, "strategy": "canary", "steps": steps, "scaleDownDelay": "2s"}
        running.client.put(path("policies", _POLICY), policy)
        document = service_document(running.versions["v1"])
        document["metadata"]["name"], document["spec"]["rollout"]["policy"] = _SERVICE, _POLICY
        document["spec"]["predictor"]["minReplicas"] = _REPLICAS
        running.client.put(path("services", NAMESPACE, _SERVICE), document)
        log = folder / "requests.jsonl"
        token = (running.folder / "token").read_text(encoding="utf-8").strip()
        url = record(running.folder / "endpoints.json")["url"]
        client = stack.enter_context(Client(Access(url, token)))
        scene = Scene(running, stack, RequestLog(log), running.pid, client)
        _wait(scene.is_whole, "two replicas", _READY_S)
        _wait(lambda: _service(scene)["phase"] == "Ready", "a ready service", _READY_S)
        sent = ["--gateway", running.gateway, "--service", f"{NAMESPACE}/{_SERVICE}", "--rate", str(_RATE)]
        sent += ["--images", str(folder / "models" / "held-out.npz"), "--log", str(log)]
        with family.traffic(sent, folder / "traffic.log"):
            time.sleep(_QUIET_S)
            yield scene


def _service(scene: Scene) -> Json:
    return scene.client.get(path("services", NAMESPACE, _SERVICE))


def _rollout(scene: Scene, rollout: Json) -> Json:
    return scene.client.get(path("rollouts", rollout["id"]))


def _wait(look: Callable[[], bool], what: str, timeout_s: float) -> None:
    poll_until(look, bool, timeout_s=timeout_s, every_s=0.1, what=what)


def _cell(values: list[float] | list[int], spec: str) -> str:
    return f"{statistics.median(values):{spec}} ({max(values):{spec}})"


def _say(what: str, sentence: str) -> None:
    print(f"{what:>14}  {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
