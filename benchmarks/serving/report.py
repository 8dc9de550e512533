"""Medians, ratios and targets of one run, as text. Pure.

A ratio compares two servers: how many times the requests a second of the other, and how many times less processor
time a request takes. It is the median of the turns' own ratios, since the two were measured right after one another
in each, and a machine may be slower in the next. The second hardly moves when the machine is busy with other work.
A heavy model is compared with itself alone right before and right after, turn by turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

Results = dict[str, Any]

OURS = "fairlead"
PYTHON_PEERS = ("mlserver", "kserve", "litserve", "bentoml")


class Place(NamedTuple):
    """A point of the plan, as results name it."""

    model: str
    form: str
    calls: int

    def __str__(self) -> str:
        return f"{self.model} {self.form} c={self.calls}"


class Cell(NamedTuple):
    """Medians over the rounds."""

    per_s: float
    cpu_us: float
    p50_us: float | None


class Target(NamedTuple):
    """One thing that is to be reached; `found` is None where it was not measured."""

    what: str
    wanted: float
    found: float | None

    @property
    def verdict(self) -> str:
        if self.found is None:
            return "not measured"
        return "reached" if self.found >= self.wanted else "MISSED"


def cells(results: Results) -> dict[Place, dict[str, Cell]]:
    """Return the medians by place and server, in the order of the plan."""
    rows: dict[Place, dict[str, list[Any]]] = {}
    for row in results["points"]:
        place = Place(row["model"], row["form"], row["calls"])
        rows.setdefault(place, {}).setdefault(row["server"], []).append(row)
    return {place: {server: _cell(found) for server, found in servers.items()} for place, servers in rows.items()}


def _cell(rows: Sequence[Any]) -> Cell:
    p50 = [row["p50_us"] for row in rows if row["p50_us"] is not None]
    return Cell(
        median(row["per_s"] for row in rows), median(row["cpu_us"] for row in rows), median(p50) if p50 else None
    )


def alone(results: Results) -> dict[tuple[str, int], float]:
    """Return how many times a second a model runs by itself, by its name and batch size."""
    rows: dict[tuple[str, int], list[float]] = {}
    for row in results["alone"]:
        rows.setdefault((row["model"], row["rows"]), []).append(row["runs_per_s"])
    return {key: median(found) for key, found in rows.items()}


def ratios(results: Results) -> dict[str, float]:
    """Return how Fairlead compares, by "PLACE / SERVER rate" and "PLACE / SERVER cpu"; higher is better."""
    found = {}
    for place, servers in cells(results).items():
        ours = _by_turn(results, place, OURS)
        for server in servers if ours else ():
            pairs = [(ours[turn], row) for turn, row in _by_turn(results, place, server).items() if turn in ours]
            if server == OURS or not pairs:
                continue
            found[f"{place} / {server} rate"] = round(median(one["per_s"] / other["per_s"] for one, other in pairs), 3)
            found[f"{place} / {server} cpu"] = round(median(other["cpu_us"] / one["cpu_us"] for one, other in pairs), 3)
    return found


def _by_turn(results: Results, place: Place, server: str) -> dict[tuple[int, int], Any]:
    """Return a server's rows by round and turn; older results had one turn a round."""
    rows = results["points"]
    return {
        (row["round"], row.get("turn", 0)): row
        for row in rows
        if row["server"] == server and place == (row["model"], row["form"], row["calls"])
    }


def targets(results: Results) -> list[Target]:
    """Return what is to be reached on small and on heavy models, with what was found."""
    found = ratios(results)

    def best(form: str, calls: int, servers: Sequence[str]) -> float | None:
        return min(
            (found[key] for server in servers if (key := f"mlp_small {form} c={calls} / {server} rate") in found),
            default=None,
        )

    listed = [
        Target("HTTP binary, 32 at once: times Triton with its Python backend", 4.5, best("http", 32, ["triton"])),
        Target("gRPC, 32 at once: times Triton with its Python backend", 2.0, best("grpc", 32, ["triton"])),
        Target("HTTP, 32 at once: times the best of the Python servers", 15.0, best("http", 32, PYTHON_PEERS)),
        Target("HTTP binary, 32 at once: of the prototype", 0.6, best("http", 32, ["prototype"])),
        Target("gRPC, 32 at once: of the prototype", 0.6, best("grpc", 32, ["prototype"])),
        Target("one at a time: median latency of the best peer, over Fairlead's", 1.0, _latency(results)),
    ]
    for model in ("bert_mini", "resnet50"):
        share = _of_alone(results, Place(model, "http", 8))
        listed.append(Target(f"{model}, 8 at once: of ONNX Runtime alone", 0.97, share))
    share = _of_alone(results, Place("bert_mini_batched", "http", 32))
    listed.append(Target("bert_mini in dynamic batches: of the same batches alone", 0.95, share))
    image = [found.get(f"image_mean json c=2 / {server} rate") for server in ("mlserver",)]
    listed.append(Target("an image as JSON: times MLServer", 5.0, image[0]))
    servers = results["servers"]
    for what, key in (("start to READY", "ready_s"), ("idle resident memory", "rss_mb")):
        both = [servers.get(server, {}).get(key) for server in ("triton", OURS)]
        listed.append(Target(f"{what}: Triton's over Fairlead's", 1.0, _over(*both) if all(both) else None))
    return listed


def _over(one: Sequence[float], other: Sequence[float]) -> float:
    return median(one) / median(other)


def _latency(results: Results) -> float | None:
    place = Place("mlp_small", "http", 1)
    ours, shares = _by_turn(results, place, OURS), []
    others = [_by_turn(results, place, name) for name in results["servers"] if name not in (OURS, "echo", "prototype")]
    for number, row in ours.items():
        known = [found[number]["p50_us"] for found in others if number in found and found[number]["p50_us"]]
        if known and row["p50_us"]:
            shares.append(min(known) / row["p50_us"])
    return float(median(shares)) if shares else None


def _of_alone(results: Results, place: Place) -> float | None:
    """Return the time that Fairlead's batches take by themselves, as a share of the time that its requests took."""
    shares = []
    for row in _by_turn(results, place, OURS).values():
        if "alone_s" in row:
            batches, alone_s = row["batches"], row["alone_s"]
            run_s = np.interp([*map(int, batches)], [*map(int, alone_s)], [*alone_s.values()])
            shares.append(np.dot(run_s, [*batches.values()]) * row["per_s"] / row["count"])
    return float(median(shares)) if shares else None


def lines(results: Results) -> Iterator[str]:
    """Yield the report, line by line."""
    whole = cells(results)
    servers = [name for name in results["servers"] if any(name in found for found in whole.values())]
    for title, value in (("requests a second", "per_s"), ("microseconds of processor time a request", "cpu_us")):
        yield f"{title:42}" + "".join(f"{server:>11}" for server in servers)
        for place, found in whole.items():
            numbers = [getattr(found[server], value) if server in found else None for server in servers]
            yield f"{place!s:42}" + "".join(f"{'':11}" if n is None else f"{n:11,.1f}" for n in numbers)
        yield ""
    for (model, rows), per_s in alone(results).items():
        yield f"ONNX Runtime alone, {model}, {rows} rows: {per_s:,.1f} runs a second"
    yield ""
    for name, known in results["servers"].items():
        if known["ready_s"]:
            ready, rss = median(known["ready_s"]), median(known["rss_mb"])
            yield f"{name:11} ready after {ready:5.1f} s, {rss:6.0f} MB resident when idle{_loaded(known)}"
        if known["problem"]:
            yield f"{name:11} {known['problem']}"
    yield ""
    every = targets(results)
    measured = [target for target in every if target.found is not None]
    for target in measured:
        yield f"{target.verdict:12} {target.found:8.2f} of {target.wanted:5.2f}  {target.what}"
    if left := len(every) - len(measured):
        yield f"{left} of {len(every)} targets need servers or points that were not in this run"


def _loaded(known: Mapping[str, Any]) -> str:
    """Return which models a server had loaded, of which older results say nothing."""
    models = known.get("models")
    return f" with {', '.join(models)} loaded" if models else ""
