"""Where a version can be tried: the services that serve it now."""

from dataclasses import dataclass

from deployments.desired import Role
from deployments.models import Revision
from deployments.selectors.services import service_url
from registry.models import ModelVersion

_SERVING = (Role.STABLE, Role.CANARY)
_SERVICES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Reach:
    """A service that answers for a version.

    Attributes:
        url: where its model is at the gateway, without a trailing slash.
        has_transformer: whether what clients send is not what the model takes.
    """

    namespace: str
    name: str
    url: str
    has_transformer: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def reaches_of(*, version: ModelVersion) -> list[Reach]:
    """Return the services with a revision of the version that takes requests, by namespace and name."""
    serving = Revision.objects.filter(model_version=version, role__in=_SERVING, stopped_at=None)
    serving = serving.filter(service__stopped=False, service__deleting_at=None, service__live_at__isnull=False)
    rows = serving.select_related("service__cluster").order_by("service__namespace", "service__name", "number")
    return list({row.service_id: _reach(row) for row in rows}.values())[:_SERVICES_SHOWN]


def _reach(row: Revision) -> Reach:
    spec = row.service.document.get("spec", {})
    return Reach(row.service.namespace, row.service.name, service_url(row.service), "transformer" in spec)
