"""Secret uses: reports which services name which secrets, so that none is deleted while it is used."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deployments.domain.service_file.clusters import LOCAL
from deployments.domain.service_file.environment import named_secrets
from deployments.models import InferenceService, Revision
from sealed_secrets.hooks import Use


def uses_of(namespaces: Iterable[str]) -> Iterator[Use]:
    """Yield a use for each value that a running revision, or the file of a service on the local cluster, names."""
    names = list(namespaces)
    services = InferenceService.objects.filter(namespace__in=names, cluster__kind=LOCAL, deleting_at=None)
    for service in services.only("namespace", "name", "document"):
        yield from (_use(service, each) for each in named_secrets(service.document))
    running = Revision.objects.filter(service__in=services, stopped_at=None).exclude(secret_env={})
    for revision in running.select_related("service").only("secret_env", "service__namespace", "service__name"):
        yield from (_use(revision.service, each) for each in revision.secret_env.values())


def _use(service: InferenceService, reference: Mapping[str, Any]) -> Use:
    return Use(service.namespace, str(reference["name"]), str(reference["key"]), service.name)
