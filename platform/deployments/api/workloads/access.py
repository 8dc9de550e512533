"""Authentication of pods by service account tokens, which the pod's cluster verifies.

Results are cached by the token's digest: a minute for a valid token, ten seconds for an invalid one. Tokens are neither
stored nor logged.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from accounts.auth import rate_limits
from clusters.models import Cluster
from clusters.services.connection import driver_of
from common.errors import NotAuthenticated, NotPermitted
from deployments.models import InferenceService
from deployments.selectors import workload_service
from integrations.clusters.base import JobIdentity, WorkloadIdentity

Caller = WorkloadIdentity | JobIdentity
_JWT = re.compile(rb"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_MAX_TOKEN_BYTES = 8192
_KNOWN_S, _UNKNOWN_S = 60, 10


class _Limit(BaseThrottle, ABC):
    """A limit of requests, of which a minute's may come at once."""

    per_minute = 600

    @abstractmethod
    def key(self, request: Request, view: Any) -> tuple[str, ...]:
        """Return whose requests count together."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Return whether the request is within the limit; counts it."""
        self._verdict = rate_limits.count(self.key(request, view), per_minute=self.per_minute, burst=self.per_minute)
        return self._verdict.allowed

    def wait(self) -> float:
        """Return the seconds until the next request is allowed."""
        return self._verdict.wait_s


class LookUps(_Limit):
    """Rate limit of token lookups at a cluster, by client address."""

    def key(self, request: Request, view: Any) -> tuple[str, ...]:
        """Return the caller's address; ignores forwarding headers."""
        return ("workload-look-ups", view.kwargs["cluster"], rate_limits.address_of(request))


class Requests(_Limit):
    """Rate limit of requests, by pod."""

    def key(self, request: Request, view: Any) -> tuple[str, ...]:
        """Return the pod's name."""
        pod = caller_of(request)
        return ("workload-requests", view.kwargs["cluster"], pod.namespace, pod.pod)


class WorkloadAuthentication(BaseAuthentication):
    """`Authorization: Bearer <the pod's service account token for the audience fairlead or fairlead-records>`."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Caller]:
        """Return an anonymous user and the pod's identity.

        Raises:
            NotAuthenticated: no token, or not one of a pod of this cluster.
            Throttled: too many token lookups from this address.
            Unavailable: the cluster cannot be reached.
        """
        words = get_authorization_header(request).split()
        if len(words) != 2 or words[0].lower() != b"bearer":
            raise NotAuthenticated("this needs the token of a pod in the header `Authorization: Bearer …`")
        cluster = request.parser_context["kwargs"]["cluster"]
        identity = _known(request, cluster, words[1]) if _is_jwt(words[1]) else None
        if identity is None:
            raise NotAuthenticated(f"the token is not one that the cluster {cluster[:63]} gave to a pod for Fairlead")
        return AnonymousUser(), identity

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        """Return the value of WWW-Authenticate for a 401."""
        return 'Bearer realm="fairlead-workloads"'


class IsWorkload(BasePermission):
    """Requires a pod of a service on the cluster; sets the view's `service`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True, or raise NotPermitted."""
        view.service = workload_service(cluster=view.kwargs["cluster"], identity=workload_of(request))
        return True


class FetchesModels(IsWorkload):
    """Requires a replica's token for models, or the pod of a job, whose access the view checks."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True, or raise NotPermitted."""
        caller = caller_of(request)
        if isinstance(caller, WorkloadIdentity) and caller.records_only:
            raise NotPermitted(f"the token of the pod {caller.pod} is for what it records, and fetches no model")
        return isinstance(request.auth, JobIdentity) or super().has_permission(request, view)


class IsJob(BasePermission):
    """Requires the pod of a job."""

    def has_permission(self, request: Request, view: Any) -> bool:  # noqa: ARG002
        """Return True, or raise NotPermitted."""
        caller = caller_of(request)
        if not isinstance(caller, JobIdentity):
            raise NotPermitted(
                f"the pod {caller.pod} is no job's, and only jobs fetch requests and bring what they make"
            )
        return True


class WorkloadView(APIView):
    """A view for pods only; `service` is the service of the calling replica."""

    authentication_classes = (WorkloadAuthentication,)
    permission_classes: tuple[type[BasePermission], ...] = (IsWorkload,)
    throttle_classes = (Requests,)
    service: InferenceService


class WorkloadScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Security scheme of workloads in the OpenAPI document."""

    target_class = WorkloadAuthentication
    name = "workload"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002
        """Return the bearer scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "service account token"}


def caller_of(request: Request) -> Caller:
    """Return the calling pod; raises NotAuthenticated for any other caller."""
    identity: object = request.auth
    if not isinstance(identity, Caller):
        raise NotAuthenticated("this needs the token of a pod")
    return identity


def workload_of(request: Request) -> WorkloadIdentity:
    """Return the calling replica; raises NotAuthenticated for any other caller."""
    identity: object = request.auth
    if not isinstance(identity, WorkloadIdentity):
        raise NotAuthenticated("this needs the token of a replica")
    return identity


def _is_jwt(token: bytes) -> bool:
    return len(token) <= _MAX_TOKEN_BYTES and _JWT.fullmatch(token) is not None


def _known(request: Request, name: str, token: bytes) -> Caller | None:
    """Return the identity of a token, from the cache or the cluster; None for an invalid token."""
    key = "workload-identity:" + hashlib.sha256(name.encode() + b"\0" + token).hexdigest()
    remembered: tuple[Caller | None] | None = cache.get(key)
    if remembered is not None:
        return remembered[0]
    look_ups = LookUps()
    if not look_ups.allow_request(request, request.parser_context["view"]):
        raise Throttled(look_ups.wait())
    cluster = Cluster.objects.filter(name=name).first()
    identity = None if cluster is None else driver_of(cluster).identify(token.decode("ascii"))
    cache.set(key, (identity,), _UNKNOWN_S if identity is None else _KNOWN_S)
    return identity
