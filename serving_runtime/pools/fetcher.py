"""Fetcher of a model pool: gives runtimes folders of models, fetched where they are missing.

    request -> document of the catalog -> artifact in the cache? -> model folder -> held for the connection -> answer
                                             | no: one fetch a digest, a bounded number at once, in threads;
                                             |     an origin has half of them at most (`fetch_slots`)

Trusted, outside the sandbox: it has the network and the credentials that runtimes lack. A runtime names a model and a
version, never a path or an address.
"""

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from serving_runtime.artifacts.download import NoRoomError, Patience, TooLargeError
from serving_runtime.artifacts.fetch_artifact import Order
from serving_runtime.artifacts.remotes import InterruptedTransferError
from serving_runtime.common.errors import InvalidArgument, ModelError, ServingError, Unavailable, Unsupported
from serving_runtime.pools import messages, origins
from serving_runtime.pools.cache import ArtifactCache, remove
from serving_runtime.pools.catalog import Catalog, Document, Version
from serving_runtime.pools.fetch_slots import FetchSlots, StalledError, Transfer, origin_of
from serving_runtime.pools.messages import Fetch, Holds, Look
from serving_runtime.pools.names import VersionKey
from serving_runtime.pools.origins import Registry

logger = logging.getLogger(__name__)

MAX_UNANSWERED = 8192
"""Requests of one connection; reading pauses above it."""


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """Settings of a fetcher, from the command line.

    Attributes:
        catalog: of the documents.
        concurrency: number of artifacts that are fetched at the same time, half of them from one origin.
        stall_s: how long a fetch may receive nothing before requests for it fail.
        with_code: whether files that an interpreter or the loader could run are given to runtimes.
    """

    catalog: Catalog
    cache: Path
    cache_max_bytes: int
    concurrency: int = 8
    stall_s: float = 30.0
    patience: Patience = field(default_factory=lambda: Patience(tries=4, longest_s=4.0, deadline_s=600.0))
    registry: Registry = field(default_factory=Registry)
    with_code: bool = False


class FailedError(Exception):
    """A request that is answered with an error of a kind."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One fetch that goes on."""

    transfer: Transfer
    task: "asyncio.Task[None]"


class Fetcher:
    """Serves runtimes on one Unix socket. Lives on one event loop."""

    def __init__(self, settings: FetcherSettings) -> None:
        self._settings = settings
        self._cache = ArtifactCache(settings.cache, settings.cache_max_bytes)
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix="fetch")
        self._quick = ThreadPoolExecutor(4, thread_name_prefix="layout")
        self._slots = FetchSlots(settings.concurrency)
        self._fetches: dict[str, _Fetch] = {}
        self._layouts: dict[str, asyncio.Task[Path]] = {}
        self._server: asyncio.AbstractServer | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self, place: Path) -> None:
        """Listen at a path, in place of an earlier fetcher; raises OSError."""
        await asyncio.to_thread(self._cache.open)
        self._server = await asyncio.start_unix_server(
            self._serve, sock=listening(place), limit=messages.MAX_LINE_BYTES
        )
        logger.info(
            "fetching for %s from the catalog %s; the cache has %d bytes of at most %d",
            place,
            self._settings.catalog,
            self._cache.used_bytes,
            self._cache.max_bytes,
        )

    async def close(self) -> None:
        """Stop; fetches that go on are abandoned, and their parts removed at the next start."""
        if self._server is not None:
            self._server.close()
        going_on: list[asyncio.Task[Any]] = [
            *self._clients,
            *(each.task for each in self._fetches.values()),
            *self._layouts.values(),
        ]
        for task in going_on:
            task.cancel()
        await asyncio.gather(*going_on, return_exceptions=True)
        await self._settings.catalog.close()
        await asyncio.sleep(0)  # the transports of the connections end
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._quick.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(self, self._cache, reader, writer)
        task = asyncio.current_task()
        if task is not None:
            self._clients.add(task)
            task.add_done_callback(self._clients.discard)
        with contextlib.suppress(asyncio.CancelledError):  # of `close`; asyncio would log it
            await client.run()

    async def look(self, model: str, *, newest: bool = False) -> Document:
        """Return a model's document, `newest` as it is now; raises FailedError."""
        try:
            document = await self._settings.catalog.find(model, newest=newest)
        except Unavailable as error:
            raise FailedError(messages.UNAVAILABLE, str(error)) from error
        except ModelError as error:
            raise FailedError(messages.CORRUPT, str(error)) from error
        if document is None:
            raise FailedError(
                messages.UNKNOWN, f"model '{model}' is not in the pool's catalog; check the service's name"
            )
        return document

    async def bring(self, asked: Fetch, hold: Callable[[str], None]) -> tuple[int, Version, Path]:
        """Return a model's version and its folder, which `hold` holds from now on; raises FailedError."""
        document = await self.look(asked.model)
        number = asked.version if asked.version is not None else document.default
        version = document.versions.get(number)
        if version is None:
            document = await self.look(asked.model, newest=True)
            version = document.versions.get(number)
        if version is None:
            known = ", ".join(str(each) for each in sorted(document.versions))
            raise FailedError(
                messages.UNKNOWN, f"model '{asked.model}' has no version {number} in the pool's catalog; it has {known}"
            )
        key = VersionKey(asked.model, number)
        digest_hex = version.digest.removeprefix("sha256:")
        while digest_hex not in self._cache:  # another fetch may remove it before this task goes on
            await self._fetched(key, version)
        self._cache.use(digest_hex)
        hold(version.digest)
        return number, version, await self._laid_out(key, version)

    async def _fetched(self, key: VersionKey, version: Version) -> None:
        """Return when one fetch of an artifact is over, which all requests for it share; fail where it stalls."""
        fetch = self._fetches.get(version.digest)
        if fetch is None:
            transfer = Transfer(origin_of(version.origin))
            task = asyncio.get_running_loop().create_task(self._fetch_in_turn(key, version, transfer))
            fetch = self._fetches[version.digest] = _Fetch(transfer, task)
            task.add_done_callback(partial(self._over, version.digest))
        while (left_s := self._settings.stall_s - self._slots.stalled_s(fetch.transfer)) > 0:
            done, _ = await asyncio.wait({fetch.task}, timeout=left_s)
            if done and not fetch.task.cancelled():
                return fetch.task.result()
            if done:
                break
        stalled = (
            f"model '{key}' cannot be fetched: the store {fetch.transfer.origin} has sent nothing for "
            f"{self._settings.stall_s:g} s (--fetch-stall-secs); see whether the store answers, and try again"
        )
        if self._slots.runs(fetch.transfer):
            fetch.transfer.give_up(stalled)  # its thread ends, and its slot is free, when the connection times out
        else:
            fetch.task.cancel()
        raise FailedError(messages.UNAVAILABLE, stalled)

    def _over(self, digest: str, task: "asyncio.Task[None]") -> None:
        del self._fetches[digest]
        if not task.cancelled():
            task.exception()  # retrieved; those who wait get it, unless they have gone

    async def _fetch_in_turn(self, key: VersionKey, version: Version, transfer: Transfer) -> None:
        await self._slots.take(transfer)
        try:
            await self._fetch(key, version, transfer)
        finally:
            self._slots.release(transfer)

    async def _fetch(self, key: VersionKey, version: Version, transfer: Transfer) -> None:
        settings = self._settings
        say = partial(logger.info, "%s: %s", key)
        remotes = partial(transfer.watched, partial(origins.remotes, version.origin, settings.registry))
        order = Order(version.digest, remotes, say, settings.patience)
        loop = asyncio.get_running_loop()
        where = f"model '{key}' cannot be fetched"
        try:
            found = await loop.run_in_executor(self._threads, self._cache.receive, order)
            leaving = self._cache.take(*found)
        except TooLargeError as error:
            raise FailedError(
                messages.TOO_LARGE, f"{where}: {error}; raise --cache-max-bytes of the pool's fetcher"
            ) from error
        except StalledError as error:
            raise FailedError(messages.UNAVAILABLE, str(error)) from error
        except (InterruptedTransferError, NoRoomError, OSError) as error:
            raise FailedError(messages.UNAVAILABLE, f"{where}: {error}") from error
        except ModelError as error:
            kind = messages.UNAVAILABLE if _is_temporary(error) else messages.CORRUPT
            raise FailedError(kind, f"{where}: {error}") from error
        for folder in leaving:
            loop.run_in_executor(self._quick, remove, folder)

    async def _laid_out(self, key: VersionKey, version: Version) -> Path:
        """Return a version's model folder, whose artifact is held; one layout for all requests for it."""
        named = f"{key}\0{version.digest}\0{version.identity}"
        layout = self._layouts.get(named)
        if layout is None:
            layout = self._layouts[named] = asyncio.get_running_loop().create_task(self._lay_out(key, version))
            layout.add_done_callback(lambda _: self._layouts.pop(named, None))
        return await asyncio.shield(layout)

    async def _lay_out(self, key: VersionKey, version: Version) -> Path:
        work = partial(self._cache.lay_out, key, version, with_code=self._settings.with_code)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._quick, work)
        except Unsupported as error:
            raise FailedError(messages.UNSUPPORTED, str(error)) from error
        except ServingError as error:
            raise FailedError(messages.CORRUPT, f"model '{key}' cannot be laid out: {error}") from error
        except OSError as error:
            raise FailedError(messages.UNAVAILABLE, f"model '{key}' cannot be laid out: {error}") from error


def listening(place: Path) -> socket.socket:
    """Return a socket bound at a path, in place of an earlier one there."""
    place.unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        found.bind(str(place))
    except BaseException:
        found.close()
        raise
    place.chmod(0o660)  # the runtime may have another user of the same group
    return found


def _is_temporary(error: ModelError) -> bool:
    """Return whether a fetch failed by a store that may answer later."""
    return isinstance(error.__cause__, InterruptedTransferError)


class _Client:
    """One connection of a runtime, and what it holds."""

    def __init__(
        self, fetcher: Fetcher, cache: ArtifactCache, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._fetcher = fetcher
        self._cache = cache
        self._reader = reader
        self._writer = writer
        self._held: Counter[str] = Counter()
        self._answers: set[asyncio.Task[None]] = set()
        self._is_open = True
        self._room = asyncio.Event()

    async def run(self) -> None:
        try:
            while True:
                try:
                    text = await self._reader.readuntil(b"\n")
                except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
                    return
                self._take(text)
                while len(self._answers) >= MAX_UNANSWERED:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._is_open = False
            for answer in self._answers:
                answer.cancel()
            for digest, times in self._held.items():
                for _ in range(times):
                    self._cache.release(digest.removeprefix("sha256:"))
            self._held.clear()
            self._writer.close()

    def _take(self, text: bytes) -> None:
        try:
            asked = messages.request_in(text)
        except InvalidArgument as error:
            self._write(messages.error_line(messages.number_in(text), messages.INVALID, str(error)))
            return
        if isinstance(asked, Holds):
            self._change_holds(asked)
            return
        answer = asyncio.get_running_loop().create_task(self._answer(asked))
        self._answers.add(answer)
        answer.add_done_callback(self._over)

    def _over(self, answer: "asyncio.Task[None]") -> None:
        self._answers.discard(answer)
        self._room.set()

    def _change_holds(self, asked: Holds) -> None:
        for digest in asked.digests:
            if not asked.released:
                self._hold(digest)
            elif self._held[digest]:
                self._drop(digest)

    def _hold(self, digest: str) -> None:
        if self._is_open and (self._held[digest] or len(self._held) < messages.MAX_HOLDS):
            self._held[digest] += 1
            self._cache.hold(digest.removeprefix("sha256:"))

    def _drop(self, digest: str) -> None:
        self._cache.release(digest.removeprefix("sha256:"))
        self._held[digest] -= 1
        if not self._held[digest]:
            del self._held[digest]

    async def _answer(self, asked: Look | Fetch) -> None:
        held: list[str] = []

        def hold(digest: str) -> None:
            self._hold(digest)
            held.append(digest)

        try:
            self._write(await self._answer_to(asked, hold))
        except FailedError as error:
            self._write(messages.error_line(asked.number, error.kind, str(error)))
        except Exception:
            logger.exception("answering for model '%s' failed", asked.model)
            self._write(messages.error_line(asked.number, messages.UNAVAILABLE, "internal error of the fetcher"))
        else:
            return
        for digest in held:
            if self._held[digest]:
                self._drop(digest)

    async def _answer_to(self, asked: Look | Fetch, hold: Callable[[str], None]) -> bytes:
        if isinstance(asked, Look):
            document = await self._fetcher.look(asked.model, newest=asked.newest)
            return messages.line(
                {
                    "id": asked.number,
                    "default": document.default,
                    "pinned": document.pinned,
                    "versions": {str(number): version.identity for number, version in document.versions.items()},
                }
            )
        number, version, folder = await self._fetcher.bring(asked, hold)
        return messages.line(
            {
                "id": asked.number,
                "folder": str(folder),
                "digest": version.digest,
                "version": number,
                "identity": version.identity,
                "checked": version.checked,
            }
        )

    def _write(self, text: bytes) -> None:
        if self._is_open:
            self._writer.write(text)
