"""Envoy delta discovery service (ADS) on a Unix socket: what Envoy should know and what it has acknowledged.

    Router --set(kind, resources)--> Discovery <--stream of requests, acks and refusals-- Envoy
                                               --what has changed since------------------>

One stream carries all kinds (ADS), so that Envoy gets them in the order in which they were set. Envoy sends its
versions when it connects: after a restart of the agent it gets only the differences. Without an agent, Envoy serves by
what it has.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from common.errors import Unavailable
from integrations.clusters.local.agent.sockets import short_folder
from integrations.clusters.local.envoy.api import DeltaDiscoveryRequest, DeltaDiscoveryResponse
from integrations.clusters.local.envoy.resources import Kind, Resources
from integrations.clusters.local.files import Layout

log = logging.getLogger(__name__)

_SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
_NO_LIMIT = -1


def discovery_socket(layout: Layout) -> Path:
    """Return the path of the agent's socket for Envoy; raises PermissionError as `short_folder`."""
    name = "xds.sock"
    return short_folder(layout.envoy, name) / name


@dataclass(slots=True)
class _Known:
    """One kind as one Envoy knows it: versions by names.

    Attributes:
        asked: the names it requested, in their order; None where it requested all.
        answered: it has been sent a message; it waits for one, even an empty one, before it takes requests.
        settled: it has acknowledged or refused a message.
        sent: resources that it has, or has been sent and not refused.
        acknowledged: those of them that it has taken up.
        refused: why it did not take up a version.
    """

    asked: dict[str, None] | None
    answered: bool = False
    settled: bool = False
    sent: dict[str, str] = field(default_factory=dict)
    acknowledged: dict[str, str] = field(default_factory=dict)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)

    def wanted(self, resources: Resources) -> Resources:
        """Return those of `resources` that it requested."""
        if self.asked is None:
            return resources
        return {name: resources[name] for name in self.asked if name in resources}


@dataclass(frozen=True, slots=True)
class _Sent:
    """Changes of one message, until Envoy acknowledges or refuses it."""

    kind: Kind
    versions: Mapping[str, str]
    removed: frozenset[str]


class _Stream:
    """One connection of an Envoy.

    Attributes:
        due: the kinds that may have changes to send.
    """

    def __init__(self, requested: Callable[[str], None]) -> None:
        self.known: dict[Kind, _Known] = {}
        self.due: set[Kind] = set()
        self.changed = asyncio.Event()
        self._unanswered: dict[str, _Sent] = {}
        self._nonces = itertools.count(1)
        self._requested = requested

    def take(self, request: Any) -> None:
        """Process a request of Envoy: its subscriptions, acknowledgements and refusals."""
        with suppress(ValueError):  # a kind that the gateway's bootstrap does not name
            kind = Kind(request.type_url)
            known = self.known.get(kind)
            if known is None:
                known = self.known[kind] = _Known(None if kind.is_whole else {})
                known.sent = dict(request.initial_resource_versions)
                known.acknowledged = dict(known.sent)
                self.due.add(kind)
            if request.resource_names_subscribe:
                self.due.add(kind)
            if kind is Kind.CLUSTERS:  # it has all, and requests by name those for which requests wait
                for name in request.resource_names_subscribe:
                    self._requested(name)
            if known.asked is not None:
                known.asked.update(dict.fromkeys(request.resource_names_subscribe))
                for name in request.resource_names_subscribe:
                    # It requests again what it dropped meanwhile, with its cluster or scope.
                    if name not in request.initial_resource_versions:
                        known.sent.pop(name, None)
                for name in request.resource_names_unsubscribe:
                    known.asked.pop(name, None)
                    known.sent.pop(name, None)
                    known.acknowledged.pop(name, None)
            if sent := self._unanswered.pop(request.response_nonce, None):
                self._settle(known, sent, request.error_detail.message)

    def _settle(self, known: _Known, sent: _Sent, error: str) -> None:
        known.settled = True
        if error:
            known.refused.update(dict.fromkeys(sent.versions.items(), error))
            log.error("the gateway refuses %s: %s", ", ".join(sent.versions) or ", ".join(sent.removed), error)
            return
        known.acknowledged.update(sent.versions)
        for each in sent.versions.items():
            known.refused.pop(each, None)
        for name in sent.removed:
            known.acknowledged.pop(name, None)

    def answer(self, kind: Kind, resources: Resources) -> Any | None:
        """Return the message with those of `resources` that are new for this Envoy; None without any."""
        known = self.known.get(kind)
        if known is None:
            return None
        wanted = known.wanted(resources)
        new = {name: each for name, each in wanted.items() if known.sent.get(name) != each.version}
        if kind is Kind.EXTENSIONS and len(new) > 1:
            # Envoy refuses a message as a whole: with one filter each, a refused one keeps no other back.
            name = min(new)
            new = {name: new[name]}
            self.due.add(kind)
        gone = frozenset(known.sent) - frozenset(resources) if known.asked is None else frozenset()
        if not new and not gone and (known.answered or known.asked is not None):
            return None
        nonce = str(next(self._nonces))
        versions = {name: each.version for name, each in new.items()}
        self._unanswered[nonce] = _Sent(kind, versions, gone)
        known.answered = True
        known.sent.update(versions)
        for name in gone:
            del known.sent[name]
        message = DeltaDiscoveryResponse(type_url=kind, nonce=nonce, removed_resources=sorted(gone))
        for name, each in new.items():
            added = message.resources.add(name=name, version=each.version).resource
            added.type_url, added.value = kind, each.content
        return message

    def has_taken_up(self, kind: Kind, resources: Resources) -> bool:
        """Return whether Envoy knows exactly `resources`, as far as it requested them.

        Raises:
            Unavailable: it refuses one of them; the message is Envoy's.
        """
        known = self.known.get(kind)
        needed = {name: each for name, each in resources.items() if not each.on_demand}
        if known is None:
            return not needed and not kind.is_whole
        resources = {**known.wanted(resources), **needed} if len(needed) < len(resources) else resources
        if kind is Kind.EXTENSIONS:  # an Envoy that a former release started has fewer filters
            resources = known.wanted(resources)
        for name, each in resources.items():
            if reason := known.refused.get((name, each.version)):
                raise Unavailable(f"the gateway refuses {name}: {reason}")
        if kind.is_whole and not (known.settled and known.acknowledged.keys() <= resources.keys()):
            return False
        return all(known.acknowledged.get(name) == each.version for name, each in resources.items())


class Discovery:
    """The service on a socket; use it from one event loop.

    Args:
        requested: called with the name of each cluster that Envoy requests, since requests wait for it.
    """

    def __init__(self, socket: Path, requested: Callable[[str], None] = lambda _: None) -> None:
        self.socket = socket
        self._requested = requested
        self._resources: dict[Kind, Resources] = {}
        self._stream: _Stream | None = None
        self._heard = asyncio.Event()
        self._server = grpc.aio.server(options=[("grpc.max_receive_message_length", _NO_LIMIT)])
        method = grpc.stream_stream_rpc_method_handler(
            self._answers,
            request_deserializer=DeltaDiscoveryRequest.FromString,
            response_serializer=DeltaDiscoveryResponse.SerializeToString,
        )
        handler = grpc.method_handlers_generic_handler(_SERVICE, {"DeltaAggregatedResources": method})
        self._server.add_generic_rpc_handlers((handler,))

    async def start(self) -> None:
        """Listen; raises RuntimeError where the socket cannot be bound."""
        self.socket.unlink(missing_ok=True)  # of an agent that was killed
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()

    async def close(self) -> None:
        """Stop; Envoy goes on by what it has."""
        await self._server.stop(grace=None)
        self.socket.unlink(missing_ok=True)

    def set(self, kind: Kind, resources: Resources) -> None:
        """Make Envoy know exactly `resources` of a kind, now and after each start."""
        self._resources[kind] = resources
        if self._stream is not None:
            self._stream.due.add(kind)
            self._stream.changed.set()

    def refused(self, kind: Kind) -> str:
        """Return why Envoy refuses a set resource of a kind, in its words; empty where it refuses none."""
        known = self._stream.known.get(kind) if self._stream is not None else None
        versions = {(name, each.version) for name, each in self._resources.get(kind, {}).items()}
        return next((why for each, why in known.refused.items() if each in versions), "") if known is not None else ""

    def has_on_demand(self, kind: Kind) -> list[str]:
        """Return the names of the resources that Envoy has for a request, the first requested first."""
        known = self._stream.known.get(kind) if self._stream is not None else None
        if known is None or known.asked is None:
            return []
        resources = self._resources.get(kind, {})
        return [
            name
            for name in known.asked
            if name in known.acknowledged and name in resources and resources[name].on_demand
        ]

    async def taken_up(self, *kinds: Kind, within_s: float) -> None:
        """Return when Envoy has acknowledged the set resources of these kinds.

        Raises:
            TimeoutError: it has not in time.
            Unavailable: it refuses something.
        """
        async with asyncio.timeout(within_s):
            while not self._are_taken_up(kinds):
                self._heard.clear()
                await self._heard.wait()

    def _are_taken_up(self, kinds: tuple[Kind, ...]) -> bool:
        stream = self._stream
        return stream is not None and all(stream.has_taken_up(kind, self._resources[kind]) for kind in kinds)

    async def _answers(self, requests: AsyncIterator[Any], _context: Any) -> AsyncIterator[Any]:
        stream = self._stream = _Stream(self._requested)
        reading = asyncio.create_task(self._read(requests, stream))
        try:
            while not reading.done():
                stream.changed.clear()
                for kind in Kind:
                    # A kind that is not set yet is not empty: an Envoy of an earlier agent keeps what it has.
                    while kind in stream.due and kind in self._resources:
                        stream.due.discard(kind)
                        if message := stream.answer(kind, self._resources[kind]):
                            yield message
                await stream.changed.wait()
        finally:
            reading.cancel()
            if self._stream is stream:
                self._stream = None

    async def _read(self, requests: AsyncIterator[Any], stream: _Stream) -> None:
        try:
            async for request in requests:
                stream.take(request)
                stream.changed.set()
                self._heard.set()
        finally:
            stream.changed.set()
