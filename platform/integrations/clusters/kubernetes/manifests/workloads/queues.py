"""Kueue's queue of pods and Jobs. Pure.

Source: Kueue, "Run Deployment", "Run Plain Pods", "Run Jobs": the label names a LocalQueue of the namespace, and a pod
has a scheduling gate until it is admitted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from integrations.clusters.base import QUEUE, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import Options

GATE = "kueue.x-k8s.io/admission"


def default_queue(options: Options) -> dict[str, str]:
    """Return the label of the cluster's first queue; empty without queues."""
    return {QUEUE: options.queue_names[0]} if options.queue_names else {}


def queue_of(revision: DesiredRevision, options: Options) -> dict[str, str]:
    """Return the label of the queue of a revision's pods: its service's own, else the cluster's first one."""
    own = revision.pod.labels.get(QUEUE)
    return default_queue(options) if own is None else {QUEUE: own}


def label_of(template: Mapping[str, Any]) -> dict[str, str]:
    """Return the label of a pod template's queue; empty without one."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {QUEUE: labels[QUEUE]} if QUEUE in labels else {}


def follow_templates(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the manifests, each Deployment with the queue of its pod template.

    Kueue writes a Deployment's queue into its pod template, which would replace the pods of a pinned one.
    """
    return [_following(each) if each["kind"] == "Deployment" else each for each in manifests]


def _following(deployment: Manifest) -> Manifest:
    metadata = deployment["metadata"]
    own = {name: value for name, value in metadata["labels"].items() if name != QUEUE}
    labels = {**own, **label_of(deployment["spec"]["template"])}
    return {**deployment, "metadata": {**metadata, "labels": labels}}
