"""The rounds: all servers are started, and in each round asked at every point, one right after the other.

What is compared is measured within seconds, since a machine's speed changes with its neighbours. A server that waits
for its turn is stopped by a signal, so that it takes nothing of the core that it shares. One that dies, or does not
answer as it should, is left out with a line and started again in the next round; the others lose nothing by it.

Where a target is measured, Fairlead, the prototype and Triton take several turns in a round: one second of each is too
little where a neighbour may take half of the machine. Where a model takes most of the time, ONNX Runtime alone has
turns between theirs, and every request of a turn is answered before it ends.
"""

import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.serving import alone, loads, progress, requests
from benchmarks.serving.models import MODELS, Model
from benchmarks.serving.peers.base import Peer, Running

Say = Callable[[str], None]

COMPARED = ("fairlead", "prototype", "triton")
"""Who has more than one turn, where there are more."""

_FORMS = {"http": "http", "json": "json", "grpc": "grpc_port", "streams": "grpc_port"}


@dataclass(frozen=True)
class Point:
    """One closed loop.

    Attributes:
        form: http (binary where the server has that), json, grpc (a call per connection), streams (all on one).
        calls: at once.
        seconds: for which it is loaded, or for about which there are requests where these are counted.
        few: whether it is for Fairlead, the limits and Triton only.
        turns: of those that are compared, in a round; the others have one.
        counted: whether a turn is so many requests and ends with the last answer, with ONNX Runtime alone before and
            after each.
    """

    model: str
    form: str
    calls: int
    seconds: int
    few: bool = False
    turns: int = 1
    counted: bool = False

    def order(self, servers: Sequence[str]) -> list[tuple[int, str]]:
        """Return the turns of those servers: all are measured in the first, the rest is for what is compared."""
        return [(turn, server) for turn in range(self.turns) for server in servers if not turn or server in COMPARED]

    def count(self, rows_per_s: float) -> int:
        """Return how many requests a turn has, where a model does so many by itself: as many for each connection."""
        return max(2, round(self.seconds * rows_per_s / self.calls)) * self.calls


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        rounds: how often each point is measured.
        starts: how often each server is started, to see how long that takes.
        alone: batch sizes at which models are also run by themselves, beside their point over HTTP.
    """

    points: Sequence[Point]
    rounds: int
    starts: int
    alone: Mapping[str, Sequence[int]]


def plan(*, quick: bool) -> Plan:
    """Return the plan; quick ones take about eleven minutes with all peers installed."""
    short, heavy, turns = (1, 1, 2) if quick else (3, 2, 4)
    small = [("http", calls) for calls in ((1, 32) if quick else (1, 8, 32))] + [("json", 32)]
    small += [("grpc", calls) for calls in ((1, 32) if quick else (1, 8, 32))] + [("streams", 32)]
    targets = (("http", 32), ("grpc", 32))
    points = [Point("mlp_small", *loop, short, turns=4 if loop in targets else 1) for loop in small]
    counted = partial(Point, form="http", turns=turns, counted=True)
    points += [counted(model, calls=8, seconds=heavy, few=quick) for model in ("bert_mini", "resnet50")]
    points += [counted("bert_mini_batched", calls=32, seconds=2 * heavy, few=True)]
    points += [Point("image_mean", "http", 2, short, few=True), Point("image_mean", "json", 2, 2 * short)]
    sizes = {"mlp_small": (1,), "bert_mini": (1,), "resnet50": (1,), "bert_mini_batched": (1, 16, 32)}
    return Plan(points, rounds=5 if quick else 7, starts=3, alone=sizes)


class Measuring:
    """One run of the plan; `results` is what is written as JSON."""

    def __init__(self, plan: Plan, models: Path, scratch: Path, say: Say) -> None:
        self._plan = plan
        self._models = models
        self._scratch = scratch
        self._say = say
        self._right: dict[str, Any] = {}
        self._run_s: dict[tuple[str, int], float] = {}
        self._alone = alone.Alone(models)
        self.results: dict[str, Any] = {"servers": {}, "points": [], "alone": []}

    def rounds(self, peers: Sequence[tuple[Peer, Path]]) -> None:
        """Start every server, go through the plan, and stop what was started."""
        started: dict[str, tuple[Peer, Running]] = {}
        try:
            for peer, python in peers:
                with self._telling(peer):
                    started[peer.name] = peer, self._started(peer, python, times=self._plan.starts)
            self._say(progress.HEADINGS)
            for number in range(1, self._plan.rounds + 1):
                for peer, python in peers:
                    if peer.name in started and (why := started[peer.name][1].process.ending(within_s=0)):
                        self._tell(peer, why)
                        del started[peer.name]
                    if peer.name not in started and self._known(peer)["ready_s"]:  # it died in the round before
                        with self._telling(peer):
                            started[peer.name] = peer, self._started(peer, python, times=1)
                for point in self._plan.points:
                    self._turns(number, point, started)
        finally:
            self._alone.stop()
            for _, running in started.values():
                running.process.stop()

    def _started(self, peer: Peer, python: Path, *, times: int) -> Running:
        """Return a server that waits for its turn, started so many times; note how long it took each time."""
        known = self._known(peer)
        for start in range(times):
            running = peer.start(python, self._models, self._scratch)
            try:
                known["ready_s"].append(running.process.wait_until(running.ready))
                known["rss_mb"].append(running.process.rss_mb())
            except BaseException:  # Ctrl-C as well: nobody else knows of it yet
                running.process.stop()
                raise
            if start < times - 1:
                running.process.stop()
        _pause(peer, running)
        return running

    def _turns(self, number: int, point: Point, started: dict[str, tuple[Peer, Running]]) -> None:
        before: dict[int, float] = {}
        if point == next(each for each in self._plan.points if each.model == point.model and each.calls > 1):
            before = self._by_itself(number, point)
        for turn, name in point.order([name for name, one in started.items() if _asked(*one, point)]):
            if name not in started:
                continue
            peer, running = started[name]
            try:
                running.process.resume()
                row = self._point(number, turn, name, running, point)
                _pause(peer, running)
            except Exception as error:  # whatever a server does wrong costs no other its figures
                why = running.process.ending() or _first_line(error)
                self._tell(peer, f"{why}; left out of the rest of round {number}")
                running.process.stop()
                del started[name]
                continue
            if point.counted:
                after = self._by_itself(number, point)
                row["alone_s"] = {str(rows): (before[rows] + after[rows]) / 2 for rows in after}
                before = after

    @contextmanager
    def _telling(self, peer: Peer) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # as in a turn
            self._tell(peer, _first_line(error))

    def _tell(self, peer: Peer, problem: str) -> None:
        """Note and say what is wrong with a server."""
        self._known(peer)["problem"] = problem
        self._say(f"{peer.name}: {self._known(peer)['problem']}")

    def _known(self, peer: Peer) -> dict[str, Any]:
        loaded = list(peer.serves) if peer.name != "echo" else []  # which answers for a model and has none
        fresh = {"models": loaded, "ready_s": [], "rss_mb": [], "problem": ""}
        known: dict[str, Any] = self.results["servers"].setdefault(peer.name, fresh)
        return known

    def _point(self, number: int, turn: int, server: str, running: Running, point: Point) -> dict[str, Any]:
        """Return the row of results that is added."""
        model = MODELS[point.model]
        load = self._load(running, model, point, server)
        statistics = _batches(running, model) if server == "fairlead" and point.counted else {}
        before = running.process.cpu_s()
        found = load()
        cpu_us = (running.process.cpu_s() - before) / found.count * 1e6
        where = {"model": point.model, "form": point.form, "calls": point.calls}
        row = {"round": number, "turn": turn, "server": server, **where, **found._asdict(), "cpu_us": round(cpu_us, 2)}
        if statistics:
            grown = {rows: count - statistics.get(rows, 0) for rows, count in _batches(running, model).items()}
            row["batches"] = {str(rows): count for rows, count in grown.items() if count}
        self.results["points"].append(row)
        self._say(progress.turn(number, server, point.model, point.form, point.calls, found.per_s, cpu_us))
        return row

    def _load(self, running: Running, model: Model, point: Point, server: str) -> Callable[[], loads.Load]:
        """Return what loads a point, once one answer was seen to be right."""
        if running.grpc_port is not None and point.form in ("grpc", "streams"):
            port, message = running.grpc_port, requests.v2_grpc(model)
            self._check(server, model, requests.call(port, model))
            connections, streams = (1, point.calls) if point.form == "streams" else (point.calls, 1)
            return lambda: loads.h2load(port, message, connections, streams, point.seconds, self._scratch)
        post = running.json if point.form == "json" else running.http
        assert post is not None
        url, body = post(model)
        self._check(server, model, requests.post(url, body))
        if point.counted:
            per_s = max(rows / self._run_s[point.model, rows] for rows in self._plan.alone[point.model])
            return lambda: loads.posts(url, body, point.calls, point.count(per_s), self._scratch)
        return lambda: loads.wrk(url, body, point.calls, point.seconds, self._scratch)

    def _check(self, server: str, model: Model, found: Any) -> None:
        if server == "echo":
            return
        right = self._right.get(model.name)
        if right is None:
            session = onnxruntime.InferenceSession(self._models / f"{model.name}.onnx")
            right = self._right[model.name] = session.run(["y"], {"x": model.sample})[0].ravel()
        if found.shape != right.shape or not np.allclose(found, right, rtol=1e-2, atol=1e-3):
            raise RuntimeError(f"{model.name} was answered with {found[:4]}, not {right[:4]}")

    def _by_itself(self, number: int, point: Point) -> dict[int, float]:
        """Return the seconds of a run of ONNX Runtime alone by batch size, each found in a share of the point's."""
        sizes = self._plan.alone.get(point.model, ())
        for rows in sizes:
            known_s = self._run_s.get((point.model, rows)) or self._alone.turn(point.model, rows, 2).seconds
            found = self._alone.turn(point.model, rows, max(2, round(point.seconds / len(sizes) / known_s)))
            self._run_s[point.model, rows] = found.seconds
            per_s, cpu_us = 1 / found.seconds, found.cpu_s * 1e6
            row = {"round": number, "model": point.model, "rows": rows, "runs_per_s": per_s, "cpu_us": cpu_us}
            self.results["alone"].append(row)
            self._say(progress.alone(number, point.model, rows, per_s, cpu_us))
        return {rows: self._run_s[point.model, rows] for rows in sizes}


def _first_line(error: Exception) -> str:
    """Return an error as one line; its type for one that says nothing, and beside what is no sentence."""
    first = next(iter(str(error).splitlines()), "")
    if isinstance(error, RuntimeError | OSError) and first:
        return first
    return f"{type(error).__name__} {first}".strip()


def _pause(peer: Peer, running: Running) -> None:
    if peer.pauses:
        running.process.pause()


def _asked(peer: Peer, running: Running, point: Point) -> bool:
    if point.model not in peer.serves or getattr(running, _FORMS[point.form]) is None:
        return False
    return not point.few or peer.name in ("fairlead", "prototype", "triton")


def _batches(running: Running, model: Model) -> dict[int, int]:
    """Return how often Fairlead has run a model, by batch size."""
    assert running.http is not None
    url = running.http(model)[0].replace("/infer", "/stats")
    with urllib.request.urlopen(url) as response:
        (found,) = json.load(response)["model_stats"]
    return {batch["batch_size"]: batch["compute_infer"]["count"] for batch in found["batch_stats"]}
