"""A model in Python that takes memory in the way that a request names, and what becomes of its replica."""

import io
import json
import os
from pathlib import Path
from typing import Any

from integrations.artifacts.archives import Member
from integrations.clusters.base import DesiredRevision, Failure, Resources
from tests.integrations._support.runtimes import RUNTIME, Cluster, until

REQUESTED = 512 << 20
STARTED = f"{RUNTIME} --allow-python-models=true"
# Takes 64 MiB more at each request, in the way that the request names; four times its limit at most. By 5 it takes all
# at once for a moment; by 6 it counts the files of cgroups that it may change; by 7 it leaves one that takes none.
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
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        kept = []
        while len(kept) < int((*sys.argv[1:], 32)[0]):
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
        if self.asked > (1 if way in (3, 7) else 32):
            pass
        elif way == 1:
            self.kept.append(bytearray(os.urandom(1 << 20)) * 64)
        elif way == 2:
            with open(f"/dev/shm/{len(os.listdir('/dev/shm'))}", "wb") as file:
                file.write(bytes(STEP))
        elif way == 3:
            subprocess.run([sys.executable, "-c", LEAVES])
        elif way == 7:
            subprocess.run([sys.executable, "-c", LEAVES, "0"])
        elif way == 4:
            shared = mmap.mmap(-1, STEP)
            shared.write(bytes(STEP))
            self.kept.append(shared)
        elif way == 5:
            bytearray(os.urandom(1 << 20)) * 768
        elif way == 6:
            way = self.changed()
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([way], np.float32))])

    def changed(self):
        seen = changed = 0
        for folder, _, names in os.walk("/sys/fs/cgroup"):
            for name in {"memory.max", "memory.limit_in_bytes", "cgroup.procs"}.intersection(names):
                seen += 1
                try:
                    open(f"{folder}/{name}", "r+").close()
                    changed += 1
                except OSError:
                    pass
        return changed if seen else -1
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


def ask(cluster: Cluster, way: int) -> tuple[int, bytes]:
    """Send one request that names a way to take memory; returns status and body."""
    asked = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [way]}]}).encode()
    status, _, body = cluster.request("/serving/default/digits/v2/models/digits/infer", "POST", asked)
    return status, body


def failure_of(cluster: Cluster) -> Failure | None:
    """Return how a replica of the model ended last; None while none has."""
    return next((each.failure for each in cluster.observe().revisions[0].replicas if each.failure), None)


def start_with_another(cluster: Cluster) -> tuple[int, int]:
    """Have the model and another one served; returns the process ids of the agent and of the other."""
    cluster.apply_to("other", 1, cluster.revision(2, 100))
    cluster.apply(1, growing(cluster))
    cluster.until_ready(1)
    cluster.until_known("other")
    until(lambda: cluster.request("/serving/default/other/v2/health/ready")[0] == 200, "the other serves")
    return those_that_stay(cluster)


def shown_of_sandbox(cluster: Cluster) -> str:
    """Return what the platform shows of the sandbox."""
    (shown,) = [each.message for each in cluster.driver.inventory().components if each.name == "sandbox"]
    return shown


def those_that_stay(cluster: Cluster) -> tuple[int, int]:
    """Return the process ids of the agent and of the other model's replica."""
    return cluster.status()["pid"], cluster.pid("default.other-00001-0")


def without_cgroups() -> list[str]:
    """Return the command under which a program finds no cgroups."""
    return _with_mount("-t tmpfs none /sys/fs/cgroup")


def with_meminfo(file: Path) -> list[str]:
    """Return the command under which a program sees a file in the place of /proc/meminfo."""
    return _with_mount(f"--bind {file} /proc/meminfo")


def _with_mount(mount: str) -> list[str]:
    root = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *root, "--mount", "sh", "-c", f'mount {mount} && exec "$@"', "sh"]
