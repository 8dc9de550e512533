"""A model that takes more and more memory is ended by it alone: the agent and the others on the machine go on."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from integrations.artifact_archives import Member
from integrations.clusters.base import DesiredRevision, FailureReason, Resources
from tests.integrations._support.runtimes import ROOT, RUNTIME, Cluster, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

_MIB = 1 << 20
REQUESTED = 512 * _MIB
# Takes 64 MiB more at each request, in the way that the request names; four times its limit at most.
GROWING = """
import mmap
import os
import subprocess
import sys
import time

import numpy as np
import triton_python_backend_utils as pb_utils

STEP = 64 << 20
LEAVES = '''
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        kept = []
        while len(kept) < 32:
            kept.append(bytearray(os.urandom(1 << 20)) * 64)
            time.sleep(0.05)
        time.sleep(120)
    os._exit(0)
os.wait()
'''

class TritonPythonModel:
    def initialize(self, args):
        self.kept = []
        self.asked = 0

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        way = int(pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0])
        self.asked += 1
        if self.asked > (1 if way == 3 else 32):
            pass
        elif way == 1:
            self.kept.append(bytearray(os.urandom(1 << 20)) * 64)
        elif way == 2:
            with open(f"/dev/shm/{len(os.listdir('/dev/shm'))}", "wb") as file:
                file.write(bytes(STEP))
        elif way == 3:
            subprocess.run([sys.executable, "-c", LEAVES])
        elif way == 4:
            shared = mmap.mmap(-1, STEP)
            shared.write(bytes(STEP))
            self.kept.append(shared)
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([way], np.float32))])
"""
CONFIG: dict[str, Any] = {
    "backend": "python",
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [1]}],
}


def growing(cluster: Cluster) -> DesiredRevision:
    stored = cluster.artifacts.put_folder([Member("1/model.py", io.BytesIO(GROWING.encode()))], owner="test")
    return DesiredRevision(
        *("digits-00001", "digits", "1", stored.uri, stored.digest, 1, 100),
        model_config=CONFIG,
        resources=Resources(memory_bytes=REQUESTED),
        is_code=True,
    )


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(1, id="its own memory"),
        pytest.param(2, id="files in /dev/shm"),
        pytest.param(3, id="a process that it leaves in a session of its own"),
        pytest.param(4, id="shared memory without a name"),
    ],
)
def test_a_model_that_grows_at_each_request_is_ended_and_the_others_go_on(tmp_path: Path, way: int) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=f"{RUNTIME} --allow-python-models=true", flags=["--memory-limit=requests"], memory_s=0.2)
        cluster.apply_to("other", 1, cluster.revision(2, 100))
        cluster.apply(1, growing(cluster))
        cluster.until_ready(1)
        cluster.until_known("other")
        until(lambda: cluster.request("/serving/default/other/v2/health/ready")[0] == 200, "the other serves")
        agent, other = cluster.status()["pid"], cluster.pid("default.other-00001-0")
        asked = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [way]}]}).encode()

        def grown() -> Any:
            cluster.request("/serving/default/digits/v2/models/digits/infer", "POST", asked)
            return next((each.failure for each in cluster.observe().revisions[0].replicas if each.failure), None)

        failure = until(grown, "it is ended")
        assert (failure.reason, failure.exit_code) == (FailureReason.OUT_OF_MEMORY, 137)
        assert failure.message.startswith("it used ")
        assert failure.message.endswith(" of memory, where it may have 512 MiB, and was killed")
        assert (cluster.status()["pid"], cluster.pid("default.other-00001-0")) == (agent, other)
        cluster.until_ready(1)
    finally:
        cluster.close()


def test_a_replica_that_overruns_what_it_requests_goes_on_unless_the_operator_limits_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=RUNTIME, memory_s=0.1)
        cluster.apply(1, cluster.revision(1, 100, resources=Resources(memory_bytes=_MIB)))
        cluster.until_ready(1)
        (replica,) = cluster.observe().revisions[0].replicas
        until(lambda: cluster.request("/serving/default/digits/v2/health/ready")[0] == 200, "it is routed")
        seen = cluster.observe().revisions[0].replicas
        assert [(each.restarts, each.failure) for each in seen] == [(replica.restarts, None)]
    finally:
        cluster.close()


# Without a sandbox nothing says whose a process is that was left running.
WITHOUT_NAMESPACES = """
import asyncio, os, sys
from pathlib import Path
from integrations.clusters.local.agent.memory_limit import MemoryPolicy
from integrations.clusters.local.agent.memory_watchdog import MemoryWatchdog, Tenant
from integrations.clusters.local.agent.process_memory import machine
from integrations.clusters.local.agent.processes import Process, Program, adopt_orphans, orphans

async def main(folder, leaves):
    adopt_orphans()
    program = Program(
        [sys.executable, "-c", leaves + "\\ntime.sleep(120)"], dict(os.environ), folder / "log", folder / "record"
    )
    process = Process(program, restarts=0, message="")
    tenant = Tenant("one", process)
    total, _ = machine()
    policy = MemoryPolicy(reserve_bytes=total - (256 << 20))  # each may have 256 MiB
    watching = asyncio.create_task(MemoryWatchdog(policy).run(lambda: [tenant], 0.1))
    async with asyncio.timeout(50):
        while not (left := orphans()):
            await asyncio.sleep(0.01)
        (pid,) = left
        while Path(f"/proc/{pid}/status").read_text().split("State:")[1].split()[0] != "Z":
            await asyncio.sleep(0.05)
    assert process.running
    watching.cancel()
    await process.kill()

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def test_without_namespaces_what_a_model_left_running_has_a_limit_for_itself(tmp_path: Path) -> None:
    leaves = GROWING.split("'''")[1]
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES, str(tmp_path), leaves],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT / "platform",
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert "which a replica left running, used " in ended.stderr
