"""Directory of a pool: what the catalog says of the models that requests named lately.

    age up to 1 s    used
    up to 10 s       used, and looked up again meanwhile
    older            looked up before it is used; while the fetcher is away it is used all the same

Unknown models and unusable documents are remembered for a second, so that not every request for them reaches the
fetcher. A version that an entry lacks may be newer than it: the model is looked up before a request hears so.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from serving_runtime.common.errors import NotFound, ServingError, Unavailable
from serving_runtime.pools import messages
from serving_runtime.pools.client import FailedError, FetcherClient
from serving_runtime.pools.names import VersionKey

FRESH_S = 1.0
USABLE_S = 10.0
MISSING_S = 0.05
"""An entry lacks a version for certain where it is not older than this."""
MAX_WAITING = 4096
"""Requests that wait for a look at the catalog."""
_MOST_KNOWN = 1 << 17
_MOST_UNKNOWN = 1 << 14
_PATIENCE_S = 2.0

now = time.monotonic


class Entry:
    """One model of the catalog.

    Attributes:
        identities: by version, a text that changes with what would be loaded.
        looked_at, fresh_until, usable_until: monotonic seconds.
    """

    __slots__ = ("default", "fresh_until", "identities", "looked_at", "model", "pinned", "usable_until")

    def __init__(self, model: str, content: dict[str, Any]) -> None:
        self.model = model
        self.default: int = content["default"]
        self.pinned: bool = content["pinned"]
        self.identities: dict[int, str] = {int(version): text for version, text in content["versions"].items()}
        self.looked_at = self.fresh_until = self.usable_until = 0.0
        self.renew()

    def renew(self) -> None:
        self.looked_at = at = now()
        self.fresh_until, self.usable_until = at + FRESH_S, at + USABLE_S

    def key(self, version: int | None) -> VersionKey:
        """Return the version of a request, the default for none; raises NotFound."""
        if version is None:
            return VersionKey(self.model, self.default)
        if version not in self.identities:
            known = ", ".join(str(each) for each in sorted(self.identities))
            raise NotFound(f"model '{self.model}' has no version '{version}' in the pool's catalog; it has {known}")
        return VersionKey(self.model, version)


class Directory:
    """Looks models up. Lives on one event loop.

    Attributes:
        on_change: called with the entry of a model before, None for none, and now, None where it is unknown.
    """

    def __init__(self, client: FetcherClient) -> None:
        self.on_change: Callable[[str, Entry | None], None] = lambda _model, _entry: None
        self._client = client
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._unknown: OrderedDict[str, tuple[float, ServingError]] = OrderedDict()
        self._looks: dict[str, asyncio.Task[Entry]] = {}
        self._waiting = 0

    def known(self, model: str) -> Entry | None:
        """Return a model's entry of whatever age; None where it was not looked up, or too long ago."""
        return self._entries.get(model)

    def usable(self, model: str, version: int | None = None) -> Entry | None:
        """Return a model's entry, None where it must be looked up first; raises NotFound for an unknown model.

        Args:
            version: that the request names.
        """
        entry = self._entries.get(model)
        at = now()
        if entry is None:
            until, error = self._unknown.get(model, (0.0, None))
            if error is not None and at < until:
                raise error.with_traceback(None)
            return None
        if version is not None and version not in entry.identities and at > entry.looked_at + MISSING_S:
            return None
        if at < entry.fresh_until:
            return entry
        if at < entry.usable_until:
            self._look(model)
            return entry
        return None

    async def look(self, model: str, version: int | None = None) -> Entry:
        """Return a model's usable entry; raises ServingError where the catalog has none, or cannot be read."""
        entry = self.usable(model, version)
        if entry is not None:
            return entry
        if self._waiting >= MAX_WAITING:
            raise Unavailable(f"model '{model}' is not known yet, and {self._waiting} requests wait for the catalog")
        self._waiting += 1
        try:
            return await asyncio.shield(self._look(model, newest=self._lacks(model, version)))
        except FailedError as error:
            raise error.error from error
        finally:
            self._waiting -= 1

    def close(self) -> None:
        for look in self._looks.values():
            look.cancel()

    def _lacks(self, model: str, version: int | None) -> bool:
        entry = self._entries.get(model)
        return entry is not None and version is not None and version not in entry.identities

    def _look(self, model: str, *, newest: bool = False) -> "asyncio.Task[Entry]":
        """Begin to look a model up, unless that has begun."""
        look = self._looks.get(model)
        if look is None:
            look = self._looks[model] = asyncio.get_running_loop().create_task(self._looked_up(model, newest=newest))
            look.add_done_callback(self._over(model))
        return look

    def _over(self, model: str) -> Callable[["asyncio.Task[Entry]"], None]:
        def over(look: "asyncio.Task[Entry]") -> None:
            del self._looks[model]
            if not look.cancelled():
                look.exception()  # retrieved; those who wait get it

        return over

    async def _looked_up(self, model: str, *, newest: bool) -> Entry:
        asked = {"look": model, **({"newest": True} if newest else {})}
        try:
            content = await self._client.ask(asked, patience_s=_PATIENCE_S)
        except FailedError as error:
            old = self._entries.get(model)
            if old is not None and error.kind != messages.UNKNOWN:  # the catalog or the fetcher is away for a while
                old.renew()
                return old
            self._entries.pop(model, None)
            if error.retry_s:
                self._unknown[model] = now() + min(error.retry_s, FRESH_S), error.error
                self._unknown.move_to_end(model)
                if len(self._unknown) > _MOST_UNKNOWN:
                    self._unknown.popitem(last=False)
            if old is not None:
                self.on_change(model, None)
            raise
        return self._learn(model, content)

    def _learn(self, model: str, content: dict[str, Any]) -> Entry:
        self._unknown.pop(model, None)
        found = Entry(model, content)
        old = self._entries.get(model)
        if old is not None and _same(old, found):
            old.renew()
            self._entries.move_to_end(model)
            return old
        if old is not None:  # what remembers it looks it up again
            old.fresh_until = old.usable_until = 0.0
        self._entries[model] = found
        self._entries.move_to_end(model)
        if len(self._entries) > _MOST_KNOWN:
            _, oldest = self._entries.popitem(last=False)
            oldest.fresh_until = oldest.usable_until = 0.0
        self.on_change(model, found)
        return found


def _same(one: Entry, other: Entry) -> bool:
    return (one.default, one.pinned, one.identities) == (other.default, other.pinned, other.identities)
