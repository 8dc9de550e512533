"""What of a service file only the serving runtime can judge. Asked before anything is written, outside transactions."""

from collections.abc import Callable
from datetime import datetime

from common.errors import InvalidInput
from deployments.models import Cluster
from deployments.services.choosing import cluster_for
from deployments.spec import CONFIG, parse_service
from integrations.clusters.base import ClusterDriver


def service_check(
    *, document: object, namespace: str, name: str, driver_of: Callable[[Cluster], ClusterDriver], now: datetime
) -> None:
    """Raise InvalidInput where the file is wrong, or where the runtime would refuse the fields under `config`.

    Raises:
        NotFound: the cluster that the file names is not there.
        Unavailable: the runtime could not be asked.
    """
    spec = parse_service(document, namespace=namespace, name=name)
    cluster = cluster_for(namespace=namespace, name=name, asked=spec.cluster, now=now)
    if not spec.model_config:
        return
    try:
        driver_of(cluster).check_config(spec.model_config)
    except InvalidInput as error:
        field = f"{CONFIG}.{error.field}" if error.field else CONFIG
        raise InvalidInput(f"{field}: {error.message}", field=field) from error
