"""Sandboxed workers: any answers, and what ends them. What they reach is in tests/security."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime import proto
from serving_runtime.backends.python import sandboxed, watch
from serving_runtime.backends.python.backend import PythonBackend
from serving_runtime.backends.python.wire import untrusted
from serving_runtime.backends.python.wire.untrusted import MalformedMessageError
from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.config.model import BackendOptions
from serving_runtime.shared import privileges

NEEDS_SANDBOX = pytest.mark.skipif(bool(privileges.sandbox_lacks()), reason=privileges.sandbox_lacks() or "-")
MIB = 1 << 20
DOES = """
import os, sys, time
import numpy as np
from fairlead_python import BYTES, FP32, INT32
from typing import NamedTuple


class Given(NamedTuple):
    numbers: FP32[-1]
    texts: BYTES[2]


def predict(do: BYTES[1], numbers: FP32[-1]) -> Given:
    match do.reshape(-1)[0]:
        case b"crash":
            os._exit(3)
        case b"wait":
            time.sleep(60)
        case b"fail":
            raise ValueError("x" * 100_000)
        case b"call":
            import triton_python_backend_utils as pb_utils
            pb_utils.MetricFamily("own", "of a model", "counter").Metric({})
    return Given(numbers * 2, np.array([b"a", b"\\xff" * 3], object))
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "m" / "1" / "model.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def opened(folder: Path, text: str, **config: Any) -> Any:
    message = proto.ModelConfig(name="m", backend="python", **config)
    return PythonBackend({}).load(write(folder, text), BackendOptions({}, config=message, sandboxed_bytes=256 * MIB))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    found = opened(tmp_path_factory.mktemp("model"), DOES)
    yield found
    found.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Any]:
    """A model of one test, since one that ends again within a minute waits before it is started."""
    found = opened(tmp_path, DOES)
    yield found
    found.close()


def ask(model: Any, do: str, numbers: Any = (1.0,)) -> Any:
    return model.run([np.array([do.encode()], object), np.array(numbers, np.float32)])


def words(cmdline: Path) -> list[str]:
    try:
        return cmdline.read_text().split("\0")
    except OSError:  # it has ended
        return []


@NEEDS_SANDBOX
def test_numbers_and_texts_of_any_size_are_answered(model: Any) -> None:
    for count in (0, 1, 1000, 4_000_000):
        numbers, texts = ask(model, "", np.arange(count))
        assert numbers.shape == (count,)
        assert not count or numbers[-1] == 2 * (count - 1)
        assert texts.tolist() == [b"a", b"\xff\xff\xff"]


@NEEDS_SANDBOX
def test_errors_are_shortened_and_own_metrics_refused(model: Any) -> None:
    with pytest.raises(ServingError) as raised:
        ask(model, "fail")
    assert len(str(raised.value)) < 5000
    with pytest.raises(ServingError, match="models of a pool neither call other models nor have metrics of their own"):
        ask(model, "call")


@NEEDS_SANDBOX
def test_answers_larger_than_a_message_end_the_worker_which_is_started_again(own: Any) -> None:
    with pytest.raises(ServingError, match=r"was ended, since it sent a message of 7\d{7} bytes"):
        ask(own, "", np.zeros(17 * MIB))
    assert ask(own, "")[0].tolist() == [2]


@NEEDS_SANDBOX
def test_a_crash_fails_the_request_and_the_next_one_is_answered(own: Any) -> None:
    with pytest.raises(ServingError, match="its worker process ended with exit code 3; it is started again"):
        ask(own, "crash")
    assert ask(own, "")[0].tolist() == [2]


@NEEDS_SANDBOX
def test_a_request_that_takes_too_long_ends_the_worker(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LONGEST_RUN_S", 0.5)
    with pytest.raises(ServingError, match=r"was ended, since it took longer than 0.5 s for a request"):
        ask(own, "wait")


@NEEDS_SANDBOX
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import time\ntime.sleep(60)", r"its worker process did not end complete\(\) within 2 s"),
        ("import os\nos._exit(5)", r"its worker process ended with exit code 5 in complete\(\)"),
        ("held = bytearray(2 << 30)", "MemoryError"),
        ("x = 1", "has neither a class"),
    ],
    ids=["never loads", "ends", "takes too much memory", "has no model"],
)
def test_one_that_does_not_load_is_an_error_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    if "within 2 s" in said:
        monkeypatch.setattr(sandboxed, "START_S", 2.0)
    file = tmp_path / "m" / "1" / "model.py"
    with pytest.raises(ModelError, match=said):
        opened(tmp_path, text)
    assert str(file) not in [word for line in Path("/proc").glob("[0-9]*/cmdline") for word in words(line)]


@NEEDS_SANDBOX
def test_one_that_hangs_as_it_starts_again_keeps_no_unload_waiting(tmp_path: Path) -> None:
    text = "import os, time\nif os.path.exists(__file__ + '.hang'): time.sleep(60)\n" + DOES
    found = opened(tmp_path, text)
    (tmp_path / "m" / "1" / "model.py.hang").touch()
    with pytest.raises(ServingError):
        ask(found, "crash")
    began = time.monotonic()
    found.close()
    assert time.monotonic() - began < 20


def test_more_instances_than_eight_are_refused(tmp_path: Path) -> None:
    if privileges.sandbox_lacks():
        pytest.skip(privileges.sandbox_lacks())
    with pytest.raises(ModelError, match="instance_group has 9 instances"):
        opened(tmp_path, DOES, instance_group=[{"count": 9}])


def test_the_environment_has_nothing_of_the_server() -> None:
    found = sandboxed.environment({"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "PYTHONPATH": "/y", "HOME": "/root"})
    assert "AWS_SECRET_ACCESS_KEY" not in found
    assert (found["PATH"], found["HOME"]) == ("/bin", "/")
    assert "/y" not in found.get("PYTHONPATH", "")


PAYLOAD = np.frombuffer(bytes(range(64)), np.uint8)


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param({}, id="no list"),
        pytest.param([["x", "FP32", [1], 4]], id="no place"),
        pytest.param([["x", "FP32", [1], 4, 0]], id="a place in shared memory"),
        pytest.param([[1, "FP32", [1], 4, -1]], id="a name that is none"),
        pytest.param([["x", "FP31", [1], 4, -1]], id="an unknown datatype"),
        pytest.param([["x", "FP32", [-1], 4, -1]], id="a negative dimension"),
        pytest.param([["x", "FP32", [True], 4, -1]], id="a dimension that is no number"),
        pytest.param([["x", "FP32", [1] * 33, 4, -1]], id="too many dimensions"),
        pytest.param([["x", "FP32", [2], 4, -1]], id="a shape that is larger"),
        pytest.param([["x", "FP32", [2**62, 2**62], 4, -1]], id="a shape beyond all memory"),
        pytest.param([["x", "FP32", [1], -4, -1]], id="a negative size"),
        pytest.param([["x", "FP32", [17], 68, -1]], id="a size beyond the message"),
        pytest.param([["x", "UINT8", [40], 40, -1]] * 2, id="two that are longer together"),
        pytest.param([["x", "BYTES", [2**40], 8, -1]], id="more texts than bytes"),
        pytest.param([["x", "BYTES", [1], 8, -1]], id="a text that is longer"),
    ],
)
def test_tensors_of_another_form_are_refused(entries: Any) -> None:
    with pytest.raises(MalformedMessageError):
        untrusted.tensors_in(entries, PAYLOAD)


RESPONSE = {"number": 1, "final": True}


@pytest.mark.parametrize(
    "message",
    [
        pytest.param([], id="a list"),
        pytest.param({}, id="no kind"),
        pytest.param({"do": "execute"}, id="a kind of the server's"),
        pytest.param({"do": "responses"}, id="no responses"),
        pytest.param({"do": "responses", "responses": [1]}, id="a response that is none"),
        pytest.param({"do": "responses", "responses": [{**RESPONSE, "number": "1"}]}, id="a number that is none"),
        pytest.param({"do": "responses", "responses": [{**RESPONSE, "final": False}]}, id="one that is not the last"),
        pytest.param({"do": "responses", "responses": [{**RESPONSE, "outputs": 1}]}, id="outputs that are not there"),
        pytest.param({"do": "responses", "responses": [{**RESPONSE, "outputs": -1}]}, id="fewer than no outputs"),
        pytest.param({"do": "responses", "responses": [{**RESPONSE, "error": "x"}]}, id="an error without a message"),
        pytest.param(
            {"do": "responses", "responses": [{**RESPONSE, "error": {"message": "x", "code": []}}]}, id="no code"
        ),
        pytest.param({"do": "responses", "responses": [{**RESPONSE, "parameters": {"a": [1]}}]}, id="a parameter"),
        pytest.param({"do": "responses", "responses": [{**RESPONSE, "parameters": {"a": 2**70}}]}, id="a large number"),
        pytest.param({"do": "log", "text": 1, "level": "info"}, id="a text that is none"),
        pytest.param({"do": "log", "text": "x", "level": "loud"}, id="an unknown level"),
        pytest.param({"do": "failed"}, id="a failure without a message"),
        pytest.param({"do": "done", "config": []}, id="a config that is none"),
        pytest.param({"do": "infer", "call": "x"}, id="a call without a number"),
    ],
)
def test_messages_of_another_form_are_refused(message: Any) -> None:
    with pytest.raises(MalformedMessageError):
        untrusted.check(json.loads(json.dumps(message)), ())
