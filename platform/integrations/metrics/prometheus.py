"""Prometheus client for instant queries. Called by the reconciler's analysis, outside of any transaction.

A query returns one number, or no data yet, or is invalid itself; an unreachable server is a separate error, since it
says nothing about the query (Prometheus: HTTP API, instant queries). Servers with the same API (Thanos, Mimir,
VictoriaMetrics) work too.
"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

from common.errors import Unavailable
from common.places import waiting
from integrations.otlp.tracing import of_process
from integrations.trust import trust

_ANSWER_BYTES = 1024 * 1024
_SHOWN = 300
_AT_ONCE = 4
_REFUSED = (400, 422)  # Prometheus: bad_data, and execution errors such as a many-to-many match


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a query.

    Attributes:
        value: a finite number; None where the query has no data.
        problem: what is wrong with the query, in words; empty where it just has no data.
    """

    value: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus server.

    Attributes:
        url: includes any path before `/api/v1/query`, without a trailing slash.
        token: sent as a bearer token; empty sends none.
        ca: PEM of the authorities to trust instead of the machine's; empty trusts those.
        tenant: sent as `X-Scope-OrgID`, by which Mimir, Thanos and Cortex separate tenants; empty sends none.
        cluster: whose file names it; empty for that of the settings. Errors name it.
        timeout_s: for one query, from connecting to the last byte.
        connect_s: for the connection alone.
    """

    url: str
    token: str = ""
    ca: str = ""
    tenant: str = ""
    cluster: str = ""
    timeout_s: float = 3.0
    connect_s: float = 2.0

    @property
    def called(self) -> str:
        """Return what errors call it."""
        return f"Prometheus of cluster {self.cluster} at {self.url}" if self.cluster else f"Prometheus at {self.url}"

    def ask(self, queries: Sequence[str]) -> tuple[Answer, ...]:
        """Return the result of each query at the current time.

        Raises:
            Unavailable: the server does not answer, or not to us; one sentence.
        """
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if self.tenant:
            headers["X-Scope-OrgID"] = self.tenant
        timeout = httpx.Timeout(self.timeout_s, connect=min(self.connect_s, self.timeout_s))
        client = httpx.Client(timeout=timeout, verify=trust(self.ca), trust_env=False, headers=headers)
        about: dict[str, str | int] = {"server.address": httpx.URL(self.url).host, "fairlead.queries": len(queries)}
        pool = ThreadPoolExecutor(max_workers=_AT_ONCE)
        with waiting(), of_process.call("POST /api/v1/query", about), client, pool:
            return tuple(pool.map(lambda query: self._answer(client, query), queries))

    def _answer(self, client: httpx.Client, query: str) -> Answer:
        try:
            status, body = self._post(client, {"query": query, "timeout": f"{self.timeout_s:g}s"})
        except httpx.HTTPError as error:
            raise Unavailable(f"{self.called} does not answer: {error or type(error).__name__}") from error
        if body is None:
            return Answer(problem=f"the answer is larger than {_ANSWER_BYTES} bytes; let the query give one number")
        content = _content(body)
        if content is None or (status != 200 and status not in _REFUSED):
            raise Unavailable(f"{self.called} {self._refusal(status, content)}")
        return _read(content) if status == 200 else Answer(problem=f"Prometheus refuses the query: {_error(content)}")

    def _post(self, client: httpx.Client, form: Mapping[str, str]) -> tuple[int, bytes | None]:
        """Return status and body; None for a body that is too large."""
        deadline = time.monotonic() + self.timeout_s
        with client.stream("POST", f"{self.url}/api/v1/query", data=form) as answer:
            body = b""
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > _ANSWER_BYTES:
                    return answer.status_code, None
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout(f"no whole answer within {self.timeout_s:g} s")
            return answer.status_code, body

    def _refusal(self, status: int, content: Mapping[str, Any] | None) -> str:
        if status in (401, 403):
            where = "prometheus.token of the cluster file" if self.cluster else "FAIRLEAD_PROMETHEUS_TOKEN"
            return f"answers {status}; set {where} to a token that may query it"
        if content is None:
            where = "prometheus.url of the cluster file" if self.cluster else "FAIRLEAD_PROMETHEUS_URL"
            return f"answers {status} and nothing that Prometheus says; check {where}"
        return f"answers {status}: {_error(content)}"


def _content(body: bytes) -> Mapping[str, Any] | None:
    """Parse the body; None where it is no Prometheus response."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and content.get("status") in ("success", "error") else None


def _error(content: Mapping[str, Any]) -> str:
    return str(content.get("error", "it gives no reason"))[:_SHOWN]


def _read(content: Mapping[str, Any]) -> Answer:
    """Return the number in a successful answer: a scalar, or a vector of at most one series."""
    try:
        kind, result = content["data"]["resultType"], content["data"]["result"]
        if kind == "scalar":
            return _number(result)
        if kind != "vector":
            return Answer(problem=f"the query gives a {kind}; let it give one number, a scalar or one series")
        if len(result) > 1:
            return Answer(problem=f"the query gives {len(result)} series; aggregate them to one, as by sum(...)")
        if result and "histogram" in result[0]:
            return Answer(problem="the query gives a histogram; let it give one number, as by histogram_quantile(...)")
        return _number(result[0]["value"]) if result else Answer()
    except (KeyError, TypeError, IndexError, ValueError):
        return Answer(problem="the answer has another form than Prometheus gives")


def _number(sample: Sequence[Any]) -> Answer:
    """Return a sample's number; NaN and infinities, which result from a division by zero, are no data."""
    value = float(sample[1])
    return Answer(value) if math.isfinite(value) else Answer()
