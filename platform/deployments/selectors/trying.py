"""Try-out targets: the services that serve a version now."""

from dataclasses import dataclass

from django.db.models import QuerySet

from deployments.domain.service_file import stored_access
from deployments.domain.service_file.clusters import LOCAL
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision
from deployments.selectors.services import service_url
from registry.models import ModelVersion

_SERVING = (Role.STABLE, Role.CANARY)
_SERVICES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Reach:
    """A service that can answer for a version.

    Attributes:
        url: its model's address at the gateway, without a trailing slash.
        has_transformer: whether clients' inputs differ from the model's.
        has_explainer: whether a container answers explain requests.
        is_guarded: whether callers need a key.
        is_local: whether it runs on this machine.
    """

    namespace: str
    name: str
    url: str
    has_transformer: bool
    has_explainer: bool = False
    is_guarded: bool = False
    is_local: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def reaches_of(*, version: ModelVersion) -> list[Reach]:
    """Return the services with a revision of the version that accepts requests, by namespace and name."""
    serving = _of_services(version).filter(service__stopped=False, service__live_at__isnull=False)
    rows = serving.select_related("service__cluster").order_by("service__namespace", "service__name", "number")
    return list({row.service_id: _reach(row) for row in rows}.values())[:_SERVICES_SHOWN]


def stopped_service(*, version: ModelVersion, namespace: str, name: str) -> InferenceService | None:
    """Return the service of that name if it is stopped and has a revision of the version that resumes with it."""
    rows = _of_services(version).filter(service__namespace=namespace, service__name=name, service__stopped=True)
    row = rows.select_related("service").first()
    return None if row is None else row.service


def _of_services(version: ModelVersion) -> QuerySet[Revision]:
    return Revision.objects.filter(model_version=version, role__in=_SERVING, stopped_at=None, service__deleting_at=None)


def _reach(row: Revision) -> Reach:
    spec = row.service.document.get("spec", {})
    return Reach(
        row.service.namespace,
        row.service.name,
        service_url(row.service),
        "transformer" in spec,
        "explainer" in spec,
        is_guarded=stored_access(row.service.access).callers is not None,
        is_local=row.service.cluster.kind == LOCAL,
    )
