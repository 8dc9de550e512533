"""Decoupled models in Python, asked by Triton's own client over ModelStreamInfer."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.serving_runtime._support.processes import ServerProcess
from tests.serving_runtime.backends.python.python_repository import repository, serving, until

CLIENT = """
import os, queue, sys, traceback
import numpy as np
import tritonclient.grpc as v2
port = int(sys.argv[1])
answers = queue.SimpleQueue()
client = v2.InferenceServerClient(f"127.0.0.1:{port}")
client.start_stream(lambda result, error: answers.put(error or result))

def ask(n):
    tensor = v2.InferInput("n", [1], "INT32")
    tensor.set_data_from_numpy(np.array([n], np.int32))
    client.async_stream_infer("countdown", [tensor], request_id=str(n), enable_empty_final_response=True)

def responses(count):
    seen = {}
    while count:
        answer = answers.get(timeout=60)
        if isinstance(answer, Exception):
            seen.setdefault("error", []).append(answer.message())
            count -= 1
            continue
        response = answer.get_response()
        left = answer.as_numpy("left")
        if left is not None:
            assert response.parameters["left"].int64_param == left[0], response
            seen.setdefault(response.id, []).append(int(left[0]))
        count -= response.parameters["triton_final_response"].bool_param
    return seen

try:
    exec(sys.argv[2])
except BaseException:
    traceback.print_exc()
    os._exit(1)
os._exit(0)  # a client whose stream is open does not end otherwise
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, scratch: Path) -> Iterator[ServerProcess]:
    with serving(repository(tmp_path_factory.mktemp("models"), "countdown"), scratch) as process:
        yield process


def run(served: ServerProcess, code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(served.grpc), code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_config_pbtxt_leaves_out_the_model_completes(served: ServerProcess) -> None:
    config = httpx.get(f"{served.url}/v2/models/countdown/config", timeout=60).json()
    assert config["model_transaction_policy"] == {"decoupled": True}
    assert [tensor["name"] for tensor in (*config["input"], *config["output"])] == ["n", "left"]


def test_a_request_is_answered_as_often_as_the_model_likes_with_its_parameters(served: ServerProcess) -> None:
    run(served, "ask(5); assert responses(1) == {'5': [4, 3, 2, 1, 0]}, 'not in order'")


def test_one_process_answers_many_requests_at_a_time(served: ServerProcess) -> None:
    run(served, "[ask(n) for n in range(2, 40)]; seen = responses(38); assert seen['39'] == list(range(38, -1, -1))")


def test_a_request_begins_while_another_goes_on(served: ServerProcess) -> None:
    code = """
ask(-1)
assert answers.get(timeout=60).as_numpy("left")[0] == 0
ask(3)
seen = []
while len(seen) < 3:
    answer = answers.get(timeout=60)
    if answer.get_response().id == "3" and answer.as_numpy("left") is not None:
        seen.append(int(answer.as_numpy("left")[0]))
assert seen == [2, 1, 0], seen
"""
    run(served, code)


def test_an_error_ends_the_responses_with_its_words(served: ServerProcess) -> None:
    run(served, "ask(-2); seen = responses(1); assert seen == {'-2': [1, 0], 'error': ['no further']}, seen")


def test_a_sender_that_goes_without_a_word_ends_the_responses(served: ServerProcess) -> None:
    run(served, "ask(-3); assert responses(1) == {}")


def test_a_client_that_goes_is_told_to_the_model(served: ServerProcess, scratch: Path) -> None:
    said = (scratch / "log").read_text().count("told to stop")
    run(served, "ask(-1); answers.get(timeout=60); client.stop_stream(cancel_requests=True)")
    until(lambda: (scratch / "log").read_text().count("told to stop") > said)
    until(lambda: served.metric("fairlead_inflight_requests") == 0)
