"""Replay Job: a candidate version answers recorded requests in a pod without clients. Called by the driver.

    remove what earlier attempts left -> Job, NetworkPolicy -> wait until its pod is ready -> ask, one by one -> delete

The caller reaches the pod as it reaches the metrics of replicas: at its address, or through the API server. A pod whose
caller was killed ends by itself once requests stop, and Kubernetes removes it then.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from common.errors import FairleadError, InvalidInput, NotPermitted, Unavailable
from integrations.clusters.base import Candidate, Exchange, Failure, printable
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.apply import ownership_configmap
from integrations.clusters.kubernetes.jobs.jobs import is_hopeless
from integrations.clusters.kubernetes.manifests.jobs import replay as manifests
from integrations.clusters.kubernetes.manifests.names import JOB
from integrations.clusters.kubernetes.manifests.network import policies
from integrations.clusters.kubernetes.manifests.workloads import claims
from integrations.clusters.kubernetes.manifests.workloads.pods import RUNTIME
from integrations.clusters.kubernetes.observe.failures import failure_of
from integrations.clusters.kubernetes.options import Options, Reach
from integrations.clusters.kubernetes.rbac import REPLAYS
from integrations.clusters.payloads import exchange_of

Json = Mapping[str, Any]
_LOOK_EVERY_S = 0.5
_CONNECT_S = 5.0
_CANNOT_SERVE = 2  # the exit code of `replay` where the model cannot be served


@contextmanager
def replay(api: Api, options: Options, candidate: Candidate) -> Iterator[Callable[[Exchange], Exchange]]:
    """Run the candidate in the service's namespace; see `ClusterDriver.replay`."""
    namespace = candidate.namespace
    entry = ownership_configmap.read(api, namespace, candidate.service)
    if entry is None or entry.leaving:
        raise Unavailable(f"{candidate.name} cannot be started: {namespace}/{candidate.service} is not on the cluster")
    for left in api.list(resource_types.JOB, namespace, manifests.labels_of(candidate)):
        _delete(api, left)
    name = f"fairlead-replay-{secrets.token_hex(5)}"
    job = api.create(manifests.replay(candidate, name, entry.owner, options))
    try:
        for template in claims.of_job(job, candidate.resources):
            api.create(template)
        api.create(policies.of_replay(job, options, egress=bool(candidate.egress)))
        timeout = httpx.Timeout(candidate.timeout_s, connect=_CONNECT_S)
        with httpx.Client(timeout=timeout, trust_env=False) as client:
            pod = _Pod(api, options, candidate, name, client)
            pod.until_ready()
            yield pod.answer
    finally:
        with suppress(FairleadError):  # else it ends by itself
            _delete(api, job)


def _delete(api: Api, job: Json) -> None:
    metadata = job["metadata"]
    api.delete(resource_types.JOB, metadata["namespace"], metadata["name"], uid=metadata["uid"])


class _Pod:
    """The one pod of a replay's Job; takes one request at a time."""

    def __init__(self, api: Api, options: Options, candidate: Candidate, job: str, client: httpx.Client) -> None:
        self._api, self._options, self._candidate, self._job, self._client = api, options, candidate, job, client
        self._name = self._ip = ""

    def until_ready(self) -> None:
        """Return once the model is loaded.

        Raises:
            InvalidInput: the runtime cannot serve it.
            Unavailable: no pod became ready, for another reason or in time.
        """
        name, longest_s = self._candidate.name, self._options.longest_start_s
        deadline = time.monotonic() + longest_s
        trouble: Failure | None = None
        pod: Json | None = None
        while time.monotonic() < deadline:
            with suppress(Unavailable):  # the API server is away for a moment; the pod goes on
                pod = self._found()
            if pod is not None:
                trouble = failure_of(pod) or trouble
                if _is_ready(pod):
                    self._name, self._ip = pod["metadata"]["name"], pod["status"]["podIP"]
                    return
                if pod.get("status", {}).get("phase") in ("Failed", "Succeeded") or is_hopeless(pod):
                    raise _refusal(name, trouble)
            time.sleep(_LOOK_EVERY_S)
        why = f": {trouble.message}" if trouble is not None else "" if pod is not None else self._why_none_was_made()
        raise Unavailable(f"{name} was not ready within {longest_s:g} s{why}")

    def answer(self, recorded: Exchange) -> Exchange:
        """Return the recorded request with the candidate's answer; raises Unavailable where none comes in time."""
        said = self._asked({"id": recorded.request_id, "data": recorded.request}, recorded.request_id)
        return exchange_of(said, self._candidate.name, recorded.request, recorded.at)

    def _asked(self, question: dict[str, Any], request_id: str) -> Json:
        what = f"{self._candidate.name} did not answer request {request_id}"
        try:
            if self._options.reach is Reach.API_SERVER:
                return self._through_the_server(question)
            return self._directly(question)
        except NotPermitted as error:
            raise Unavailable(f"{what}: {error.message}; bind the role {REPLAYS}") from error
        except httpx.TimeoutException as error:
            raise Unavailable(f"{what} within {self._candidate.timeout_s:g} s") from error
        except (FairleadError, httpx.HTTPError, ValueError) as error:
            raise Unavailable(f"{what}: {self._why(error)}") from error

    def _directly(self, question: dict[str, Any]) -> Json:
        host = f"[{self._ip}]" if ":" in self._ip else self._ip
        answer = self._client.post(f"http://{host}:{manifests.PORT}{manifests.PATH}", json=question)
        return dict(answer.raise_for_status().json())

    def _through_the_server(self, question: dict[str, Any]) -> Json:
        path = resource_types.proxied(self._candidate.namespace, self._name, manifests.PORT, manifests.PATH)
        return self._api.ask(path, question, timeout_s=self._candidate.timeout_s)

    def _why(self, error: Exception) -> str:
        """Return why the pod failed, as Kubernetes reports; where it lives, what failed on the way to it."""
        with suppress(FairleadError):
            pod = self._found()
            if pod is None:
                return "its pod was deleted"
            failure = failure_of(pod)
            if failure is not None:
                return failure.message
        return str(error)

    def _why_none_was_made(self) -> str:
        """Return the reason in the Job's events, such as a quota that is used up."""
        about = {"involvedObject.kind": "Job", "involvedObject.name": self._job, "type": "Warning"}
        with suppress(FairleadError):
            namespace = self._candidate.namespace
            for event in self._api.find(resource_types.EVENT, namespace, about, most=1, timeout_s=_CONNECT_S):
                return printable(f": its pod cannot be made: {event['message']}")
        return ""

    def _found(self) -> Json | None:
        return next(iter(self._api.list(resource_types.POD, self._candidate.namespace, {JOB: self._job})), None)


def _is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _refusal(name: str, trouble: Failure | None) -> FairleadError:
    """Return why a pod that ended, or will never start, serves nothing."""
    if trouble is None:
        return Unavailable(f"{name} ended before it was ready")
    if trouble.container == RUNTIME and trouble.exit_code == _CANNOT_SERVE:
        return InvalidInput(f"{name} cannot be served: {trouble.message}")
    return Unavailable(f"{name} cannot be run on the cluster: {trouble.message}")
