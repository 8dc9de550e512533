"""Secrets of a service's variables: checked when a file is applied, and read for its processes on the local cluster.

On Kubernetes they are Secrets of the cluster, which the platform neither reads nor writes.
"""

from collections.abc import Mapping

from clusters.models import Cluster
from common.errors import FairleadError, InvalidInput
from deployments.domain.service_file import ServiceSpec
from deployments.domain.service_file.clusters import LOCAL
from deployments.domain.service_file.environment import ENV
from deployments.models import InferenceService
from integrations.clusters.base import SecretKeyRef
from sealed_secrets.selectors import values_of, why_missing


def check_secrets(
    cluster: Cluster, namespace: str, secret_env: Mapping[str, SecretKeyRef], *, field: str = ENV
) -> None:
    """Raise InvalidInput where a variable names a secret, or a key of one, that the namespace does not have."""
    if secret_env and cluster.kind == LOCAL and (why := why_missing(namespace=namespace, secret_env=secret_env)):
        raise InvalidInput(f"{field}: {why}", field=field)


def env_of_job(service: InferenceService, spec: ServiceSpec) -> dict[str, str]:
    """Return the variables of a job that runs the service's model: on the local cluster with those of secrets.

    Raises:
        InvalidInput: one of its secrets is missing.
        Conflict: a value cannot be decrypted.
    """
    if not spec.secret_env or service.cluster.kind != LOCAL:
        return dict(spec.env)
    check_secrets(service.cluster, service.namespace, spec.secret_env)
    values = values_of(namespace=service.namespace, refs=spec.secret_env.values())
    return {**spec.env, **{name: values[each.name][each.key] for name, each in spec.secret_env.items()}}


def why_no_env(service: InferenceService, spec: ServiceSpec) -> str:
    """Return why `env_of_job` raises; empty where it does not."""
    try:
        env_of_job(service, spec)
    except FairleadError as error:
        return error.message
    return ""
