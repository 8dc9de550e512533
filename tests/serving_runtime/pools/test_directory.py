"""What a runtime knows of the catalog, and for how long."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from serving_runtime.common.errors import ModelError, NotFound, Unavailable
from serving_runtime.pools import directory
from serving_runtime.pools.client import FetcherClient
from serving_runtime.pools.directory import Directory
from tests.serving_runtime._support import pools
from tests.serving_runtime._support.pools import Place


class Clock:
    """The moment of a directory."""

    def __init__(self) -> None:
        self.now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(directory, "now", lambda: found.now)
    return found


@pytest.fixture
async def client(place: Place) -> AsyncIterator[FetcherClient]:
    found = FetcherClient(place.socket)
    yield found
    found.close()
    await asyncio.sleep(0)


async def test_requests_for_unknown_models_reach_the_fetcher_once_a_second(
    place: Place, clock: Clock, client: FetcherClient
) -> None:
    known = Directory(client)
    with pools.fetcher_here(place):
        for second in range(3):
            clock.now += 1.0
            errors = await asyncio.gather(*[known.look("ns.none") for _ in range(200)], return_exceptions=True)
            assert all(isinstance(error, NotFound) for error in errors)
            for _ in range(50):
                with pytest.raises(NotFound, match=r"'ns\.none' is not in the pool's catalog"):
                    known.usable("ns.none")
            assert client.requests == second + 1


async def test_an_entry_is_used_looked_up_again_and_changes_with_the_catalog(
    place: Place, clock: Clock, client: FetcherClient, tmp_path: Path
) -> None:
    model = pools.artifact(tmp_path / "m")
    pools.write(place.catalog, "ns.svc", {1: pools.version(model)})
    known = Directory(client)
    seen: list[int | None] = []
    known.on_change = lambda _model, entry: seen.append(entry.default if entry is not None else None)
    with pools.fetcher_here(place):
        first = await known.look("ns.svc")
        assert known.usable("ns.svc") is first
        assert client.requests == 1
        pools.write(place.catalog, "ns.svc", {1: pools.version(model), 2: pools.version(model)})
        clock.now += directory.FRESH_S
        assert known.usable("ns.svc") is first  # and looked up meanwhile
        await known._look("ns.svc")
        second = known.usable("ns.svc")
        assert second is not None
        assert second.default == 2
        assert first.fresh_until == 0.0
        clock.now += directory.USABLE_S
        assert known.usable("ns.svc") is None
        assert await known.look("ns.svc") is second
        shutil.rmtree(place.catalog)
        clock.now += directory.USABLE_S
        with pytest.raises(NotFound):
            await known.look("ns.svc")
        assert seen == [1, 2, None]


async def test_while_the_fetcher_is_away_what_is_known_is_used(
    place: Place, clock: Clock, client: FetcherClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "_PATIENCE_S", 0.0)
    pools.write(place.catalog, "ns.svc", {1: pools.version(pools.artifact(tmp_path / "m"))})
    known = Directory(client)
    with pytest.raises(Unavailable, match="cannot be reached"):
        await known.look("ns.svc")
    with pools.fetcher_here(place):
        found = await known.look("ns.svc")  # at once: only the catalog's answers are remembered
    clock.now += 100.0
    assert await known.look("ns.svc") is found
    with pytest.raises(Unavailable, match="see whether `fairlead-serve pool-fetcher` runs"):
        await known.look("ns.other")


async def test_an_unusable_document_is_an_error_of_its_model(place: Place, client: FetcherClient) -> None:
    file = pools.write(place.catalog, "ns.svc", {1: {}})
    file.write_text("{")
    known = Directory(client)
    with pools.fetcher_here(place), pytest.raises(ModelError, match=r"document of 'ns\.svc' is not JSON"):
        await known.look("ns.svc")


async def test_a_storm_of_unknown_names_is_bounded_and_known_models_are_found(
    place: Place, clock: Clock, client: FetcherClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "MAX_WAITING", 500)
    pools.write(place.catalog, "ns.svc", {1: pools.version(pools.artifact(tmp_path / "m"))})
    known = Directory(client)
    with pools.fetcher_here(place):
        storm = [asyncio.create_task(known.look(f"ns.n{number}")) for number in range(directory.MAX_WAITING + 1000)]
        await asyncio.sleep(0)
        refused = await asyncio.gather(known.look("ns.other"), return_exceptions=True)
        assert isinstance(refused[0], Unavailable)
        assert f"and {directory.MAX_WAITING} requests wait for the catalog" in str(refused[0])
        errors = await asyncio.gather(*storm, return_exceptions=True)
        assert sum(isinstance(error, NotFound) for error in errors) == directory.MAX_WAITING
        assert sum(isinstance(error, Unavailable) for error in errors) == 1000
        assert client.requests == directory.MAX_WAITING
        assert (await known.look("ns.svc")).default == 1
        for number in range(directory.MAX_WAITING):  # for a second the catalog is not asked again
            with pytest.raises(NotFound):
                known.usable(f"ns.n{number}")
        assert client.requests == directory.MAX_WAITING + 1
