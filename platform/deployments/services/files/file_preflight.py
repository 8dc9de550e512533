"""Service file preflight: the checks before an apply, for the API, pages and custom resources alike."""

from dataclasses import replace
from typing import Any

from accounts.models import ApiToken
from clusters.services.connection import driver_of
from common.files.plans import Planned
from deployments import services
from deployments.domain.service_file import as_service
from deployments.models import InferenceService
from deployments.selectors.permissions import adds_version, require_model_import, require_model_use, storage_uri_of
from deployments.views.shapes import Plan


def service_planned(
    token: ApiToken, *, document: object, namespace: str, name: str, **arguments: Any
) -> Planned[Plan, tuple[InferenceService, bool]]:
    """Return the plan of applying the file, after checks by runtime, cluster and permissions; changes nothing.

    Args:
        document: a service file, or a TrainedModel file of KServe's.
        arguments: `actor`, `now`, `accept` and `may_grant_egress` as `service_apply` takes them.

    Raises:
        FairleadError: any refusal of the apply.
    """
    document = as_service(document)
    uri = storage_uri_of(document)
    require_model_use(token, uri)
    require_model_import(token, uri, namespace, name, adds_version=adds_version(document))
    return file_planned(document=document, namespace=namespace, name=name, **arguments)


def file_planned(
    *, document: object, namespace: str, name: str, **arguments: Any
) -> Planned[Plan, tuple[InferenceService, bool]]:
    """Return the plan of applying the file, after checks by runtime and cluster; its permissions are the caller's.

    Takes what `service_planned` takes, and `by`; raises what that raises.
    """
    named: dict[str, Any] = {"document": document, "namespace": namespace, "name": name}
    cluster = services.service_check(**named, now=arguments["now"], driver_of=driver_of)
    default_access = services.access_by_default(**named, cluster=cluster, now=arguments["now"], driver_of=driver_of)
    planned = services.service_plan(**named, default_access=default_access, **arguments)
    services.plan_check(planned.plan, driver_of(cluster))
    return replace(planned, plan=services.plan_patched(planned.plan, driver_of(cluster)))
