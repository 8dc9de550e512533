"""Operators' patches of the rendered manifests. Pure.

A patch may add what the driver leaves open, and change how pods run. Fields on which the driver and rollouts rely are
protected in any form of patch: they are compared before and after.

A revision's objects get that revision's patches; a pinned pod template has them already (`pinned`). Objects that a
service has once (routes, ServiceAccount, NetworkPolicy) get those of the revision with the largest share of requests.
"""

import copy
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jsonpatch
import jsonpointer
import yaml

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision, Patch
from integrations.clusters.kubernetes.manifests.names import Manifest, owner_of
from integrations.clusters.kubernetes.manifests.pinned import beside_template
from integrations.clusters.kubernetes.manifests.routes.security_policy import WITHHOLD_TOKEN

PATCHABLE = (
    "Deployment",
    "GRPCRoute",
    "HTTPRoute",
    "HorizontalPodAutoscaler",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ScaledObject",
    "Service",
    "ServiceAccount",
)
_OWN_PREFIX = "fairlead/"
_MOST_COPIED = 256 * 1024
"""JSON bytes that the operations of one patch may copy: each copy of the whole object would double it."""


def check_target(patch: Patch) -> None:
    """Raise InvalidInput where a patch targets a kind that is never rendered."""
    if patch.kind not in PATCHABLE:
        raise InvalidInput(
            f"{patch.name} is for {patch.kind[:60]!r}; what is rendered is {', '.join(PATCHABLE)}", field=patch.name
        )


def patched(desired: Desired, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the manifests with the patches of their revisions.

    Raises:
        InvalidInput: a patch does not fit its object, or changes a protected field; by name.
    """
    by_name = {revision.name: revision for revision in desired.revisions}
    main = max(desired.revisions, key=lambda each: each.weight_percent, default=None)
    return [_patched(manifest, *_patches_of(manifest, by_name, main)) for manifest in manifests]


def refuse_idle(desired: Desired, manifests: Sequence[Manifest], patches: Sequence[Patch]) -> None:
    """Raise InvalidInput, naming the patch, where one of these changes no object at all."""
    for patch in patches:
        if not any(_is_target(patch, manifest) for manifest in manifests):
            there = sorted({f"{each['kind']} {each['metadata']['name']}" for each in manifests})
            wanted = f"{patch.kind} {patch.object}".strip()
            raise InvalidInput(
                f"{patch.name} is for {wanted}, which service {desired.service} has not; it has {', '.join(there)}",
                field=patch.name,
            )


def unpatched(desired: Desired) -> Desired:
    """Return the desired state without patches."""
    return replace(desired, revisions=tuple(replace(each, patches=()) for each in desired.revisions))


def difference(before: Manifest, after: Manifest) -> str:
    """Return the changes of patches to an object, as a unified diff of YAML."""
    name = f"{before['kind']}/{before['metadata']['name']}"
    one, other = (
        yaml.safe_dump(each, sort_keys=False, width=120).splitlines(keepends=True) for each in (before, after)
    )
    return "".join(difflib.unified_diff(one, other, f"{name} as rendered", f"{name} as patched"))


def merged(value: Any, change: Any) -> Any:
    """Return a value after a merge patch: null removes, objects are merged, all else replaces (RFC 7386, 2)."""
    if not isinstance(change, Mapping):
        return copy.deepcopy(change)
    result = dict(value) if isinstance(value, Mapping) else {}
    for name, part in change.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), part)
    return result


def _patches_of(
    manifest: Manifest, by_name: Mapping[str, DesiredRevision], main: DesiredRevision | None
) -> tuple[Sequence[Patch], bool]:
    """Return an object's patches, and whether its pod template is pinned."""
    labels = manifest["metadata"]["labels"]
    revision = by_name.get(owner_of(labels), main)
    if revision is None:
        return (), False
    is_pinned = manifest["kind"] == "Deployment" and manifest["metadata"]["name"] in revision.pod_templates
    return tuple(beside_template(revision.patches)) if is_pinned else revision.patches, is_pinned


def _patched(manifest: Manifest, patches: Sequence[Patch], is_pinned: bool) -> Manifest:
    pinned = manifest["spec"]["template"] if is_pinned else None
    for patch in patches:
        if _is_target(patch, manifest):
            after = applied(manifest, patch)
            _refuse_changes_of_ours(manifest, after, patch)
            manifest = after
    return manifest if pinned is None else {**manifest, "spec": {**manifest["spec"], "template": pinned}}


def _is_target(patch: Patch, manifest: Manifest) -> bool:
    return patch.kind == manifest["kind"] and patch.object in ("", manifest["metadata"]["name"])


def applied(manifest: Manifest, patch: Patch) -> Manifest:
    """Return an object with a patch; raises InvalidInput where the patch does not fit it."""
    if patch.merge is not None:
        return dict(merged(manifest, patch.merge))
    try:
        after = _operated(manifest, patch)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise InvalidInput(
            f"{patch.name} does not fit {manifest['kind']} {manifest['metadata']['name']}: {error}", field=patch.name
        ) from error
    if not isinstance(after, dict):
        raise InvalidInput(f"{patch.name} makes no object of {manifest['kind']} {manifest['metadata']['name']}")
    return after


def _operated(manifest: Manifest, patch: Patch) -> Any:
    """Return an object after a patch's operations; raises InvalidInput where copies of copies grow too large."""
    after, left = copy.deepcopy(manifest), _MOST_COPIED
    for operation in copy.deepcopy([dict(each) for each in patch.operations]):
        if operation["op"] == "copy":
            left -= len(json.dumps(jsonpointer.resolve_pointer(after, operation["from"]), default=str))
            if left < 0:
                raise InvalidInput(f"{patch.name} copies more than {_MOST_COPIED:,} bytes", field=patch.name)
        after = jsonpatch.apply_patch(after, [operation], in_place=True)
    return after


def _refuse_changes_of_ours(before: Manifest, after: Manifest, patch: Patch) -> None:
    ours = dict(_ours(before))
    there = dict(_ours(after, like=before))
    changed = next((name for name in ours.keys() | there.keys() if ours.get(name) != there.get(name)), None)
    if changed is not None:
        raise InvalidInput(
            f"{patch.name} changes {changed} of {before['kind']} {before['metadata']['name']}, which is the driver's "
            "own; leave it as it is",
            field=patch.name,
        )


def _ours(manifest: Manifest, like: Manifest | None = None) -> Iterator[tuple[str, Any]]:
    """Yield the protected parts of an object, by name.

    Args:
        like: the object whose labels are ours; others may be added beside them.
    """
    like = manifest if like is None else like
    for name in ("apiVersion", "kind"):
        yield name, manifest.get(name)
    for at in ("metadata", "spec.template.metadata"):
        found, known = _at(manifest, at), _at(like, at)
        labels, annotations = found.get("labels") or {}, found.get("annotations") or {}
        for name in known.get("labels") or {}:
            yield f"{at}.labels[{name}]", labels.get(name) if isinstance(labels, Mapping) else None
        if not isinstance(annotations, Mapping):
            yield f"{at}.annotations", annotations
            continue
        for name, value in annotations.items():
            if name.startswith(_OWN_PREFIX):
                yield f"{at}.annotations[{name}]", value
    for name in ("name", "namespace", "ownerReferences", "finalizers"):
        yield f"metadata.{name}", _at(manifest, "metadata").get(name)
    spec = _at(manifest, "spec")
    numbers = ("replicas", "minReplicas", "maxReplicas", "minReplicaCount", "maxReplicaCount", "idleReplicaCount")
    for name in ("selector", "podSelector", "scaleTargetRef", *numbers):
        yield f"spec.{name}", spec.get(name)
    yield "spec.rules[].backendRefs, copies and the removal of the key", [_backends(rule) for rule in _rules(manifest)]


def _rules(manifest: Manifest) -> Sequence[Any]:
    found = _at(manifest, "spec").get("rules")
    return found if manifest["kind"].endswith("Route") and isinstance(found, list) else ()


def _backends(rule: object) -> Any:
    filters = (rule.get("filters") or []) if isinstance(rule, Mapping) else None
    if not isinstance(rule, Mapping) or not isinstance(filters, list):
        return rule  # unlike any of ours
    copies = [each for each in filters if not isinstance(each, Mapping) or each.get("type") == "RequestMirror"]
    return [rule.get("backendRefs"), copies, WITHHOLD_TOKEN in filters]


def _at(manifest: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    found: Any = manifest
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
