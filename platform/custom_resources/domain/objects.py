"""Custom resource objects, and the files that they are. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

FINALIZER = "fairlead.dev/drain"
"""Keeps a deleted object until its service has drained."""
CHANGES = "fairlead.dev/changes"
"""Annotation with `adopt`: changes by API and pages are written into the object; else they are refused."""
TAKE_OVER = "fairlead.dev/take-over"
"""Annotation with `true`: the object takes a service of its name over that API or pages made."""
POLICY = "fairlead.dev/policy"
"""Annotation of KServe's objects, whose spec has no field for it: the name of the rollout policy."""
_STOP = "serving.kserve.io/stop"
_FILE = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}


@dataclass(frozen=True, slots=True)
class Object:
    """An object as the cluster has it.

    Attributes:
        generation: rises with each change of its spec.
        version: its resourceVersion.
        is_leaving: it was deleted, and goes once it has no finalizer.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    version: str
    is_leaving: bool = False
    finalizers: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Json = field(default_factory=dict)
    status: Json = field(default_factory=dict)

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> "Object":
        """Return an object that an API server returned."""
        metadata = item["metadata"]
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            generation=int(metadata.get("generation", 0)),
            version=metadata["resourceVersion"],
            is_leaving="deletionTimestamp" in metadata,
            finalizers=tuple(metadata.get("finalizers") or ()),
            annotations=metadata.get("annotations") or {},
            spec=item.get("spec") or {},
            status=item.get("status") or {},
        )

    @property
    def adopts(self) -> bool:
        """Return whether changes by API and pages are written into it."""
        return self.annotations.get(CHANGES) == "adopt"

    @property
    def takes_over(self) -> bool:
        """Return whether it takes over a service that is there already."""
        return self.annotations.get(TAKE_OVER) == "true"


def service_file(found: Object, cluster: str, *, policy: str = "") -> Json:
    """Return the service file that an InferenceService is: on its own cluster, and stopped by KServe's annotation.

    Args:
        policy: of its rollouts, where the spec cannot name one.
    """
    metadata: Json = {"name": found.name, "namespace": found.namespace}
    if _STOP in found.annotations:
        metadata["annotations"] = {_STOP: found.annotations[_STOP]}
    spec = {**found.spec, "cluster": cluster}
    if policy:
        spec["rollout"] = {"policy": policy}
    return {**_FILE, "metadata": metadata, "spec": spec}


def spec_of_file(document: Mapping[str, Any]) -> Json:
    """Return the spec by which an object is the service file `document`."""
    return {name: value for name, value in document["spec"].items() if name != "cluster"}


def digest(found: Object, file: Mapping[str, Any]) -> str:
    """Return the digest of all that an object says of its service."""
    said = [file, found.adopts, found.takes_over, found.uid]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
