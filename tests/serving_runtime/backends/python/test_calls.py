"""Models that ask other models of the server (Triton: business logic scripting)."""

from collections.abc import Iterator

import httpx
import pytest

from tests.serving_runtime._support.processes import ServerProcess
from tests.serving_runtime.backends.python.python_repository import output, repository, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = repository(tmp_path_factory.mktemp("models"), "add_sub", "asking", "countdown")
    with serving(root, tmp_path_factory.mktemp("scratch")) as process:
        yield process


@pytest.mark.parametrize(
    ("how", "said"),
    [
        pytest.param("one", 6.0, id="exec"),
        pytest.param("large", 3_249_488.0, id="tensors in shared memory"),
        pytest.param("several", [float(n + sum(range(n))) for n in range(1, 11)], id="async_exec, ten at a time"),
        pytest.param("stream", [[2], [1], [0]], id="a decoupled model"),
        pytest.param("later", [[2], [1], [0]], id="a decoupled model, asynchronously"),
        pytest.param("nobody", ["NOT_FOUND", "unknown model 'nobody' is not found"], id="a model that is not there"),
        pytest.param("ready", [True, False], id="is_model_ready"),
    ],
)
def test_a_model_asks_others(served: ServerProcess, how: str, said: object) -> None:
    body = {"inputs": [{"name": "how", "datatype": "BYTES", "shape": [1], "data": [how]}]}
    answer = httpx.post(f"{served.url}/v2/models/asking/infer", json=body, timeout=60)
    assert (
        eval(output(answer, "said")[0]) == pytest.approx(said)
        if how == "large"
        else eval(output(answer, "said")[0]) == said
    )


def test_a_decoupled_model_asked_for_one_answer_is_refused(served: ServerProcess) -> None:
    body = {"inputs": [{"name": "how", "datatype": "BYTES", "shape": [1], "data": ["refused"]}]}
    answer = httpx.post(f"{served.url}/v2/models/asking/infer", json=body, timeout=60)
    code, message = eval(output(answer, "said")[0])
    assert code == "UNSUPPORTED"
    assert "decoupled" in message


def test_calls_are_counted_with_the_models_that_answer_them(served: ServerProcess) -> None:
    def count(model: str) -> int:
        statistics = httpx.get(f"{served.url}/v2/models/{model}/stats", timeout=60).json()
        return int(statistics["model_stats"][0]["inference_stats"]["success"]["count"])

    before = count("add_sub")
    body = {"inputs": [{"name": "how", "datatype": "BYTES", "shape": [1], "data": ["several"]}]}
    output(httpx.post(f"{served.url}/v2/models/asking/infer", json=body, timeout=60), "said")
    assert count("add_sub") == before + 10
    assert served.metric("fairlead_inflight_requests") == 0
