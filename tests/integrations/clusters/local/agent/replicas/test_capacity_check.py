import pytest

from integrations.clusters.base import Resources
from integrations.clusters.local.agent.replicas.capacity_check import lack, machine

HAS = Resources(cpu_cores=2.0, memory_bytes=8 << 30)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(Resources(), "", id="nothing asked for"),
        pytest.param(Resources(2.0, 8 << 30), "", id="all of the machine"),
        pytest.param(Resources(2.5, 1), "2.5 CPU cores where this machine has 2", id="too many cores"),
        pytest.param(Resources(0.1, 9 << 30), "9.0 GiB of memory where this machine has 8.0 GiB", id="too much memory"),
        pytest.param(Resources(accelerator="nvidia.com/gpu"), "this machine does not offer", id="a GPU"),
    ],
)
def test_lack(asked, said):
    assert lack(asked, HAS).endswith(said)
    assert bool(lack(asked, HAS)) == bool(said)


def test_this_machine_has_something():
    assert lack(Resources(0.001, 1 << 20), machine()) == ""
