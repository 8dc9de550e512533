"""Workload identity permissions.

A replica may read its own service, and the models of that service's revisions, of those in it where it is a model pool,
and of the versions that are tried on its recorded requests now; the pod of a job may read its own model.
"""

from django.conf import settings
from django.db.models import Q

from common.errors import NotFound, NotPermitted
from deployments.models import InferenceService, Revision
from integrations.clusters.base import JobIdentity, WorkloadIdentity
from jobs.services.pods import is_model_of_job, is_model_tried
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
    """Raise NotFound unless a revision of the service, of one in it where it is a model pool, or a replay that is not
    over, has the model of that digest.
    """
    revisions = Revision.objects.filter(artifact_digest=digest)
    is_served = revisions.filter(Q(service=service) | Q(pool=str(service), stopped_at=None)).exists()
    if not (is_served or is_model_tried(service_id=service.pk, digest=digest)):
        raise NotFound(f"no revision of {service} has a model {digest[:100]}")


def job_artifact(*, cluster: str, identity: JobIdentity, digest: str) -> None:
    """Raise NotFound unless the caller's job is for that model now: a check, a tuning, a build or a trial."""
    if not (digest == identity.artifact_digest and _is_asked_about(cluster, digest)):
        raise NotFound(f"the pod {identity.pod} asks about no model {digest[:100]}")


def _is_asked_about(cluster: str, digest: str) -> bool:
    if cluster == settings.DEFAULT_CLUSTER and is_being_checked(digest=digest):
        return True
    return is_model_of_job(cluster=cluster, digest=digest)
