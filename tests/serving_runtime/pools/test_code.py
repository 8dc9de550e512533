"""Models in Python of a pool: refused without the flag, else each in its worker, which leaves with its model."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from serving_runtime.common.errors import ModelError, NoRoom, ServingError, is_of_installation
from serving_runtime.engine.lifecycle.control_mode import Control
from serving_runtime.engine.loading.settings import LoadSettings, PoolCode
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.pools.source import ModelPool
from serving_runtime.shared import privileges
from tests.serving_runtime._support import pools
from tests.serving_runtime._support.engines import until
from tests.serving_runtime._support.pools import Place

NEEDS_SANDBOX = pytest.mark.skipif(bool(privileges.sandbox_lacks()), reason=privileges.sandbox_lacks() or "-")
MIB = 1 << 20


@asynccontextmanager
async def engine_of(
    place: Place, *, allowed: bool = True, budget_bytes: int | None = None
) -> AsyncIterator[tuple[Engine, ModelPool]]:
    pool = ModelPool(place.socket, 20.0)
    control = Control(on_demand=True, on_demand_timeout_s=20.0, memory_budget_bytes=budget_bytes)
    settings = LoadSettings(trial=False, pool=PoolCode(allowed, 512 * MIB))
    engine = Engine([], settings, control, source=pool, strict_readiness=False)
    await engine.load_all()
    try:
        yield engine, pool
    finally:
        engine.close()
        pool.close()
        await asyncio.sleep(0)


@pytest.fixture
def fetching(place: Place) -> Iterator[Place]:
    with pools.fetcher_here(place):
        yield place


def unchecked(origin: Path, **config: Any) -> dict[str, Any]:
    return {**pools.version(origin, **config), "checked": False}


async def refusal(pool: ModelPool, service: str) -> ServingError:
    with pytest.raises(ServingError) as raised:
        await pool.prefetch(f"ns.{service}@1")
    return raised.value


async def test_code_is_refused_by_name_and_never_beside_other_models(fetching: Place, tmp_path: Path) -> None:
    python = pools.code(tmp_path / "python")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "model.pt").write_bytes(b"PK")
    pools.write(fetching.catalog, "ns.python", {1: pools.version(python)})
    pools.write(fetching.catalog, "ns.torch", {1: pools.version(tmp_path / "torch")})
    pools.write(fetching.catalog, "ns.named", {1: pools.version(python, default_model_filename="model")})
    async with engine_of(fetching, allowed=False) as (_, pool):
        found = await refusal(pool, "python")
        assert is_of_installation(found)
        assert "by --allow-python-models=true of its runtime; allow it, or give the service replicas" in str(found)
    async with engine_of(fetching) as (_, pool):
        assert "a pool has no sandbox of a model's own for it" in str(await refusal(pool, "torch"))
        assert "in a pool it must be model.py" in str(await refusal(pool, "named"))


async def test_native_code_reads_only_what_the_catalog_says_is_checked(fetching: Place, tmp_path: Path) -> None:
    model = pools.artifact(tmp_path / "m")
    pools.write(fetching.catalog, "ns.a", {1: unchecked(model)})
    pools.write(fetching.catalog, "ns.b", {1: pools.version(model)})
    disguised = pools.code(pools.artifact(tmp_path / "disguised"))
    pools.write(fetching.catalog, "ns.c", {1: unchecked(disguised, backend="onnxruntime")})
    async with engine_of(fetching) as (_, pool):
        for service in "ac":
            error = await refusal(pool, service)
            assert isinstance(error, ModelError)
            assert "backend 'onnxruntime' reads it by native code beside the models of others" in str(error)
            assert 'write "checked": true' in str(error)
        await pool.prefetch("ns.b@1")


@NEEDS_SANDBOX
async def test_a_worker_counts_in_the_memory_and_ends_as_its_model_leaves(fetching: Place, tmp_path: Path) -> None:
    for service in "abc":
        text = f"{pools.RUNS}\nheld = bytearray(64 << 20)  # {service}\n"
        model = pools.code(tmp_path / service, text)
        pools.write(fetching.catalog, f"ns.{service}", {1: unchecked(model)})
    async with engine_of(fetching, budget_bytes=250 * MIB) as (engine, pool):
        budget = engine._lifecycle.budget
        await pool.prefetch("ns.a@1")
        assert 64 * MIB < budget.used_bytes < 200 * MIB
        model: Any = engine._servables["ns.a@1", ""].model
        (worker,) = model._pool.workers
        for service in "bc":
            await pool.prefetch(f"ns.{service}@1")
        assert sorted(engine._models) == ["ns.b@1", "ns.c@1"]
        assert pool.counts.evictions == 1
        await until(lambda: worker._process.poll() is not None, "the worker of the model that left ends")


@NEEDS_SANDBOX
async def test_one_larger_than_all_memory_or_decoupled_is_refused(fetching: Place, tmp_path: Path) -> None:
    large = pools.code(tmp_path / "large", f"{pools.RUNS}\nheld = bytearray(200 << 20)\n")
    pools.write(fetching.catalog, "ns.large", {1: unchecked(large)})
    config = {"model_transaction_policy": {"decoupled": True}}
    pools.write(fetching.catalog, "ns.decoupled", {1: unchecked(pools.code(tmp_path / "decoupled"), **config)})
    async with engine_of(fetching, budget_bytes=150 * MIB) as (engine, pool):
        error = await refusal(pool, "large")
        assert isinstance(error, NoRoom)
        assert "never fits: all models together may take 150.0 MiB" in str(error)
        assert "decoupled, which a pool's models in Python cannot be" in str(await refusal(pool, "decoupled"))
        assert engine._models == {}
        await until(lambda: engine._lifecycle.budget.used_bytes == 0, "their memory is released")
