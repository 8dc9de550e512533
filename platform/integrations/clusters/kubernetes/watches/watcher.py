"""Watches of one cluster, on an event loop that all clusters of a process share.

A kind is watched in all namespaces by one stream where the role allows it, else by one for each namespace. A watch is
kept through all errors: it retries with back-off. What it reports is in the cluster's cache.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import cache

from common.errors import FairleadError, NotFound, NotPermitted
from integrations.clusters.kubernetes.access import Access
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.errors import HistoryGone
from integrations.clusters.kubernetes.api.resource_types import Kind
from integrations.clusters.kubernetes.api.watching import WatchingApi
from integrations.clusters.kubernetes.manifests.names import MANAGED
from integrations.clusters.kubernetes.watches import state
from integrations.clusters.kubernetes.watches.cache import EVERYWHERE, Cache, Key, Known, key_of
from integrations.clusters.kubernetes.watches.coalesce import Service
from integrations.clusters.kubernetes.watches.state import Watch

logger = logging.getLogger(__name__)
OPTIONAL = (resource_types.CONFIG_MAP, resource_types.SCALED_OBJECT, *resource_types.POLICIES)
"""Kinds that a cluster may lack, or whose watch the roles of an earlier release do not allow: the driver reads them."""
WATCHED = (*resource_types.PRUNED, resource_types.POD, resource_types.ENDPOINT_SLICE, *OPTIONAL)
"""Kinds of a service's objects."""
_END_S = 10.0
_AGAIN_S = 600.0
Report = Callable[[set[Service]], None]


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a cluster's watches: how many stream, and why the others do not."""

    streaming: int
    total: int
    problems: tuple[str, ...] = ()


class Watcher:
    """Watches the services of some namespaces of one cluster; `report` is called on the event loop."""

    def __init__(self, access: Access, cache: Cache, report: Report, kinds: Sequence[Kind] = WATCHED) -> None:
        """Prepare; raises InvalidInput where the access does not say how to reach a cluster."""
        self._api = WatchingApi(access)
        self._cache = cache
        self._report = report
        self._kinds = [_OfKind(kind, self._api, cache, report) for kind in kinds]
        self._running: Future[None] | None = None

    def follow(self, namespaces: Iterable[str]) -> None:
        """Watch these namespaces from now on, and no others."""
        wanted = frozenset(namespaces)
        if wanted == self._cache.namespaces:
            return
        self._cache.keep(wanted)
        for each in self._kinds:
            _loop().call_soon_threadsafe(each.follow, wanted)

    def standing(self) -> Standing:
        """Return the state of the watches."""
        every = [each for kind in self._kinds for each in list(kind.following.values()) if not each.is_absent]
        problems = {each.watch.problem for each in every if each.watch.problem}
        return Standing(sum(each.is_streaming for each in every), len(every), tuple(sorted(problems)))

    def close(self) -> None:
        """End all watches, and wait until they have ended."""
        self._cache.keep(())
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), _loop()).result(_END_S)

    async def _end(self) -> None:
        await asyncio.gather(*(each.end() for each in self._kinds))
        await self._api.close()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all watches of this process, which runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="watches", daemon=True).start()
    return loop


@dataclass(eq=False)
class _OfKind:
    """The watches of one kind: one of all namespaces, or one of each. All of it runs on the event loop.

    Attributes:
        following: by namespace.
    """

    kind: Kind
    api: WatchingApi
    cache: Cache
    report: Report
    following: "dict[str, _Following]" = field(default_factory=dict)
    _namespaces: frozenset[str] = frozenset()
    _is_narrow: bool = False
    _ending: "set[asyncio.Task[None]]" = field(default_factory=set)

    def follow(self, namespaces: frozenset[str]) -> None:
        """Watch these namespaces."""
        added, self._namespaces = namespaces - self._namespaces, namespaces
        wanted = namespaces if self._is_narrow else ({EVERYWHERE} if namespaces else frozenset())
        for namespace in self.following.keys() - wanted:
            self._leave(namespace)
        if added and EVERYWHERE in self.following and EVERYWHERE not in namespaces:  # what it skipped so far
            self._leave(EVERYWHERE)
        for namespace in wanted - self.following.keys():
            self.following[namespace] = _Following(self, namespace)

    def narrow(self) -> None:
        """Watch each namespace by itself: all of them at once is not permitted.

        Where EVERYWHERE is one of them, it is tried again now and then: a role for all namespaces may come.
        """
        self._is_narrow = True
        namespaces, self._namespaces = self._namespaces, frozenset()
        self.follow(namespaces)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of what is watched; objects of users have none of the driver's."""
        return {} if self.kind in resource_types.OF_USERS else MANAGED

    async def end(self) -> None:
        """End all watches."""
        for namespace in list(self.following):
            self._leave(namespace)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _leave(self, namespace: str) -> None:
        task = self.following.pop(namespace).task
        self.cache.lost(self.kind, namespace)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        task.cancel()


class _Following:
    """Keeps one watch until its task is cancelled.

    Attributes:
        is_absent: the cluster does not have the kind, or the role does not allow its watch, and neither is needed.
    """

    def __init__(self, of: _OfKind, namespace: str) -> None:
        self.watch = Watch()
        self.is_streaming = False
        self.is_absent = False
        self._of = of
        self._namespace = namespace
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                if self.watch.must_list(time.monotonic()):
                    await self._list()
                await self._stream()
            except (NotPermitted, NotFound) as error:
                if self._namespace == EVERYWHERE and isinstance(error, NotPermitted):
                    self._of.narrow()  # ends this one, unless objects of all namespaces are wanted
                await self._refused(error)
            except FairleadError as error:
                self._note(
                    state.failed(self.watch, error.message, time.monotonic(), gone=isinstance(error, HistoryGone))
                )
            except Exception:
                logger.exception("the watch of %s failed", self._what)
                self._note(state.failed(self.watch, "it failed, as its log says", time.monotonic(), gone=True))
            if self.watch.is_lost(time.monotonic()):
                self._of.cache.lost(self._of.kind, self._namespace)
            await asyncio.sleep(state.wait_s(self.watch, random.random()))  # noqa: S311 - no secret

    async def _refused(self, error: NotPermitted | NotFound) -> None:
        of = self._of
        of.cache.lost(of.kind, self._namespace)
        if of.kind in (*OPTIONAL, *resource_types.OF_USERS):
            self.is_absent = True
            if isinstance(error, NotFound):  # the cluster does not have the kind, and so no object of it
                of.cache.listed(of.kind, self._namespace, {}, "0")
            await asyncio.sleep(_AGAIN_S)
            return
        self._note(state.failed(self.watch, error.message, time.monotonic()))

    async def _list(self) -> None:
        of, version = self._of, ""
        found: dict[Key, Known] = {}
        of.cache.list_begins(of.kind)
        async for items, listed_at in of.api.pages(of.kind, self._namespace, of.labels):
            found.update((key_of(each), Known.of(of.kind, each)) for each in items)
            version = listed_at
        changed = of.cache.listed(of.kind, self._namespace, found, version)
        self.watch, self.is_absent = state.listed(self.watch, version, time.monotonic()), False
        self._pass_on(changed)

    async def _stream(self) -> None:
        of = self._of
        stream = of.api.events(of.kind, self._namespace, of.labels, self.watch.resource_version)
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    if event is None:
                        self.is_streaming = True
                        self._note(state.opened(self.watch))
                        continue
                    self._note(state.heard(self.watch, event, time.monotonic()))
                    if self.watch.problem:
                        return
                    self._pass_on(of.cache.heard(of.kind, self._namespace, event["type"], event["object"]))
        finally:
            self.is_streaming = False
        self._note(state.ended(self.watch))

    @property
    def _what(self) -> str:
        return f"{self._of.kind.plural} in {self._namespace or 'all namespaces'}"

    def _note(self, watch: Watch) -> None:
        if watch.problem and not self.watch.problem:
            logger.warning("the watch of %s is away: %s", self._what, watch.problem)
        elif self.watch.problem and not watch.problem:
            logger.info("the watch of %s is there again", self._what)
        self.watch = watch

    def _pass_on(self, services: set[Service]) -> None:
        if services:
            self._of.report(services)
