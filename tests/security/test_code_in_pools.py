"""Attacks by models in Python of a pool: on other models, on the server's process, its files, network and fetcher.

Each runs in a sandboxed worker of a real runtime; afterwards the other models are answered.
"""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from serving_runtime.shared import privileges
from tests.security._support import attempts
from tests.serving_runtime._support import pools
from tests.serving_runtime._support.pools import Place, run
from tests.serving_runtime._support.processes import ServerProcess

pytestmark = pytest.mark.skipif(bool(privileges.sandbox_lacks()), reason=privileges.sandbox_lacks() or "-")

SECRET = "secret-of-the-server"
SOCKET = "from serving_runtime.backends.python.worker.connection import current\ns = current()._channel._socket\n"
FRAME = "import json, struct\ndef frame(text, payload=b'', more=0):\n"
FRAME += "    return struct.pack('<II', len(text), len(payload) + more) + text + payload\n"
ANSWER = """n = min(current()._open)
head = {'do': 'responses', 'responses': [{'number': n, 'final': True, 'outputs': 1}],
        'tensors': [['output', 'FP32', [1000], 4000, -1]]}
s.sendall(frame(json.dumps(head).encode(), bytes(64)))
"""
MALFORMED = {
    "giant": ("import struct\ns.sendall(struct.pack('<II', 2**32 - 1, 2**32 - 1))", "it sent a message of 858"),
    "garbage": (f"{FRAME}s.sendall(frame(b'garbage'))", "it sent a message that is no JSON"),
    "unasked": (f"{FRAME}s.sendall(frame(json.dumps({{'do': 'done'}}).encode()))", "it sent an answer to no question"),
    "overlong": (f"{FRAME}{ANSWER}", "it sent a tensor that is longer than its message"),
}
CRASH = "import ctypes; ctypes.string_at(0)"
NEVER = "import time\nwhile True: time.sleep(1)\n"
STAYING = f"""{pools.RUNS.replace("def predict", "def answer")}

class Model:
    def predict(self, code: BYTES[1]) -> BYTES[1]:
        return answer(code)

    def close(self):
        import time

        while True:
            time.sleep(1)
"""


@dataclass(frozen=True)
class Pool:
    """A running pool whose models ns.<name> run what requests say."""

    place: Place
    runtime: ServerProcess

    def folder(self, service: str) -> Path:
        """Return the folder of a loaded model's version, as the runtime has it."""
        (found,) = self.place.cache.glob(f"models/*/*/{service}/1")
        return found


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    folder = tmp_path_factory.mktemp("pool")
    place = Place.below(folder)
    runs = pools.version(pools.code(folder / "runs"))
    for service in ("curious", "crashing", "threads", "flood", "orphan", *MALFORMED):
        pools.write(place.catalog, f"ns.{service}", {1: runs})
    other = pools.code(folder / "other", pools.RUNS + "SECRET = 'of another model'\n")
    pools.write(place.catalog, "ns.other", {1: pools.version(other)})
    pools.write(place.catalog, "ns.plain", {1: pools.version(pools.artifact(folder / "plain"))})
    staying = pools.code(folder / "staying", STAYING)
    pools.write(place.catalog, "ns.staying", {1: pools.version(staying)})
    for number in range(3):
        never = pools.code(folder / f"never{number}", NEVER + "#" * number)
        pools.write(place.catalog, f"hostile.never{number}", {1: pools.version(never)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        with pools.fetcher(place), pools.runtime(place, folder, "--allow-python-models") as runtime:
            yield Pool(place, runtime)
    pools.remove(place)


def others_answer(pool: Pool) -> None:
    assert run(pool.runtime, "other", "found = 1") == "1"
    asked = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    answer = httpx.post(f"{pool.runtime.url}/serving/ns/plain/v2/models/plain/infer", json=asked, timeout=60)
    assert answer.status_code == 200, answer.text


def test_it_reaches_neither_other_models_nor_the_server_nor_the_network(pool: Pool) -> None:
    others_answer(pool)
    assert run(pool.runtime, "curious", "found = 1") == "1"
    around = {
        "other": str(pool.folder("other") / "model.py"),
        "own": str(pool.folder("curious") / "made"),
        "cache": str(pool.place.cache),
        "catalog": str(pool.place.catalog),
        "socket": str(pool.place.socket),
        "server": pool.runtime.process.pid,
        "port": pool.runtime.http,
        "secret": SECRET,
    }
    found = json.loads(run(pool.runtime, "curious", attempts.text(around)))
    assert len(found) == len(attempts.ATTEMPTS)
    assert {name: error for name, error in found.items() if not error} == {}
    assert run(pool.runtime, "curious", f"found = len(open({str(pool.folder('curious') / 'model.py')!r}).read())") != ""
    others_answer(pool)


@pytest.mark.parametrize("kind", list(MALFORMED))
def test_what_is_no_answer_ends_its_own_worker_alone(pool: Pool, kind: str) -> None:
    text, said = MALFORMED[kind]
    answer = run(pool.runtime, kind, f"{SOCKET}{text}\nimport time; time.sleep(30)")
    assert "its worker process was ended, since it sent" in answer
    assert said in answer
    others_answer(pool)
    assert run(pool.runtime, kind, "found = 2") == "2"  # it is started again


def test_a_crash_fails_its_own_requests_alone(pool: Pool) -> None:
    assert "its worker process was ended by SIGSEGV; it is started again" in run(pool.runtime, "crashing", CRASH)
    others_answer(pool)
    assert run(pool.runtime, "crashing", "found = 2") == "2"


def test_threads_without_end_end_with_their_worker(pool: Pool) -> None:
    text = "import threading, time\nthreading.stack_size(65536)\nwhile True:\n"
    text += (
        "    try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n    except RuntimeError: pass"
    )
    assert "its worker process was ended, since it had more than 128 threads" in run(pool.runtime, "threads", text)
    others_answer(pool)


def test_log_lines_without_end_are_slowed_down_and_others_answered(pool: Pool) -> None:
    text = "import os, time\nat = time.monotonic()\nsent = 0\nwhile time.monotonic() - at < 2:\n"
    assert (
        run(pool.runtime, "flood", f"{text}    sent += os.write(1, b'x' * 1000 + b'\\n')\nfound = sent < 1 << 20")
        == "True"
    )
    others_answer(pool)


def test_one_that_stays_at_unload_is_killed(pool: Pool) -> None:
    pid = int(run(pool.runtime, "staying", "import os; found = os.getpid()"))
    pools.write(pool.place.catalog, "ns.staying", {2: pools.version(pool.folder("other"))})
    pools.wait_until(lambda: run(pool.runtime, "staying", "found = 1") and not Path(f"/proc/{pid}").exists(), "its end")
    others_answer(pool)


def test_models_that_never_load_keep_others_from_nothing_and_end_with_a_killed_server(pool: Pool) -> None:
    for number in range(3):  # 4 threads load models in Python, 2 of them those of one namespace
        with pytest.raises(httpx.TimeoutException):
            httpx.get(f"{pool.runtime.url}/serving/hostile/never{number}/v2/models/never{number}", timeout=0.3)
    pid = int(run(pool.runtime, "orphan", "import os; found = os.getpid()"))
    others_answer(pool)
    os.kill(pool.runtime.process.pid, signal.SIGKILL)
    pools.wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the worker ends with its server")
