"""A URL that takes events one by one, as KServe's payload logger sends them: CloudEvents in HTTP's binary mode, the
attributes in headers and V2's JSON as the body. `ce-id` is the request's id in the events of a request and of its
answers, which the type tells apart.
"""

import asyncio
from collections.abc import Mapping
from urllib.parse import quote

import httpx

from serving_runtime.telemetry.tap.sinks import Event, SinkError
from serving_runtime.telemetry.tap.writing import written

_TIMEOUT_S = 10.0
_AT_ONCE = 8
# CloudEvents, HTTP binding: what a header's value may have as it is.
_AS_IT_IS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


class LoggerSink:
    """Posts events, several at once; each is sent once, whatever the answer.

    Args:
        attributes: of every event, beside its own.
    """

    gather_s = 0.0

    def __init__(self, url: str, attributes: Mapping[str, str]) -> None:
        self._url = url
        self._attributes = {f"ce-{name}": _value(value) for name, value in attributes.items()}
        self._runner = asyncio.Runner()
        self._client: httpx.AsyncClient | None = None

    def write(self, events: list[Event]) -> None:
        problems = [problem for problem in self._runner.run(self._posted(events)) if problem]
        if problems:
            raise SinkError(problems[0], taken=len(events) - len(problems))

    def flush(self) -> None:
        """Every write is handed on at once."""

    def close(self) -> None:
        if self._client is not None:
            self._runner.run(self._client.aclose())
        self._runner.close()

    async def _posted(self, events: list[Event]) -> list[str]:
        """Return why each event was not taken, empty where it was."""
        if self._client is None:
            limits = httpx.Limits(max_connections=_AT_ONCE, max_keepalive_connections=_AT_ONCE)
            self._client = httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(_TIMEOUT_S, pool=None))
        return await asyncio.gather(*[self._post(self._client, event) for event in events])

    async def _post(self, client: httpx.AsyncClient, event: Event) -> str:
        attributes = {f"ce-{name}": _value(value) for name, value in event.items() if name not in _NO_HEADER}
        headers = {**attributes, **self._attributes, "ce-id": _value(event["requestid"])}
        headers["content-type"] = event["datacontenttype"]
        try:
            answer = await client.post(self._url, content=written(event["data"]), headers=headers)
        except httpx.HTTPError as error:
            return f"{self._url}: {error or type(error).__name__}"
        return "" if answer.is_success else f"{self._url} answered {answer.status_code}"


_NO_HEADER = frozenset({"id", "data", "datacontenttype"})


def _value(value: object) -> str:
    return quote(str(value), safe=_AS_IT_IS, errors="replace")
