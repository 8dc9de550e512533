"""Access of job pods: the model and the request that they may fetch, and the files that they may upload."""

import uuid

from common.errors import Conflict, NotFound
from integrations.artifacts.store import StoredArtifact
from integrations.clusters.base import JobIdentity
from jobs.services.kinds import Pods, kinds


def is_model_of_job(*, cluster: str, digest: str) -> bool:
    """Return whether a job on the cluster, which has not ended, is about the model of that digest."""
    about = {"cluster__name": cluster, "model_version__digest": digest}
    return any(kind.pending.filter(**about).exists() for kind in kinds() if kind.pods is Pods.OF_JOB)


def is_model_tried(*, service_id: int, digest: str) -> bool:
    """Return whether a job of the service, which has not ended, runs the model of that digest in the service's name."""
    about = {"service": service_id, "model_version__digest": digest}
    return any(kind.pending.filter(**about).exists() for kind in kinds() if kind.pods is Pods.OF_SERVICE)


def job_request(*, cluster: str, identity: JobIdentity, request_id: uuid.UUID) -> str:
    """Return the request that the caller, the pod of a job, currently answers; raises NotFound if it has none."""
    if identity.request_id != str(request_id):
        raise NotFound(f"the pod {identity.pod} answers no request {request_id}")
    for kind in kinds():
        if kind.request is not None:
            row = kind.held(request_id).filter(cluster__name=cluster).first()
            if row is not None:
                return kind.request(row)
    raise NotFound("the request is not waited for any more: the trial was stopped, or is made again elsewhere")


def check_result(*, cluster: str, identity: JobIdentity, result_id: uuid.UUID) -> None:
    """Raise NotFound unless the caller is the running job of that result on that cluster."""
    bringing = (kind.held(result_id) for kind in kinds() if kind.result is not None)
    is_held = any(rows.filter(cluster__name=cluster).exists() for rows in bringing)
    if not (identity.result_id == str(result_id) and is_held):
        raise NotFound(f"the pod {identity.pod} makes no result {result_id}")


def result_take(*, result_id: uuid.UUID, artifact: StoredArtifact) -> None:
    """Record the files that a job made; raises Conflict where it no longer runs."""
    for kind in kinds():
        if kind.result is not None and kind.held(result_id).update(**kind.result(artifact)):
            return
    raise Conflict("what was built is not waited for any more: it was stopped, or is built again elsewhere")
