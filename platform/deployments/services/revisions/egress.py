"""Network egress of a service's model: granted by an administrator of the installation, kept by the service.

A service has it while its stable revision has it, or its file says so: both went through `check_egress`.
"""

from clusters.models import Cluster
from clusters.services.connection import allows_python
from common.errors import NotPermitted
from deployments.domain.service_file import EGRESS, ServiceSpec, is_code
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision
from integrations.clusters.base import may_connect


def has_egress(revision: Revision | None, cluster: Cluster) -> bool:
    """Return whether the model of a revision of the cluster may open connections."""
    if revision is None:
        return False
    runs_code = is_code(revision.model_version.platform) and allows_python(cluster)
    return may_connect(revision.egress, is_code=runs_code)


def egress_after(spec: ServiceSpec, stable: Revision | None, cluster: Cluster) -> bool:
    """Return the egress of a new revision: the file's, else the stable revision's."""
    return has_egress(stable, cluster) if spec.egress is None else spec.egress


def service_egress(service: InferenceService, spec: ServiceSpec) -> bool:
    """Return the egress of a new revision of the service; reads the stable one."""
    stable = Revision.objects.filter(service=service, role=Role.STABLE).select_related("model_version").first()
    return egress_after(spec, stable, service.cluster)


def check_egress(
    *, wanted: bool, before: ServiceSpec | None, stable: Revision | None, cluster: Cluster, may_grant: bool
) -> bool:
    """Return whether a change grants egress to a service that does not have it.

    Args:
        wanted: the new content has egress.
        before: the service's file until now; None for a new service.
        may_grant: whether the actor administers the installation.

    Raises:
        NotPermitted: it does, and the actor may not.
    """
    granted = wanted and not (before is not None and before.egress) and not has_egress(stable, cluster)
    if granted and not may_grant:
        raise NotPermitted(
            f"this gives the model egress ({EGRESS}: true), by which it may open connections to the network; only who "
            "administers the installation may give it to a service: ask an administrator to apply a file with it once, "
            "or leave it out"
        )
    return granted
