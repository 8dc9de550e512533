"""Reconciler of ModelVersion objects: each is one version of a model, imported from its URI.

    object --once--> import --> version, checked --READY--> the aliases of the spec

The version is immutable, as its object is but for the aliases; it stays where the object is deleted. An alias is set
once for each spec, so that moving it elsewhere lasts.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from clusters.models import Cluster
from custom_resources.domain.objects import Object
from custom_resources.models import ResourceObject
from custom_resources.reconcile.rows import attempt, following, is_due
from custom_resources.views.status import VersionState, version_status
from deployments.selectors.permissions import check_team_of_model
from integrations.clusters.kubernetes.custom_resources import CustomResources
from registry.domain.import_lifecycle import ImportStatus
from registry.domain.version_lifecycle import Status
from registry.domain.version_metadata import Particulars
from registry.models import ModelImport
from registry.services import alias_set
from registry.services.imports import import_request

KIND = "ModelVersion"
_LOOKS = timedelta(seconds=2)


def version_follow(
    cluster: Cluster, objects: CustomResources, namespace: str, name: str, *, clock: Callable[[], datetime]
) -> None:
    """Import the version of an object once, point its aliases at it, and write its status; raises Unavailable."""
    item = objects.get(KIND, namespace, name)
    row = following(cluster, KIND, namespace, name)
    if item is None:
        if row is not None:
            row.delete()
        return
    found, now = Object.of(item), clock()
    if row is None or row.uid != found.uid:
        row = row or ResourceObject(cluster=cluster, kind=KIND, namespace=namespace, name=name)
        row.uid, row.digest, row.model_import, row.model_version = found.uid, "", None, None
    said = hashlib.sha256(json.dumps(found.spec, sort_keys=True).encode()).hexdigest()
    if is_due(row, said, now):
        actor = f"kubernetes:{cluster.name}/{namespace}/{name}"
        attempt(row, said, lambda: partial(_advance, found, row, actor=actor, now=now), now=now)
    status = version_status(_state(row), row.problem, before=found.status, generation=found.generation, now=now)
    if status != found.status:
        objects.set_status(KIND, namespace, name, status)


def _advance(found: Object, row: ResourceObject, *, actor: str, now: datetime) -> timedelta | None:
    """Order the import, or point the aliases at the version that is READY; returns when to look again."""
    if row.model_import is None and row.model_version is None:
        row.model_import = _imported(found, actor=actor, now=now)
    ordered = row.model_import
    if ordered is not None and row.model_version is None:
        row.model_version = ordered.version
    version = row.model_version
    if version is None:
        return _LOOKS if ordered is not None and ordered.status == ImportStatus.PENDING.value else None
    if version.status == Status.READY.value:
        for alias in found.spec.get("aliases") or ():
            alias_set(model=version.model.name, name=alias, number=version.number, now=now, actor=actor)
    return _LOOKS if version.status == Status.PENDING.value else None


def _imported(found: Object, *, actor: str, now: datetime) -> ModelImport:
    """Order the import that the spec says, whose fields and types the kind's schema checks."""
    spec = found.spec
    check_team_of_model(spec["model"], found.namespace)
    return import_request(
        model=spec["model"],
        uri=spec["uri"],
        now=now,
        actor=actor,
        filename=spec.get("filename", ""),
        sha256=spec.get("sha256", ""),
        particulars=Particulars(tags=spec.get("tags") or {}, description=spec.get("description", "")),
        field="spec.uri",
    )


def _state(row: ResourceObject) -> VersionState | None:
    version, ordered = row.model_version, row.model_import
    if version is not None:
        phases = {Status.READY.value: "Ready", Status.REJECTED.value: "Rejected"}
        return VersionState(phases.get(version.status, "Checking"), version.reason, version.uri, version.digest)
    if ordered is None:
        return None
    phases = {ImportStatus.FAILED.value: "ImportFailed", ImportStatus.IMPORTED.value: "Deleted"}
    return VersionState(phases.get(ordered.status, "Importing"), ordered.reason)
