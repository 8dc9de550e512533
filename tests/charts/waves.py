"""Sync waves of rendered objects, as Argo CD reads them, and what an object needs of the others."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.charts.chart import Json

HOOK = "argocd.argoproj.io/hook"
_WAVE = "argocd.argoproj.io/sync-wave"


class Key(NamedTuple):
    """A kind of objects and the name of one."""

    kind: str
    name: str


def key(made: Json) -> Key:
    """Return an object's kind and name."""
    return Key(made["kind"], made["metadata"]["name"])


def annotation(made: Json, name: str) -> str:
    """Return an annotation of an object; empty without it."""
    return str((made["metadata"].get("annotations") or {}).get(name, ""))


def wave(made: Json) -> int:
    """Return an object's wave: 0 without the annotation."""
    return int(annotation(made, _WAVE) or 0)


def needs(made: Json) -> set[Key]:
    """Return what an object needs before it can be made, or its pods can start."""
    spec, metadata = made.get("spec") or {}, made["metadata"]
    found = {Key("Namespace", metadata["namespace"])} if "namespace" in metadata else set()
    if "scaleTargetRef" in spec:
        found.add(Key(spec["scaleTargetRef"]["kind"], spec["scaleTargetRef"]["name"]))
    if "roleRef" in made:
        found.add(Key(made["roleRef"]["kind"], made["roleRef"]["name"]))
        found |= {Key(each["kind"], each["name"]) for each in made["subjects"]}
    found |= {Key("Service", name) for name in _services(spec)}
    if "template" in spec:
        found |= set(_of_pod(spec["template"]["spec"]))
    return found


def _services(spec: Json) -> Iterator[str]:
    for rule in spec.get("rules", ()):
        for path in rule.get("http", {}).get("paths", ()):
            yield path["backend"]["service"]["name"]
        for backend in rule.get("backendRefs", ()):
            yield backend["name"]


def _of_pod(pod: Json) -> Iterator[Key]:
    if "serviceAccountName" in pod:
        yield Key("ServiceAccount", pod["serviceAccountName"])
    for volume in pod.get("volumes", ()):
        yield from _of_volume(volume)
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        for each in container.get("env", ()):
            for source, named in each.get("valueFrom", {}).items():
                if source == "secretKeyRef" and not named.get("optional"):
                    yield Key("Secret", named["name"])


def _of_volume(volume: dict[str, Any]) -> Iterator[Key]:
    if "persistentVolumeClaim" in volume:
        yield Key("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"])
    if "configMap" in volume:
        yield Key("ConfigMap", volume["configMap"]["name"])
    if "secret" in volume:
        yield Key("Secret", volume["secret"]["secretName"])
    for source in volume.get("projected", {}).get("sources", ()):
        if "secret" in source:
            yield Key("Secret", source["secret"]["name"])


def too_early(made: list[Json]) -> list[tuple[Key, Key]]:
    """Return objects with something that they need and that a later wave brings."""
    waves = {key(each): wave(each) for each in made}
    return [
        (key(each), needed)
        for each in made
        for needed in sorted(needs(each))
        if needed in waves and waves[needed] > wave(each)
    ]


def may_wait_forever(made: Json, others: list[Json]) -> bool:
    """Return whether Argo CD may never find an object healthy, as it documents the health of these kinds.

    A claim can wait for its first pod; an Ingress, a Gateway and a LoadBalancer for an address that nothing gives.
    """
    if made["kind"] == "PersistentVolumeClaim":
        return not any(key(made) in needs(each) and wave(each) <= wave(made) for each in others)
    is_balancer = made["kind"] == "Service" and made["spec"].get("type") == "LoadBalancer"
    return is_balancer or made["kind"] in ("Ingress", "Gateway", "HTTPRoute", "Certificate", "HorizontalPodAutoscaler")
