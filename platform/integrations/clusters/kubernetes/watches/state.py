"""Watch state machine for the objects of one kind in one namespace. Pure.

    must list --listed--> streams --ended, failed--> streams again from where it was
        ^                    |
        '---- 410 Gone, or the time of a resync has come

A list is compared with what was known before, so that no change between two streams is missed and none is reported
twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from integrations.clusters.kubernetes.manifests.names import SERVICE

RESYNC_S = 600.0
"""Interval of full lists, in addition to the stream."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_GONE = 410

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Known:
    """An object as last seen."""

    service: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Watch:
    """State of the watch of one kind in one namespace.

    Attributes:
        resource_version: from where to stream; empty where everything has to be listed first.
        objects: by name.
        failures: consecutive failures.
        problem: why it failed the last time; empty where it did not.
        listed_at: monotonic seconds of the last list.
    """

    resource_version: str = ""
    objects: Mapping[str, Known] = field(default_factory=dict)
    failures: int = 0
    problem: str = ""
    listed_at: float = 0.0

    def must_list(self, now: float) -> bool:
        """Return whether everything has to be listed before it can stream."""
        return not self.resource_version or now - self.listed_at >= RESYNC_S


def listed(watch: Watch, items: Iterable[Json], resource_version: str, now: float) -> tuple[Watch, set[str]]:
    """Return the watch after a list, and the services whose objects came, changed or went since."""
    objects = {str(each["metadata"]["name"]): _known(each) for each in items}
    changed = {
        known.service
        for name in watch.objects.keys() | objects.keys()
        if watch.objects.get(name) != objects.get(name)
        for known in (watch.objects.get(name), objects.get(name))
        if known is not None and known.service
    }
    # Failures stay: a stream that ends each time it has begun is requested less and less often.
    return replace(watch, resource_version=resource_version, objects=objects, listed_at=now), changed


def opened(watch: Watch) -> Watch:
    """Return the watch when its stream has begun; failures stay until it is of use, since it may be refused at once."""
    return replace(watch, problem="")


def heard(watch: Watch, event: Json) -> tuple[Watch, set[str]]:
    """Return the watch after one event of its stream, and the services whose objects changed."""
    kind, item = event.get("type"), event["object"]
    if kind == "ERROR":
        return failed(watch, str(item.get("message", "it does not say why")), gone=item.get("code") == _GONE), set()
    version = str(item["metadata"]["resourceVersion"])
    watch = replace(watch, resource_version=version, failures=0, problem="")
    if kind == "BOOKMARK":
        return watch, set()
    name, known = str(item["metadata"]["name"]), _known(item)
    before = watch.objects.get(name)
    objects = {**watch.objects, name: known}
    if kind == "DELETED":
        objects.pop(name)
    elif before == known:
        return watch, set()
    services = {each.service for each in (before, known) if each is not None and each.service}
    return replace(watch, objects=objects), services


def ended(watch: Watch) -> Watch:
    """Return the watch after its stream ended normally, as the API server ends each after a while."""
    return replace(watch, failures=0, problem="")


def failed(watch: Watch, problem: str, *, gone: bool = False) -> Watch:
    """Return the watch after a failure.

    Args:
        gone: the API server no longer has the events in between (410), so that a list is needed.
    """
    version = "" if gone else watch.resource_version
    return replace(watch, resource_version=version, failures=watch.failures + 1, problem=problem)


def wait_s(watch: Watch, chance: float) -> float:
    """Return the exponential back-off before the next try: none at first, then up to twice as long each time.

    Args:
        chance: random from 0 to 1, so that many watches do not come back all at once.
    """
    if not watch.failures:
        return 0.0
    longest = min(_FIRST_WAIT_S * 2.0 ** min(watch.failures - 1, 16), _LONGEST_WAIT_S)
    return longest * (0.5 + chance / 2)


def _known(item: Json) -> Known:
    metadata = item["metadata"]
    return Known((metadata.get("labels") or {}).get(SERVICE, ""), str(metadata.get("resourceVersion", "")))
