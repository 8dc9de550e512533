"""An engine whose models come from a pool: loads, evictions and failures, with a fetcher in this process."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from serving_runtime.common.errors import ModelError, NoRoom, NotFound, ServingError, Unavailable, Unsupported
from serving_runtime.engine.lifecycle import on_demand
from serving_runtime.engine.lifecycle.control_mode import Control
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory import process_memory
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.pools import directory
from serving_runtime.pools.names import ServiceName
from serving_runtime.pools.source import ModelPool
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support import pools
from tests.serving_runtime._support.engines import infer, output, until
from tests.serving_runtime._support.pools import Place, Store

SIZE = 256
FILE_BYTES = SIZE * SIZE * 4


@pytest.fixture(autouse=True)
def _exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let models take what their files do: small ones are lost in what a library takes at its first use."""
    monkeypatch.setattr(process_memory, "resident_bytes", lambda: 0)


@asynccontextmanager
async def engine_of(place: Place, budget: float | None = None) -> AsyncIterator[tuple[Engine, ModelPool]]:
    """An engine with a budget of so many models of 256 KiB, which take 2.3 times as much while they are opened."""
    pool = ModelPool(place.socket, 20.0)
    control = Control(
        on_demand=True,
        on_demand_timeout_s=20.0,
        memory_budget_bytes=int(budget * FILE_BYTES) if budget is not None else None,
    )
    engine = Engine([], LoadSettings(trial=False), control, source=pool, strict_readiness=False)
    await engine.load_all()
    try:
        yield engine, pool
    finally:
        engine.close()
        pool.close()
        await asyncio.sleep(0)


async def ask(engine: Engine, pool: ModelPool, service: str, *, width: int = SIZE) -> Any:
    """Send a request as protocols do: look the version up, wait for it, infer."""
    try:
        entry = await pool.look(ServiceName("ns", service))
        key = entry.key(None)
        await engine.arrive(str(key), 0)
    except ServingError as error:
        return error
    return await infer(engine, str(key), width=width)


def loaded(engine: Engine) -> list[str]:
    return sorted(name for name, version in engine._servables if not version)


def big(place: Place, folder: Path, *services: str, **rest: object) -> None:
    """Models of 256 KiB, x [N,256] -> y [N,256]."""
    model = pools.artifact(folder, SIZE, SIZE)
    entry = pools.version(model)
    for service in services:
        pools.write(place.catalog, f"ns.{service}", {1: entry}, **rest)


async def later() -> None:
    """Return in another millisecond: so exact is the order of use."""
    before = time.time_ns() // 1_000_000
    await until(lambda: time.time_ns() // 1_000_000 > before, "the next millisecond")


async def test_the_least_recently_used_leaves_and_pinned_ones_stay(place: Place, tmp_path: Path) -> None:
    big(place, tmp_path / "m", "b", "c", "d", "e")
    big(place, tmp_path / "m", "a", pinned=True)
    with pools.fetcher_here(place):
        async with engine_of(place, 4.4) as (engine, pool):
            for service in "abc":
                assert output(await ask(engine, pool, service)).shape == (1, SIZE)
                await later()
            await ask(engine, pool, "b")
            await later()
            await ask(engine, pool, "d")  # c was used before b, and a is pinned
            assert loaded(engine) == ["ns.a@1", "ns.b@1", "ns.d@1"]
            await later()
            await ask(engine, pool, "e")
            assert loaded(engine) == ["ns.a@1", "ns.d@1", "ns.e@1"]
            assert pool.counts.evictions == 2
            assert engine.inflight == 0
            assert sorted(engine._models) == loaded(engine)  # unloaded ones are forgotten


async def test_many_models_go_through_a_small_memory_which_is_never_exceeded(place: Place, tmp_path: Path) -> None:
    services = [f"m{number}" for number in range(200)]
    big(place, tmp_path / "m", *services)
    with pools.fetcher_here(place):
        async with engine_of(place, 20) as (engine, pool):
            budget = engine._lifecycle.budget
            most = 0

            async def watch() -> None:
                nonlocal most
                while True:
                    most = max(most, budget.used_bytes)
                    await asyncio.sleep(0.001)

            watching = asyncio.create_task(watch())
            for start in range(0, 200, 10):
                answers = await asyncio.gather(*[ask(engine, pool, name) for name in services[start : start + 10]])
                assert [output(answer).shape for answer in answers] == [(1, SIZE)] * 10
            watching.cancel()
            assert 10 <= len(loaded(engine)) <= 20  # those that are opened at the same time take more for a moment
            assert budget.limit_bytes is not None
            assert 0 < most <= budget.limit_bytes
            assert pool.counts.evictions == 200 - len(loaded(engine))
            assert len(engine.series()) == 200  # evicted ones stay on the page for a while


async def test_a_thousand_requests_at_once_for_a_cold_model_make_one_load(place: Place, tmp_path: Path) -> None:
    model = pools.artifact(tmp_path / "m")
    with Store({"/model.onnx": (model / "model.onnx").read_bytes()}) as store:
        entry = {**pools.version(model), "origin": f"{store.url}/model.onnx"}
        pools.write(place.catalog, "ns.a", {1: entry})
        with pools.fetcher_here(place):
            async with engine_of(place) as (engine, pool):
                answers = await asyncio.gather(*[ask(engine, pool, "a", width=4) for _ in range(1000)])
                assert [output(answer).shape for answer in answers] == [(1, 3)] * 1000
                assert store.asked == ["/model.onnx"]
                assert pool.fetcher_requests == 2  # the catalog, and the folder
                assert pool.counts.misses == 1000
                page: dict[str, Any] = {family.name: family.samples for family in pool.families()}
                assert page["fairlead_pool_load_duration_us"][0][1].count == 1


async def test_a_thousand_models_at_once_are_loaded_and_more_requests_are_refused(place: Place, tmp_path: Path) -> None:
    model = pools.version(pools.artifact(tmp_path / "m"))
    services = [f"m{number}" for number in range(on_demand.MAX_WAITING + 100)]
    for service in services:
        pools.write(place.catalog, f"ns.{service}", {1: model})
    with pools.fetcher_here(place):
        async with engine_of(place) as (engine, pool):
            answers = await asyncio.gather(*[ask(engine, pool, service, width=4) for service in services])
            refused = [answer for answer in answers if isinstance(answer, ServingError)]
            assert 0 < len(refused) <= 100
            assert all(isinstance(error, Unavailable) for error in refused)
            assert "requests with 0 bytes wait for models already" in str(refused[0])
            assert len(loaded(engine)) == len(services) - len(refused)


async def test_requests_in_flight_are_answered_while_their_model_leaves_the_catalog(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx_models.slow(tmp_path / "m" / "model.onnx", 64, rounds=100_000)
    file = pools.write(place.catalog, "ns.a", {1: pools.version(tmp_path / "m")})
    with pools.fetcher_here(place):
        async with engine_of(place) as (engine, pool):
            await pool.prefetch("ns.a@1")
            asked = asyncio.create_task(infer(engine, "ns.a@1", width=64))
            await asyncio.sleep(0)
            assert engine.inflight == 1
            file.unlink()
            monkeypatch.setattr(directory, "now", lambda: time.monotonic() + 100)
            assert isinstance(await ask(engine, pool, "a"), NotFound)
            await until(lambda: not loaded(engine), "the model is unloaded")
            assert output(await asked).shape == (1, 64)
            await until(lambda: engine._lifecycle.budget.used_bytes == 0, "its memory is released")


async def test_a_changed_version_is_loaded_beside_the_one_that_answers(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools.write(place.catalog, "ns.a", {1: pools.version(pools.artifact(tmp_path / "m"))})
    with pools.fetcher_here(place):
        async with engine_of(place) as (engine, pool):
            assert output(await ask(engine, pool, "a", width=4)).shape == (1, 3)
            cleared: list[int] = []
            engine.watch(lambda: cleared.append(1))
            pools.write(place.catalog, "ns.a", {1: pools.version(pools.artifact(tmp_path / "other", 5))})
            monkeypatch.setattr(directory, "now", lambda: time.monotonic() + 100)
            await pool.look(ServiceName("ns", "a"))
            await until(lambda: bool(cleared), "the other model answers, and what was remembered of it is dropped")
            assert output(await ask(engine, pool, "a", width=4)).shape == (1, 5)


async def test_bad_models_are_said_and_not_tried_for_each_request(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "FRESH_S", 60.0)
    model = pools.artifact(tmp_path / "m")
    big(place, tmp_path / "big", "large")
    pools.write(place.catalog, "ns.corrupt", {1: pools.version(model, "sha256:" + "0" * 64)})
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "model.onnx").write_text("no model")
    pools.write(place.catalog, "ns.broken", {1: pools.version(tmp_path / "none")})
    onnx_models.configure(tmp_path / "ensemble" / "whole", 'platform: "ensemble" ensemble_scheduling { step { } }')
    pools.artifact(tmp_path / "ensemble" / "part" / "1")
    pools.write(place.catalog, "ns.ensemble", {1: pools.version(tmp_path / "ensemble")})
    with Store({}) as store:
        pools.write(place.catalog, "ns.gone", {1: pools.version(f"{store.url}/m.onnx", "sha256:" + "0" * 64)})
        with pools.fetcher_here(place, patience=pools.ONE_TRY):
            async with engine_of(place, 0.5) as (engine, pool):
                for service, kind, said in (
                    ("corrupt", ModelError, "what was fetched is not the model that was registered"),
                    ("large", NoRoom, "model 'ns.large@1' needs 0.6 MiB of memory and never fits"),
                    ("broken", ModelError, "is not an ONNX model"),
                    ("gone", Unavailable, "could not be fetched after 1 tries in a row"),
                    ("ensemble", Unsupported, "is an ensemble, whose steps are models that a pool lacks"),
                ):
                    asked = pool.fetcher_requests
                    for _ in range(3):
                        error = await ask(engine, pool, service, width=4)
                        assert isinstance(error, kind), service
                        assert said in str(error)
                    assert pool.fetcher_requests == asked + 2, service
                assert pool.counts.failures["corrupt"] == 1
                assert loaded(engine) == []
                assert engine._lifecycle.budget.used_bytes == 0
                assert engine.ready
                assert engine._models == {}


async def test_a_slow_store_does_not_hold_up_other_models(place: Place, tmp_path: Path) -> None:
    model = pools.artifact(tmp_path / "m")
    pools.write(place.catalog, "ns.quick", {1: pools.version(model)})
    other = pools.artifact(tmp_path / "other", 5)
    with Store({"/model.onnx": (other / "model.onnx").read_bytes()}) as store:
        store.go_on.clear()
        entry = {**pools.version(other), "origin": f"{store.url}/model.onnx"}
        for number in range(6):  # more than threads that load
            pools.write(place.catalog, f"ns.slow{number}", {1: entry})
        with pools.fetcher_here(place):
            async with engine_of(place) as (engine, pool):
                slow = [asyncio.create_task(ask(engine, pool, f"slow{number}", width=4)) for number in range(6)]
                await until(lambda: bool(store.asked), "the store is asked")
                assert output(await ask(engine, pool, "quick", width=4)).shape == (1, 3)
                assert not any(task.done() for task in slow)
                store.go_on.set()
                assert [output(await task).shape for task in slow] == [(1, 5)] * 6
                assert len(store.asked) == 1


async def test_a_small_model_counts_what_a_session_takes(place: Place, tmp_path: Path) -> None:
    pools.write(place.catalog, "ns.small", {1: pools.version(pools.artifact(tmp_path / "m"))})
    with pools.fetcher_here(place):
        async with engine_of(place) as (engine, pool):
            await ask(engine, pool, "small", width=4)
            assert engine._servables["ns.small@1", ""].memory_bytes == 128 << 10


async def test_a_version_is_prefetched_and_a_name_that_is_none_refused(place: Place, tmp_path: Path) -> None:
    pools.write(place.catalog, "ns.a", {1: pools.version(pools.artifact(tmp_path / "m"))})
    with pools.fetcher_here(place):
        async with engine_of(place) as (engine, pool):
            await pool.prefetch("ns.a@1")
            await pool.prefetch("ns.a@1")
            assert pool.counts.misses == 0, "no request has waited"
            assert loaded(engine) == ["ns.a@1"]
            for name in ("ns.a", "ns.a@2", "ns.b@1", "../a@1", "ns.a@1/x"):
                with pytest.raises(NotFound):
                    await pool.prefetch(name)


async def test_a_fetcher_that_is_killed_while_it_fetches_comes_back_and_requests_are_answered(
    place: Place, tmp_path: Path
) -> None:
    model = pools.artifact(tmp_path / "m")
    with Store({"/model.onnx": (model / "model.onnx").read_bytes()}) as store:
        store.go_on.clear()
        pools.write(place.catalog, "ns.a", {1: {**pools.version(model), "origin": f"{store.url}/model.onnx"}})
        async with engine_of(place) as (engine, pool):
            assert not pool.is_ready
            with pools.fetcher(place) as process:
                asked = [asyncio.create_task(ask(engine, pool, "a", width=4)) for _ in range(3)]
                await until(lambda: bool(store.asked), "the store is asked")
                assert pool.is_ready
                process.kill()
            with pools.fetcher_here(place):
                store.go_on.set()
                assert [output(await task).shape for task in asked] == [(1, 3)] * 3
