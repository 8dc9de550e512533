"""Pinned pod templates of revisions. Pure.

A revision that had ready replicas keeps its pod template, with its patches: a new release, another runtime image and a
changed cluster file render a new revision only. Only the number of restarts is written into it. All other fields of a
Deployment, and its other objects, are rendered as ever.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from integrations.clusters.base import DesiredRevision, Patch
from integrations.clusters.kubernetes.manifests.names import RESTART, Manifest

_POINTER = "/spec/template"


def pinned_template(revision: DesiredRevision, deployment: str) -> Manifest | None:
    """Return the pinned pod template of a revision's Deployment; None where none is recorded."""
    recorded = revision.pod_templates.get(deployment)
    return None if recorded is None else with_restart(recorded, revision.restart_number)


def with_restart(template: Mapping[str, Any], number: int) -> Manifest:
    """Return a pod template with this number of restarts; another number replaces its pods."""
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), RESTART: str(number)}
    return {**template, "metadata": {**metadata, "annotations": annotations}}


def without_restart(template: Mapping[str, Any]) -> Manifest:
    """Return a pod template without its number of restarts, as it is recorded and compared."""
    made = with_restart(template, 0)
    del made["metadata"]["annotations"][RESTART]
    return made


def beside_template(patches: Iterable[Patch]) -> Iterator[Patch]:
    """Yield the patches of a Deployment without what they change of its pod template, which has that already."""
    for patch in patches:
        if patch.merge is not None:
            spec = patch.merge.get("spec")
            rest = {key: value for key, value in spec.items() if key != "template"} if isinstance(spec, Mapping) else {}
            merge = {**patch.merge, "spec": rest} if isinstance(spec, Mapping) else patch.merge
            yield replace(patch, merge=merge)
        elif operations := tuple(each for each in patch.operations if not _is_inside(each)):
            yield replace(patch, operations=operations)


def _is_inside(operation: Mapping[str, Any]) -> bool:
    """Return whether an operation reads or writes the pod template, or a part of it."""
    places = (str(operation.get(name, "")) for name in ("path", "from"))
    return any(place == _POINTER or place.startswith(f"{_POINTER}/") for place in places)
