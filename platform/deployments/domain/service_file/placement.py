"""Placement preferences of a service file (`spec.placement`): arrangement, latency target and sharing of GPUs. Pure."""

from typing import Any

from clusters.domain.resources import AUTO
from common.files.document import Document
from deployments.domain.service_file.values import PlacementPreference
from integrations.clusters.base import WHOLE, Arrangement, Resources
from placement.packing.measured_latency import LatencyTarget

PLACEMENT = "spec.placement"
"""The field in a service file."""
_LONGEST_MS, _LARGEST_BATCH = 600_000, 1 << 20


def parse_placement(spec: Document, resources: Resources) -> PlacementPreference:
    """Return the `spec.placement`."""
    document = spec.optional("placement")
    if document is None:
        return PlacementPreference()
    says = document.raw("replicas", None) is not None
    replicas = document.choice("replicas", Arrangement, Arrangement.PACK) if says else None
    target = document.part("latency", _target)
    sharing = document.flag("sharing", default=False)
    document.refuse_unknown()
    are_resources_sound = spec.is_sound("predictor.model.resources")
    for name, is_said in (("latency", target is not None), ("sharing", sharing)):
        if is_said and resources.accelerator != AUTO and are_resources_sound:
            how = f"leave it out, or have one chosen by resources.limits with {WHOLE}: {AUTO}"
            document.fault(name, f"is what a slice is chosen by; {how}")
    if sharing and target is not None:
        document.fault(
            "sharing",
            f"and {document.path('latency')} exclude each other: what a batch takes was measured alone, and other pods "
            "on the slice make it longer; leave one out",
        )
    return PlacementPreference(replicas, target, sharing)


def placement_json(preference: PlacementPreference) -> dict[str, Any]:
    """Return it as a file has it; empty without preferences."""
    said: dict[str, Any] = {} if preference.replicas is None else {"replicas": preference.replicas.value}
    if preference.latency is not None:
        said["latency"] = {"p99Ms": preference.latency.p99_ms, "batchSize": preference.latency.batch_size}
    if preference.sharing:
        said["sharing"] = True
    return said


def stored_placement(stored: dict[str, Any]) -> PlacementPreference:
    """Return it from the JSON of `placement_json`."""
    latency = stored.get("latency")
    return PlacementPreference(
        Arrangement(stored["replicas"]) if "replicas" in stored else None,
        None if latency is None else LatencyTarget(latency["p99Ms"], latency["batchSize"]),
        stored.get("sharing", False),
    )


def _target(latency: Document) -> LatencyTarget:
    target = LatencyTarget(
        latency.number("p99Ms", minimum=0.001, maximum=_LONGEST_MS),
        latency.integer("batchSize", minimum=1, maximum=_LARGEST_BATCH, default=1),
    )
    latency.refuse_unknown()
    return target
