"""What of a service file only the serving runtime can judge. Asked before anything is written, outside transactions."""

from common.errors import InvalidInput
from deployments.spec import CONFIG, parse_service
from integrations.clusters.base import ClusterDriver


def service_check(*, document: object, namespace: str, name: str, driver: ClusterDriver) -> None:
    """Raise InvalidInput where the file is wrong, or where the runtime would refuse the fields under `config`.

    Raises:
        Unavailable: the runtime could not be asked.
    """
    config = parse_service(document, namespace=namespace, name=name).model_config
    if not config:
        return
    try:
        driver.check_config(config)
    except InvalidInput as error:
        field = f"{CONFIG}.{error.field}" if error.field else CONFIG
        raise InvalidInput(f"{field}: {error.message}", field=field) from error
