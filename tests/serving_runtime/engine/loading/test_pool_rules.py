"""What a pool changes in the ModelConfig of its models."""

import pytest

from serving_runtime import proto
from serving_runtime.engine.loading.pool_rules import save_memory


@pytest.mark.parametrize(
    ("backend", "written", "kept"), [("onnxruntime", None, "0"), ("onnxruntime", "1", "1"), ("openvino", None, None)]
)
def test_models_keep_nothing_of_their_runs_unless_they_say_so(
    backend: str, written: str | None, kept: str | None
) -> None:
    config = proto.ModelConfig(backend=backend)
    if written is not None:
        config.parameters["enable_mem_arena"].string_value = written
    save_memory(config)
    assert {name: each.string_value for name, each in config.parameters.items()} == (
        {} if kept is None else {"enable_mem_arena": kept}
    )
