"""Pod scheduling: on which nodes a replica may run, and on which it should. Pure.

Sources: Kubernetes, "Pod Topology Spread Constraints", "Assigning Pods to Nodes". Both are preferences: a replica
without a better node is scheduled all the same.
"""

from integrations.clusters.base import Arrangement, Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import MANAGED, REVISION, Manifest, selector
from integrations.clusters.kubernetes.manifests.workloads import accelerators

_NODE, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_ANY_SKEW = 2**31 - 1


def where(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Return the fields of a pod's spec by which the scheduler chooses its node."""
    fields = accelerators.where(revision.resources)
    match revision.arrangement:
        case Arrangement.SPREAD:
            affinity = {**fields.get("affinity", {}), "podAntiAffinity": _in_other_zones(desired, revision)}
            return {**fields, "affinity": affinity, "topologySpreadConstraints": [_apart(desired, revision)]}
        case Arrangement.PACK:
            affinity = {**fields.get("affinity", {}), "podAffinity": _beside_others()}
            return {**fields, "affinity": affinity, "topologySpreadConstraints": [_wherever(desired, revision)]}
    return fields


def _apart(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Spread replicas over nodes; those that a restart replaces do not count."""
    return {
        "maxSkew": 1,
        "topologyKey": _NODE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(desired.service, revision.name)},
        "matchLabelKeys": ["pod-template-hash"],
    }


def _in_other_zones(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Spread replicas over zones, where there are zones: by a constraint, nodes without a zone would not count."""
    term = {"labelSelector": {"matchLabels": selector(desired.service, revision.name)}, "topologyKey": _ZONE}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _beside_others() -> Manifest:
    """Prefer the node with the most replicas of services, of any service and namespace."""
    term = {
        "labelSelector": {"matchLabels": MANAGED, "matchExpressions": [{"key": REVISION, "operator": "Exists"}]},
        "namespaceSelector": {},
        "topologyKey": _NODE,
    }
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _wherever(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Allow any skew: of pods without a constraint the scheduler spreads those of one Deployment by itself."""
    return {
        "maxSkew": _ANY_SKEW,
        "topologyKey": _NODE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": selector(desired.service, revision.name)},
    }
