"""Model pools: what they and their services need beside replicas, and what they cannot do. Pure.

    a pool           Service of all its replicas; Role and RoleBinding, by which its fetchers read the catalog by name;
                     ReferenceGrant, where it is shared: lets routes of these namespaces lead to that Service
    a service in it  routes to that Service, and a document in the catalog, for each model: its versions

The catalog is 256 ConfigMaps, each with the documents of the models whose names' digests begin with two digits.
"""

import hashlib
import json
from collections.abc import Iterator

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import (
    SERVICE,
    Manifest,
    catalog_name,
    manifest,
    pool_namespace,
    pool_of,
    replicas_name,
    service_labels,
)
from integrations.clusters.kubernetes.manifests.workloads.deployment import service_of
from integrations.clusters.kubernetes.manifests.workloads.model_sources import artifact_of
from integrations.clusters.kubernetes.options import Options

_RBAC, _GROUP = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
_GATEWAY = "gateway.networking.k8s.io"
_SHARDS = 256
_SCHEMA = 1
_FIELD = "spec.predictor.modelPool"


def of_pool(desired: Desired) -> list[Manifest]:
    """Return the objects of a pool beside those of its revisions; none for other services."""
    if not any(each.is_pool for each in desired.revisions):
        return []
    labels, pool, name = service_labels(desired.service), desired.service, catalog_name(desired.service)
    names = [f"{name}-{number:02x}" for number in range(_SHARDS)]
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": names, "verbs": ["get"]}
    accounts = sorted({each.pod.service_account or pool for each in desired.revisions})
    subjects = [{"kind": "ServiceAccount", "name": each, "namespace": desired.namespace} for each in accounts]
    role = {"apiGroup": _GROUP, "kind": "Role", "name": name}
    spec = service_of({SERVICE: pool})
    return [
        manifest("v1", "Service", desired, replicas_name(pool), labels, spec=spec),
        manifest(_RBAC, "Role", desired, name, labels, rules=[rule]),
        manifest(_RBAC, "RoleBinding", desired, name, labels, subjects=subjects, roleRef=role),
        *_grant(desired, labels),
    ]


def _grant(desired: Desired, labels: dict[str, str]) -> Iterator[Manifest]:
    """Yield what lets routes of the namespaces that a pool is shared with lead to it, and to nothing else there."""
    if desired.shared_with:
        froms = [
            {"group": _GATEWAY, "kind": kind, "namespace": each}
            for each in desired.shared_with
            for kind in ("HTTPRoute", "GRPCRoute")
        ]
        to = [{"group": "", "kind": "Service", "name": replicas_name(desired.service)}]
        name, spec = replicas_name(desired.service), {"from": froms, "to": to}
        yield manifest(f"{_GATEWAY}/v1beta1", "ReferenceGrant", desired, name, labels, spec=spec)


def pool_of_service(desired: Desired) -> tuple[str, str]:
    """Return namespace and name of the pool whose replicas answer for a service; both empty where those are its own."""
    return next(((pool_namespace(each), pool_of(each)) for each in desired.revisions if each.pool), ("", ""))


def shard(pool: str, model: str) -> str:
    """Return the name of the ConfigMap with the document of a model, `<namespace>.<service>`."""
    return f"{catalog_name(pool)}-{hashlib.sha256(model.encode()).hexdigest()[:2]}"


def document(desired: Desired, options: Options) -> str:
    """Return a service's document; empty where its pool answers for none of its revisions.

    Raises:
        InvalidInput: an artifact that no pod can reach.
    """
    found = [each for each in desired.revisions if each.pool and (each.replicas or each.weight_percent)]
    if not found:
        return ""
    default = max(found, key=lambda each: (each.weight_percent, int(each.model_version)))
    versions = {each.model_version: _version(each, options) for each in found}
    content = {"schema": _SCHEMA, "default": int(default.model_version), "versions": versions}
    return json.dumps(content, sort_keys=True)


def _version(revision: DesiredRevision, options: Options) -> Manifest:
    config = {"config": dict(revision.model_config)} if revision.model_config else {}
    origin = artifact_of(revision, options)
    return {"digest": revision.artifact_digest, "origin": origin, "checked": True, **config}  # as each READY version


def refuse_impossible(desired: Desired) -> None:
    """Raise InvalidInput, by name, for what a pool or a service in one cannot be on Kubernetes."""
    if "*" in desired.shared_with:
        raise InvalidInput(
            f"pool {desired.service} is shared with *, and a ReferenceGrant of the Gateway API names each namespace; "
            "name those whose services may be in it",
            field=f"{_FIELD}.sharedWith",
        )
    for revision in desired.revisions:
        if revision.pool and (what := next(_impossible(desired, revision), "")):
            why = f"is in pool {revision.pool}, which {what}; leave the pool out"
            raise InvalidInput(f"{revision.name} {why}", field="pool")
    if len({each.is_pool for each in desired.revisions}) > 1:
        raise InvalidInput(
            f"{desired.service} has revisions that are a pool and others that are not; make another service and delete "
            "this one",
            field="pool",
        )
    if len(pools := sorted({each.pool for each in desired.revisions if each.pool})) > 1:
        raise InvalidInput(
            f"{desired.service} is in pool {pools[0]}, and is to be in {pools[1]} too; on Kubernetes a service moves "
            "from one pool to another by way of replicas of its own: leave pool out, and name the other one after that",
            field="pool",
        )


def _impossible(desired: Desired, revision: DesiredRevision) -> Iterator[str]:
    if revision.pool == f"{desired.namespace}/{desired.service}":
        yield "is the service itself"
    found = {
        "models that are code": revision.is_code,
        "a custom predictor": revision.custom is not None,
        "a transformer or an explainer": bool(revision.companions),
        "a GPU": bool(revision.resources.accelerator),
        "variables": bool(revision.env or revision.secret_env),
        "a limit of concurrent requests": bool(revision.max_concurrent_requests),
        "a payload logger": revision.logger is not None,
        "a tap": revision.tap is not None,
        "copies of requests": bool(revision.mirror_percent),
        "patches": bool(revision.patches),
    }
    yield from (f"cannot serve {what}" for what, is_there in found.items() if is_there)
