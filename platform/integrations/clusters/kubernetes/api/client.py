"""Kubernetes API client of one cluster. With `connection` the only module that uses Kubernetes' client library.

Objects are plain dictionaries. Every write is validated strictly: a field that the API server does not know is an
error. Every call has a timeout, so that a server that hangs blocks no caller for longer.
"""

import json
import time
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from common.errors import Conflict, NotFound, NotPermitted, Unavailable
from common.places import waiting
from integrations.clusters.kubernetes.access import Access, Credentials, KubeconfigFile
from integrations.clusters.kubernetes.api.connection import refused_token, settings_of
from integrations.clusters.kubernetes.api.errors import refusal
from integrations.clusters.kubernetes.api.resource_types import POD, Kind, kind_of
from integrations.clusters.kubernetes.api.tls import tls_of
from integrations.clusters.kubernetes.observe.drift import FIELD_MANAGER
from integrations.metrics import pages
from integrations.otlp.tracing import of_process

_TIMEOUT_S = (3.0, 10.0)  # to connect, to read
_MOST_CONNECTIONS = 100  # that are kept for the next use
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_CHUNK_BYTES = 1 << 16

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request; `timeout_s` is to connect, and to read."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: Json | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    timeout_s: tuple[float, float] = _TIMEOUT_S


class Api:
    """Reads and writes objects; raises Unavailable where the server cannot be reached or is overloaded."""

    def __init__(self, access: Access | Path) -> None:
        """Connect as `access` says; a path is that of a kubeconfig.

        Raises:
            InvalidInput: it does not say how to reach a cluster, or this is no pod.
        """
        access = KubeconfigFile(access) if isinstance(access, Path) else access
        settings = settings_of(access)
        self._refused = partial(refused_token, access)
        # A request that the library repeats by itself would outlast the timeout; the reconciler comes again anyway.
        settings.retries = False
        settings.connection_pool_maxsize = _MOST_CONNECTIONS
        self._client = client.ApiClient(settings)
        if isinstance(access, Credentials):
            self._client.rest_client.pool_manager.connection_pool_kw["ssl_context"] = tls_of(access)

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object; None where it is absent."""
        return self.fetch(kind, namespace, name)

    def fetch(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object as the server has it now; None where it is absent."""
        try:
            return self._call(_Asked("GET", kind.path(namespace, name)))
        except NotFound:
            return None

    def find(self, kind: Kind, namespace: str, fields: dict[str, str], *, most: int, timeout_s: float) -> list[Json]:
        """Return at most `most` objects of a namespace whose fields have these values, within `timeout_s`."""
        selector = ",".join(f"{name}={value}" for name, value in fields.items())
        query = {"fieldSelector": selector, "limit": str(most)}
        return list(
            json.loads(self._ask(_Asked("GET", kind.path(namespace), query, timeout_s=(timeout_s, timeout_s))))["items"]
        )

    def fetch_list(self, kind: Kind, namespace: str, labels: dict[str, str]) -> list[Json]:
        """Return the objects that `list` does, as the server has them now."""
        found = self._call(_Asked("GET", kind.path(namespace), query={"labelSelector": _selector(labels)}))
        named = ({**each, "apiVersion": kind.api_version, "kind": kind.kind} for each in found["items"])  # left out
        return sorted(named, key=lambda each: str(each["metadata"]["name"]))

    def list(self, kind: Kind, namespace: str, labels: dict[str, str]) -> list[Json]:
        """Return the objects of a namespace that have all these labels, sorted by name."""
        return self.fetch_list(kind, namespace, labels)

    def log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool,
        lines: int,
        most_bytes: int,
        timeout_s: float,
    ) -> str:
        """Return the last log lines of a container, or of its previous run."""
        query = {"container": container, "tailLines": str(lines), "limitBytes": str(most_bytes)}
        if previous:
            query["previous"] = "true"
        asked = _Asked("GET", f"{POD.path(namespace, pod)}/log", query, timeout_s=(timeout_s, timeout_s))
        return self._ask(asked).decode(errors="replace")

    def apply(self, manifest: Json, *, dry_run: bool = False, force: bool = False) -> Json:
        """Server-side apply of a manifest, as the one manager of its fields.

        Args:
            force: take over the fields that others manage.

        Raises:
            ManagedElsewhere: another manager owns one of the fields and sets another value.
            Conflict: the manifest has a resourceVersion, and the object has been changed since.
            InvalidInput: the server rejects the manifest.
        """
        metadata = manifest["metadata"]
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        if force:
            query["force"] = "true"
        path = kind_of(manifest).path(metadata["namespace"], metadata["name"])
        return self._call(_Asked("PATCH", path, query=query, body=manifest, content_type=_APPLY))

    def create(self, manifest: Json, *, dry_run: bool = False) -> Json:
        """Create an object, of a namespace where it names one; raises Conflict where it exists already."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        namespace = manifest.get("metadata", {}).get("namespace", "")
        return self._call(_Asked("POST", kind_of(manifest).path(namespace), query=query, body=manifest))

    def merge(self, kind: Kind, namespace: str, name: str, changes: Json) -> Json:
        """Change fields of an object; with a resourceVersion only if it is still that one."""
        path = kind.path(namespace, name)
        return self._call(
            _Asked("PATCH", path, query={"fieldManager": FIELD_MANAGER}, body=changes, content_type=_MERGE)
        )

    def scale(self, kind: Kind, metadata: Json, replicas: int, *, manager: str = FIELD_MANAGER) -> None:
        """Set the number of replicas of an object, as its one manager, unless it was changed since it was read.

        It is an apply, since the API server does not record who else changes the number before someone applied it.
        """
        read = {name: metadata[name] for name in ("name", "namespace", "resourceVersion")}
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": read, "spec": {"replicas": replicas}}
        query = {"fieldManager": manager, "force": "true"}
        path = f"{kind.path(metadata['namespace'], metadata['name'])}/scale"
        self._call(_Asked("PATCH", path, query=query, body=body, content_type=_APPLY))

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str, propagation: str = "Background") -> None:
        """Delete the object of that uid with what it owns; an absent object, or one of another uid, is no error."""
        body = {"preconditions": {"uid": uid}, "propagationPolicy": propagation}
        try:
            self._call(_Asked("DELETE", kind.path(namespace, name), body=body))
        except (NotFound, Conflict):
            return

    def evict(self, namespace: str, pod: str) -> str:
        """Evict a pod from its node; returns why it may not leave now, by its disruption budgets, and "" where it may.

        An absent pod is no error.
        """
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        asked = _Asked("POST", f"{POD.path(namespace, pod)}/eviction", body=eviction)
        answer = self._send(asked)
        content = bytes(answer.read())
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            return refusal(answer.status, content, f"the eviction of {namespace}/{pod}").message
        if answer.status == HTTPStatus.NOT_FOUND or 200 <= answer.status < 300:
            return ""
        raise refusal(answer.status, content, f"the eviction of {namespace}/{pod}")

    def page(self, path: str) -> str:
        """Return a page that the API server proxies, such as a pod's metrics; bounded.

        Raises:
            Unavailable: it cannot be read in time and within `pages.MOST_BYTES`; its server may be to blame.
        """
        deadline = time.monotonic() + pages.TIMEOUT_S
        answer = self._send(_Asked("GET", path, timeout_s=(pages.TIMEOUT_S, pages.TIMEOUT_S), accept="text/plain"))
        try:
            content = pages.bounded(answer.response.stream(_CHUNK_BYTES), path, deadline)
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"the metrics at {path} cannot be read: {error}") from error
        finally:
            answer.response.close()
        if answer.status == HTTPStatus.OK:
            return content
        refused = refusal(answer.status, content.encode(), f"GET {path}")
        hint = "; bind the role fairlead-driver-metrics" if isinstance(refused, NotPermitted) else ""
        raise Unavailable(f"{refused.message}{hint}")

    @property
    def server(self) -> str:
        """Return the server's address."""
        return str(self._client.configuration.host)

    def content(self, path: str) -> Json:
        """Return the content of a path that is no object's, such as `/version`."""
        return self._call(_Asked("GET", path))

    def ask(self, path: str, question: Json, *, timeout_s: float = _TIMEOUT_S[1]) -> Json:
        """Return the response to a request that is not stored: a review, or a request proxied to a pod."""
        return self._call(_Asked("POST", path, body=question, timeout_s=(_TIMEOUT_S[0], timeout_s)))

    def close(self) -> None:
        """Close the cached connections."""
        self._client.rest_client.close()

    def _call(self, asked: _Asked) -> Json:
        return dict(json.loads(self._ask(asked)))

    def _ask(self, asked: _Asked) -> bytes:
        with waiting():
            answer = self._send(asked)
            try:
                content = bytes(answer.read())
            except urllib3.exceptions.HTTPError as error:
                raise self._silence(error) from error
        if 200 <= answer.status < 300:
            return content
        raise refusal(answer.status, content, f"{asked.method} {asked.path}")

    def _send(self, asked: _Asked) -> Any:
        """Return the response, whose content is still to be read."""
        try:
            request = self._client.param_serialize(
                asked.method,
                asked.path,
                query_params=list(asked.query.items()),
                header_params={"Accept": asked.accept, "Content-Type": asked.content_type},
                body=asked.body,
                auth_settings=["BearerToken"],
            )
            about = {"http.request.method": asked.method, "server.address": self.server, "url.path": asked.path}
            with of_process.call(asked.method, about) as span:
                answer = self._client.call_api(*request, _request_timeout=asked.timeout_s)
                span.set("http.response.status_code", answer.status)
            if answer.status == HTTPStatus.UNAUTHORIZED:
                self._refused()
            return answer
        except (urllib3.exceptions.HTTPError, OSError, ApiException) as error:
            raise self._silence(error) from error

    def _silence(self, error: Exception) -> Unavailable:
        host = self._client.configuration.host
        return Unavailable(f"the Kubernetes API server {host} does not answer: {error}")


def _selector(labels: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in labels.items())
