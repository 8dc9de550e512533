"""A model that takes more and more memory is ended by it alone: the agent and the others on the machine go on."""

import subprocess
import sys
from pathlib import Path

import pytest

from integrations.clusters.base import Failure, FailureReason, Resources
from tests.integrations._support.runtimes import ROOT, RUNTIME, Cluster, until
from tests.security._support.growing import (
    GROWING,
    STARTED,
    ask,
    failure_of,
    shown_of_sandbox,
    start_with_another,
    those_that_stay,
    with_meminfo,
    without_cgroups,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


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
        cluster.start(runtime=STARTED, flags=["--memory-limit=requests"], under=without_cgroups(), memory_s=0.2)
        stay = start_with_another(cluster)
        assert "; the memory of replicas is looked at each second, as it " in shown_of_sandbox(cluster)

        def grown() -> Failure | None:
            ask(cluster, way)
            return failure_of(cluster)

        failure = until(grown, "it is ended")
        assert (failure.reason, failure.exit_code) == (FailureReason.OUT_OF_MEMORY, 137)
        assert failure.message.startswith("it used ")
        assert failure.message.endswith(" of memory, where it may have 512 MiB, and was killed")
        assert those_that_stay(cluster) == stay
        cluster.until_ready(1)
    finally:
        cluster.close()


def test_where_the_machine_is_short_of_memory_the_largest_is_ended_and_the_others_go_on(tmp_path: Path) -> None:
    """The machine is this one, but for what it says to have left."""
    said = Path("/proc/meminfo").read_text()
    left = next(line for line in said.splitlines() if line.startswith("MemAvailable:"))
    (tmp_path / "meminfo").write_text(said.replace(left, f"MemAvailable: {200 << 10} kB"))
    cluster = Cluster(tmp_path)
    try:
        under = with_meminfo(tmp_path / "meminfo")
        cluster.start(runtime=STARTED, flags=["--memory-reserve-mib=256"], under=under, memory_s=0.2)
        stay = start_with_another(cluster)

        def grown() -> Failure | None:
            ask(cluster, 1)
            return failure_of(cluster)

        failure = until(grown, "it is ended")
        assert (failure.reason, failure.exit_code) == (FailureReason.OUT_OF_MEMORY, 137)
        short = " of memory when this machine had 200 MiB left of the 256 MiB that it keeps free, and was killed"
        assert failure.message.endswith(short)
        cluster.until_ready(1)
        assert those_that_stay(cluster) == stay
    finally:
        cluster.close()


def test_a_replica_that_overruns_what_it_requests_goes_on_unless_the_operator_limits_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=RUNTIME, memory_s=0.1)
        cluster.apply(1, cluster.revision(1, 100, resources=Resources(memory_bytes=1 << 20)))
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
from integrations.clusters.local.agent.replicas.memory_limit import MemoryPolicy
from integrations.clusters.local.agent.replicas.memory_watchdog import MemoryWatchdog, Tenant
from integrations.clusters.local.agent.replicas.process_memory import machine
from integrations.clusters.local.agent.processes import Process, Program
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.state_files import StateFiles

async def main(folder, leaves):
    holder = Holder.started()
    program = Program(
        [sys.executable, "-c", leaves + "\\ntime.sleep(120)"], dict(os.environ), folder / "log", folder / "record"
    )
    process = Process(holder, program, StateFiles(folder), restarts=0, message="")
    tenant = Tenant("one", process)
    total, _ = machine()
    policy = MemoryPolicy(reserve_bytes=total - (256 << 20))  # each may have 256 MiB
    watching = asyncio.create_task(MemoryWatchdog(policy, holder).run(lambda: [tenant], 0.1))
    async with asyncio.timeout(50):
        while not (left := holder.orphans()):
            await asyncio.sleep(0.01)
        (pid,) = left
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.05)
    assert process.running
    watching.cancel()
    await process.kill()
    holder.close()

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
