"""Watches of one cluster: one thread per kind and namespace, since each is its own stream.

A thread keeps its watch through all errors: it retries with back-off.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from common.errors import FairleadError
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.streams import HistoryGone, Stream
from integrations.clusters.kubernetes.manifests.names import MANAGED
from integrations.clusters.kubernetes.watches import state
from integrations.clusters.kubernetes.watches.coalesce import Service
from integrations.clusters.kubernetes.watches.state import Watch

logger = logging.getLogger(__name__)
WATCHED = (*resource_types.PRUNED, resource_types.POD, resource_types.ENDPOINT_SLICE)
_END_S = 10.0
Report = Callable[[set[Service]], None]


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a cluster's watches: how many stream, and why the others do not."""

    streaming: int
    total: int
    problems: tuple[str, ...] = ()


class Watcher:
    """Watches the services of some namespaces of one cluster; many threads call `report`."""

    def __init__(self, api: Api, report: Report) -> None:
        self._api = api
        self._report = report
        self._following: dict[str, list[Following]] = {}

    def follow(self, namespaces: Iterable[str]) -> None:
        """Watch these namespaces from now on, and no others."""
        wanted = set(namespaces)
        self._end([self._following.pop(each) for each in self._following.keys() - wanted])
        for namespace in sorted(wanted - self._following.keys()):
            threads = [Following(self._api, kind, namespace, self._report) for kind in WATCHED]
            self._following[namespace] = threads
            for thread in threads:
                thread.start()

    def standing(self) -> Standing:
        """Return the state of the watches."""
        every = [each for threads in self._following.values() for each in threads]
        problems = {each.watch.problem for each in every if each.watch.problem}
        return Standing(sum(each.is_streaming for each in every), len(every), tuple(sorted(problems)))

    def close(self) -> None:
        """End all watches, and wait until their threads have ended."""
        self._end(list(self._following.values()))
        self._following.clear()

    def _end(self, groups: "list[list[Following]]") -> None:
        threads = [each for threads in groups for each in threads]
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join(_END_S)


@dataclass(eq=False)
class Following(threading.Thread):
    """Keeps one watch until it is stopped."""

    api: Api
    kind: resource_types.Kind
    namespace: str
    report: Report
    watch: Watch = field(default_factory=Watch)
    is_streaming: bool = False
    _stopped: threading.Event = field(default_factory=threading.Event)
    _stream: Stream | None = None

    def __post_init__(self) -> None:
        super().__init__(name=f"watch-{self.namespace}-{self.kind.plural}", daemon=True)

    def stop(self) -> None:
        """Make the thread end soon."""
        self._stopped.set()
        stream = self._stream
        if stream is not None:
            stream.interrupt()

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                if self.watch.must_list(time.monotonic()):
                    self._list()
                self._follow()
            except FairleadError as error:
                gone = isinstance(error, HistoryGone)
                self._note(state.failed(self.watch, error.message, gone=gone))
            self._stopped.wait(state.wait_s(self.watch, random.random()))  # noqa: S311 - no secret

    def _list(self) -> None:
        listing = self.api.read(self.kind, self.namespace, MANAGED)
        watch, services = state.listed(self.watch, listing.items, listing.resource_version, time.monotonic())
        self.watch = watch
        self._pass_on(services)

    def _follow(self) -> None:
        with self.api.watch(self.kind, self.namespace, MANAGED, self.watch.resource_version) as stream:
            self._stream, self.is_streaming = stream, True
            try:
                self._note(state.opened(self.watch))
                if not self._stopped.is_set():  # else nothing interrupts it any more
                    self._hear(stream)
            finally:
                self._stream, self.is_streaming = None, False

    def _hear(self, stream: Stream) -> None:
        for event in stream:
            if self._stopped.is_set():
                return
            watch, services = state.heard(self.watch, event)
            self._note(watch)
            self._pass_on(services)
            if watch.problem:
                return
        self._note(state.ended(self.watch))

    def _note(self, watch: Watch) -> None:
        if watch.problem and not self.watch.problem and not self._stopped.is_set():
            logger.warning("the watch of %s in %s is away: %s", self.kind.plural, self.namespace, watch.problem)
        elif self.watch.problem and not watch.problem:
            logger.info("the watch of %s in %s is there again", self.kind.plural, self.namespace)
        self.watch = watch

    def _pass_on(self, services: set[str]) -> None:
        if services:
            self.report({(self.namespace, service) for service in services})
