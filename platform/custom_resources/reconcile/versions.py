"""Reconciler of ModelVersion objects: each is one version of a model, imported from its URI.

    object --once--> import --> version, checked --READY--> the aliases of the spec

The version is immutable, as its object is but for the aliases; it stays where the object is deleted. An alias is set
once for each spec, so that moving it elsewhere lasts.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusters.models import Cluster
from common.errors import FairleadError, InvalidInput, Unavailable
from custom_resources.domain.objects import Object
from custom_resources.models import ResourceObject
from custom_resources.reconcile.rows import following, retry_after
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
_FIELDS = ("model", "uri", "sha256", "filename", "description", "tags", "aliases")


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
    if said != row.digest or (row.retry_at is not None and row.retry_at <= now):
        _advance(found, row, said, actor=f"kubernetes:{cluster.name}/{namespace}/{name}", now=now)
    state = _state(row)
    status = version_status(state, row.problem, before=found.status, generation=found.generation, now=now)
    if status != found.status:
        objects.set_status(KIND, namespace, name, status)


def _advance(found: Object, row: ResourceObject, said: str, *, actor: str, now: datetime) -> None:
    is_new = said != row.digest
    try:
        if row.model_import is None and row.model_version is None:
            row.model_import = _imported(found, actor=actor, now=now)
        is_over = _settled(found, row, actor=actor, now=now)
    except Unavailable:
        raise
    except FairleadError as error:
        problem = " ".join((error.message, *error.further))
        row.retry_at, row.problem = retry_after(row, problem, now=now, is_new=is_new), problem
    else:
        row.retry_at, row.problem = None if is_over else now + _LOOKS, ""
    row.digest = said
    row.save()


def _imported(found: Object, *, actor: str, now: datetime) -> ModelImport:
    """Order the import that the spec says."""
    if unknown := sorted(found.spec.keys() - set(_FIELDS)):
        raise InvalidInput(f"spec.{unknown[0]} is no field of a ModelVersion; it has {', '.join(_FIELDS)}")
    spec = _Spec(**found.spec)
    check_team_of_model(spec.model, found.namespace)
    return import_request(
        model=spec.model,
        uri=spec.uri,
        now=now,
        actor=actor,
        filename=spec.filename,
        sha256=spec.sha256,
        particulars=Particulars(tags=spec.tags or {}, description=spec.description),
        field="spec.uri",
    )


@dataclass(frozen=True, slots=True)
class _Spec:
    """The spec, whose types the schema of the kind checks."""

    model: str
    uri: str
    sha256: str = ""
    filename: str = ""
    description: str = ""
    tags: dict[str, str] | None = None
    aliases: tuple[str, ...] = ()


def _settled(found: Object, row: ResourceObject, *, actor: str, now: datetime) -> bool:
    """Point the aliases at the version once it is READY; return whether nothing is left to do."""
    ordered = row.model_import
    if ordered is not None and row.model_version is None:
        row.model_version = ordered.version
    version = row.model_version
    if version is None:
        return ordered is not None and ordered.status != ImportStatus.PENDING.value
    if version.status == Status.READY.value:
        for alias in found.spec.get("aliases") or ():
            alias_set(model=version.model.name, name=alias, number=version.number, now=now, actor=actor)
    return version.status != Status.PENDING.value


def _state(row: ResourceObject) -> VersionState | None:
    version, ordered = row.model_version, row.model_import
    if version is not None:
        phases = {Status.READY.value: "Ready", Status.REJECTED.value: "Rejected"}
        return VersionState(phases.get(version.status, "Checking"), version.reason, version.uri, version.digest)
    if ordered is None:
        return None
    phases = {ImportStatus.FAILED.value: "ImportFailed", ImportStatus.IMPORTED.value: "Deleted"}
    return VersionState(phases.get(ordered.status, "Importing"), ordered.reason)
