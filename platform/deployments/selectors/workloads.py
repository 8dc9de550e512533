"""Workload identity permissions.

A replica may read its own service, and the models of that service's revisions and of the versions that are tried on its
recorded requests now; the pod of a job may read its own model.
"""

from django.conf import settings

from common.errors import NotFound, NotPermitted
from deployments.models import InferenceService, Revision
from integrations.clusters.base import JobIdentity, WorkloadIdentity
from jobs.domain.attempts import Status
from model_jobs.models import Build, Trial, Tuning
from recordings.models import Replay
from registry.selectors import is_being_checked


def workload_service(*, cluster: str, identity: WorkloadIdentity) -> InferenceService:
    """Return the service of a replica of that cluster; raises NotPermitted if the cluster has none of that name."""
    found = InferenceService.objects.filter(
        cluster__name=cluster, namespace=identity.namespace, name=identity.service
    ).first()
    if found is None:
        raise NotPermitted(
            f"the pod {identity.pod} runs as {identity.namespace}/{identity.service}, which is no service on the "
            f"cluster {cluster}"
        )
    return found


def workload_artifact(*, service: InferenceService, digest: str) -> None:
    """Raise NotFound unless a revision of the service, or a replay that is not over, has the model of that digest."""
    tried = Replay.objects.filter(service=service, status=Status.PENDING.value, model_version__digest=digest)
    if not (Revision.objects.filter(service=service, artifact_digest=digest).exists() or tried.exists()):
        raise NotFound(f"no revision of {service} has a model {digest[:100]}")


def job_artifact(*, cluster: str, identity: JobIdentity, digest: str) -> None:
    """Raise NotFound unless the caller's job is for that model now: a check, a tuning, a build or a trial."""
    if not (digest == identity.artifact_digest and _is_asked_about(cluster, digest)):
        raise NotFound(f"the pod {identity.pod} asks about no model {digest[:100]}")


def _is_asked_about(cluster: str, digest: str) -> bool:
    if cluster == settings.DEFAULT_CLUSTER and is_being_checked(digest=digest):
        return True
    work = {"cluster__name": cluster, "model_version__digest": digest, "status": Status.PENDING.value}
    return any(kind.objects.filter(**work).exists() for kind in (Tuning, Build, Trial))
