"""Scaling behavior of a HorizontalPodAutoscaler: how fast replicas may follow the load. Pure."""

from integrations.clusters.base import Autoscaling, behavior_json
from integrations.clusters.kubernetes.manifests.names import Manifest, quantity


def behavior_of(scaling: Autoscaling) -> Manifest:
    """Return the behavior, as autoscaling/v2 writes it back; empty for the cluster's defaults."""
    said = behavior_json(scaling.behavior)
    for rules in said.values():
        if "tolerance" in rules:
            rules["tolerance"] = quantity(rules["tolerance"])
    return said
