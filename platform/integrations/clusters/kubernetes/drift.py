"""Is an object still what was applied? Pure.

The digest of what was applied last is an annotation of the object. Where it is the same, and the object still has every
value that the manifest has, there is nothing to apply; a tick of a service at rest then writes nothing.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from integrations.clusters.kubernetes.manifests.names import APPLIED, Manifest


def sealed(manifest: Manifest) -> Manifest:
    """Return the manifest with its own digest as an annotation."""
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:32]
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED: digest}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def is_applied(manifest: Manifest, there: Mapping[str, Any]) -> bool:
    """Return whether `there` is what a sealed manifest would make of it."""
    return _has(there, manifest)


def _has(there: object, wanted: object) -> bool:
    """Return whether `there` has all values of `wanted`; Kubernetes adds defaults, but no elements to our lists."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(_has(there.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        if not isinstance(there, Sequence) or len(there) != len(wanted):
            return False
        return all(_has(one, other) for one, other in zip(there, wanted, strict=True))
    return there == wanted or (there is None and not wanted)  # an empty value is left out when it is stored
