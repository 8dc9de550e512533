"""How fast replicas may follow their load, as a HorizontalPodAutoscaler says it. Pure."""

from integrations.clusters.base import Autoscaling, behavior_json
from integrations.clusters.kubernetes.manifests.names import Manifest, quantity


def behavior_of(scaling: Autoscaling) -> Manifest:
    """Return how fast, as autoscaling/v2 writes it back; empty where all is left to the cluster's defaults."""
    said = behavior_json(scaling.behavior)
    for rules in said.values():
        if "tolerance" in rules:
            rules["tolerance"] = quantity(rules["tolerance"])
    return said
