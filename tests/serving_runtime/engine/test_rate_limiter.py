"""Models whose instances need resources, loaded and served."""

from pathlib import Path

import pytest

from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.scheduler.rate_limiter import RateLimiter
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import infer, output

pytestmark = pytest.mark.feature("C6")

NEEDS = 'max_batch_size: 4 instance_group { count: 2 rate_limiter { resources { name: "r" count: 3 } priority: 2 } }'


async def test_runs_wait_in_threads_where_the_server_limits_them(tmp_path: Path) -> None:
    onnx_models.mlp(onnx_models.configure(tmp_path / "m", NEEDS) / "1" / "model.onnx", (4, 3))
    for limiter in (RateLimiter({}), None):
        engine = Engine([tmp_path], LoadSettings(), rate_limiter=limiter)
        assert await engine.load_all() == []
        assert engine.servable("m").scheduler.inline is (limiter is None)
        assert output(await infer(engine, "m")).shape == (1, 3)
        engine.close()


async def test_a_model_that_needs_more_than_there_is_does_not_load(tmp_path: Path) -> None:
    onnx_models.mlp(onnx_models.configure(tmp_path / "m", NEEDS) / "1" / "model.onnx", (4, 3))
    engine = Engine([tmp_path], LoadSettings(), rate_limiter=RateLimiter({"r": 2}))
    (error,) = await engine.load_all()
    assert "an instance needs 3 of resource 'r', but --rate-limit-resource gives 2" in str(error)
    assert not engine.ready
    engine.close()
