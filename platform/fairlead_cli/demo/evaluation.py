"""Evaluation of the demo's rollouts from its requests: shares per step, failures, accuracy; pure.

A rollout's weights are judged on the requests that lie wholly within a `Window` in which the weight is known to have
held. Envoy draws a revision for each request by itself, so a share seen in n requests spreads around the weight p with
the standard deviation sqrt(p (1 - p) / n); 4.5 of those are exceeded by chance once in 150 000 windows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any

from fairlead_cli.demo.requests import Request

_DEVIATIONS = 4.5
_ROUNDING = 0.002
_ENOUGH = 100
_SHOWN_FAILURES = 3
JOINED = 0.99
"""Part of the labels that must find their answers: those of the first second are not kept yet."""


@dataclass(frozen=True, slots=True)
class Window:
    """A time window, in Unix seconds, in which the revision had `weight_percent` of the requests."""

    version: int
    revision: str
    weight_percent: int
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Share:
    """Observed traffic share of a revision in a window, against its weight."""

    window: Window
    requests: int
    seen_percent: float
    tolerance_percent: float

    @property
    def enough(self) -> bool:
        """Return whether the number of requests suffices."""
        return self.requests >= _ENOUGH

    @property
    def ok(self) -> bool:
        """Return whether the share fits the weight."""
        return self.enough and abs(self.seen_percent - self.window.weight_percent) <= self.tolerance_percent


@dataclass(frozen=True, slots=True)
class Check:
    """One condition of the demo, and its result."""

    name: str
    ok: bool
    message: str


def share(window: Window, requests: Iterable[Request]) -> Share:
    """Return the share of a window's revision among the requests that lie within it."""
    inside = [
        request for request in requests if request.at >= window.started_at and request.ended_at <= window.ended_at
    ]
    hits = sum(request.revision == window.revision for request in inside)
    weight = window.weight_percent / 100
    count = len(inside)
    spread = _DEVIATIONS * sqrt(weight * (1 - weight) / count) if count else 1.0
    return Share(window, count, 100 * hits / count if count else 0.0, 100 * (spread + _ROUNDING))


def by_revision(requests: Sequence[Request], versions: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return requests, failures and accuracy (of the answered ones) per revision, oldest first."""
    rows = []
    for revision in sorted({request.revision for request in requests}):
        own = [request for request in requests if request.revision == revision]
        answered = [request for request in own if request.ok]
        correct = sum(request.correct for request in answered)
        rows.append(
            {
                "revision": revision or "(none answered)",
                "version": versions.get(revision),
                "requests": len(own),
                "failed": len(own) - len(answered),
                "accuracy_percent": round(100 * correct / len(answered), 2) if answered else None,
            }
        )
    return rows


def by_protocol(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Return requests, failures and latency as the client saw it per protocol."""
    rows = []
    for protocol in sorted({request.protocol for request in requests}):
        own = [request for request in requests if request.protocol == protocol]
        times = sorted(1000 * (request.ended_at - request.at) for request in own)
        rows.append(
            {
                "protocol": protocol,
                "requests": len(own),
                "failed": sum(not request.ok for request in own),
                "latency_p50_ms": round(_quantile(times, 0.5), 2),
                "latency_p99_ms": round(_quantile(times, 0.99), 2),
            }
        )
    return rows


def checks(
    *,
    requests: Sequence[Request],
    shares: Sequence[Share],
    good: Mapping[str, Any],
    failing: Mapping[str, Any],
    mistaken: Mapping[str, Any],
    service: Mapping[str, Any],
    labels: Mapping[str, Any],
) -> list[Check]:
    """Return all claims of the demo, each with whether it held.

    Args:
        requests: all of the demo's requests.
        shares: one per step seen of any rollout.
        good: the rollout that should have promoted itself, as the API shows it at its end.
        failing: the rollout that should have rolled back, the only one whose canary may fail requests.
        mistaken: the rollout that should have rolled back for its wrong answers.
        service: the service after all of them.
        labels: what the traffic sent, and what the service joined with its answers.
    """
    return [
        _only_bad_failed(requests, failing["to_revision"]),
        _ended(f"version {good['to_version']} promoted itself", good, phase="Healthy", weight=100),
        _ended(f"version {failing['to_version']} was rolled back", failing, phase="Degraded", weight=0),
        _labels_joined(labels),
        _stopped_by_labels(mistaken),
        _stable_serves(service, good),
        # A bad version may be caught before enough requests came to judge its share.
        *(_share_fits(each) for each in shares if each.enough or each.window.revision == good["to_revision"]),
    ]


def _only_bad_failed(requests: Sequence[Request], bad_revision: str) -> Check:
    name = "only the bad version failed requests"
    strangers = [request for request in requests if not request.ok and request.revision != bad_revision]
    own = sum(not request.ok for request in requests) - len(strangers)
    if not requests:
        return Check(name, False, "no request was sent")
    if strangers:
        seen = Counter(f"{each.protocol} {each.revision or 'no revision'}: {each.message}" for each in strangers)
        examples = "; ".join(f"{count}x {text}" for text, count in seen.most_common(_SHOWN_FAILURES))
        return Check(name, False, f"{len(strangers)} of {len(requests)} requests failed elsewhere: {examples}")
    return Check(name, own > 0, f"{len(requests)} requests, {own} failed, all of them answered by {bad_revision}")


def _ended(name: str, rollout: Mapping[str, Any], *, phase: str, weight: int) -> Check:
    ok = rollout["phase"] == phase and rollout["weight_actual"] == weight
    return Check(name, ok, f"{rollout['phase']} at {rollout['weight_actual']} %: {rollout['reason']['message']}")


def _labels_joined(labels: Mapping[str, Any]) -> Check:
    sent, unsent, joined = labels["sent"], labels["unsent"], labels["joined"]
    found = f"{sent} labels sent, {joined} joined with their answers"
    if unsent:
        found += f", {unsent} not sent: {labels['message'] or 'too many waited'}"
    ok = sent > 0 and not unsent and joined >= JOINED * sent
    return Check("labels came seconds late and found their answers", ok, found)


def _stopped_by_labels(mistaken: Mapping[str, Any]) -> Check:
    """Return whether the gate on quality ended it, and no other limit."""
    ended = _ended(
        f"version {mistaken['to_version']} was rolled back for its wrong answers", mistaken, phase="Degraded", weight=0
    )
    measured = [each for run in mistaken["analysis_runs"] for each in run["measurements"]]
    violated = {each["metric"].partition(":")[0] for each in measured if each["verdict"] == "Failed"}
    return replace(ended, ok=ended.ok and violated == {"quality"})


def _stable_serves(service: Mapping[str, Any], good: Mapping[str, Any]) -> Check:
    weights = {row["name"]: row["weight_actual"] for row in service["revisions"] if row["weight_actual"]}
    ok = weights == {good["to_revision"]: 100}
    return Check(
        f"version {good['to_version']} serves all requests at the end",
        ok,
        f"weights {weights}, service {service['phase']}",
    )


def _share_fits(seen: Share) -> Check:
    window = seen.window
    name = f"version {window.version} at {window.weight_percent} %"
    if not seen.enough:
        return Check(name, False, f"only {seen.requests} requests in this step, too few for a verdict")
    found = f"seen {seen.seen_percent:.1f} % of {seen.requests} requests, tolerance {seen.tolerance_percent:.1f}"
    return Check(name, seen.ok, found)


def _quantile(ordered: Sequence[float], part: float) -> float:
    return ordered[max(0, ceil(part * len(ordered)) - 1)] if ordered else 0.0
