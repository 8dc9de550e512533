import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import Unavailable
from integrations.clusters.local.agent.replicas.memory_limit import killed_by_kernel
from integrations.sandbox.command import command
from integrations.sandbox.memory_cgroup import (
    MemoryGroups,
    Place,
    Usage,
    own_place,
    place_of,
    settings_of,
    unescaped,
    usage_of,
)

MIB = 1 << 20
V1 = "35 31 0:32 {root} {at} rw,relatime shared:9 - cgroup cgroup rw,memory\n"
V2 = "41 31 0:38 {root} {at} rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
OTHERS = """23 1 0:21 / / rw,relatime - overlay overlay rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
"""
AT = "/sys/fs/cgroup"


@pytest.mark.parametrize(
    ("cgroups", "mounts", "place"),
    [
        pytest.param(
            "4:memory:/a\n3:cpuset:/b\n0::/c\n", V1.format(root="/", at=f"{AT}/memory"), Place(1, Path(AT, "memory/a"))
        ),
        pytest.param("0::/user.slice/x\n", V2.format(root="/", at=AT), Place(2, Path(AT, "user.slice/x"))),
        pytest.param("0::/\n", V2.format(root="/", at=AT), Place(2, Path(AT))),
        pytest.param(
            "4:memory:/docker/1/a\n", V1.format(root="/docker/1", at=f"{AT}/memory"), Place(1, Path(AT, "memory/a"))
        ),
        pytest.param("0::/x\n", V2.format(root="/", at="/a\\040group"), Place(2, Path("/a group/x"))),
        pytest.param("4:memory:/a\n", V1.format(root="/docker/1", at=f"{AT}/memory"), None),
        pytest.param("4:memory:/a\n0::/\n", V2.format(root="/", at=AT), None),
        pytest.param("3:cpuset:/b\n", V2.format(root="/", at=AT), None),
        pytest.param("0::/x\n", "", None),
    ],
    ids=["version 1", "version 2", "root", "subtree", "space", "not shown", "other hierarchy", "neither", "no mount"],
)
def test_the_own_group_is_found(cgroups: str, mounts: str, place: Place | None) -> None:
    assert place_of(cgroups, OTHERS + mounts) == place


def test_a_path_of_mounts_is_read_as_it_is() -> None:
    assert unescaped("/a\\040b\\134c") == "/a b\\c"


def test_a_group_is_limited_and_does_not_swap() -> None:
    assert settings_of(2, 7) == {"memory.max": 7, "memory.swap.max": 0, "memory.oom.group": 1}
    assert settings_of(1, 7) == {"memory.limit_in_bytes": 7, "memory.memsw.limit_in_bytes": 7}


EVENTS = "low 0\nhigh 0\nmax 31\noom {oom}\noom_kill {kills}\noom_group_kill 1"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill {kills}"


@pytest.mark.parametrize(
    ("version", "files", "usage"),
    [
        pytest.param(
            2,
            {"memory.events": EVENTS.format(oom=1, kills=3), "memory.peak": str(63 * MIB)},
            Usage(63 * MIB, 64 * MIB, 3, at_limit=True),
        ),
        pytest.param(2, {"memory.events": EVENTS.format(oom=1, kills=3)}, Usage(64 * MIB, 64 * MIB, 3, at_limit=True)),
        pytest.param(
            2,
            {"memory.events": EVENTS.format(oom=0, kills=1), "memory.peak": str(MIB)},
            Usage(MIB, 64 * MIB, 1, at_limit=False),
        ),
        pytest.param(
            1,
            {"memory.oom_control": CONTROL.format(kills=1), "memory.max_usage_in_bytes": str(64 * MIB)},
            Usage(64 * MIB, 64 * MIB, 1, at_limit=True),
        ),
        pytest.param(
            1,
            {"memory.oom_control": CONTROL.format(kills=1), "memory.max_usage_in_bytes": str(9 * MIB)},
            Usage(9 * MIB, 64 * MIB, 1, at_limit=False),
        ),
    ],
    ids=["version 2", "version 2 before 5.19", "version 2, machine", "version 1", "version 1, machine"],
)
def test_what_the_kernel_counts(version: int, files: dict[str, str], usage: Usage) -> None:
    assert usage_of(version, files, 64 * MIB) == usage


def test_why_the_kernel_ended_a_replica() -> None:
    assert killed_by_kernel(None) == killed_by_kernel(Usage(64 * MIB, 64 * MIB, 0, at_limit=True)) == ""
    own = "used 64 MiB of memory, where it may have 64 MiB, asked for more, and was killed"
    assert killed_by_kernel(Usage(64 * MIB, 64 * MIB, 1, at_limit=True)) == own
    others = "used 9 MiB of memory when this machine, or the container that the platform runs in, had no more"
    assert killed_by_kernel(Usage(9 * MIB, 64 * MIB, 1, at_limit=False)) == f"{others}, and was killed"


def tree(folder: Path, *, controllers: str = "", enabled: str = "", processes: str = "") -> Path:
    """Make a group of version 2 with the files that the agent reads."""
    folder.mkdir()
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.subtree_control").write_text(enabled)
    (folder / "cgroup.procs").write_text(processes)
    return folder


def test_of_version_2_groups_are_below_the_own_one_where_its_children_have_the_controller(tmp_path: Path) -> None:
    own = tree(tmp_path / "own", controllers="cpu memory", enabled="memory", processes="1 2")
    groups = MemoryGroups.below(Place(2, own), "agent")
    assert (own / "agent/cgroup.subtree_control").read_text() == "+memory"
    assert (own / "cgroup.procs").read_text() == "1 2"
    group = groups.group("one", 64 * MIB)
    assert group.entry == str(own / "agent/1-one/cgroup.procs")
    assert {path.name: path.read_text() for path in group.folder.iterdir()} == {"memory.max": str(64 * MIB)}


def test_of_version_2_an_agent_that_is_alone_moves_below(tmp_path: Path) -> None:
    own = tree(tmp_path / "own", controllers="memory", processes=str(os.getpid()))
    MemoryGroups.below(Place(2, own), "agent")
    assert (own / "fairlead-agent/cgroup.procs").read_text() == "0"
    assert (own / "cgroup.subtree_control").read_text() == "+memory"
    assert (own / "agent").is_dir()


@pytest.mark.parametrize(
    ("controllers", "processes", "why"),
    [
        pytest.param("cpu", str(os.getpid()), "the cgroup of the agent has no memory controller", id="no controller"),
        pytest.param("memory", f"{os.getpid()} 1", "the cgroup of the agent has other processes too", id="not alone"),
    ],
)
def test_of_version_2_no_other_process_is_moved(tmp_path: Path, controllers: str, processes: str, why: str) -> None:
    own = tree(tmp_path / "own", controllers=controllers, processes=processes)
    with pytest.raises(Unavailable, match=why):
        MemoryGroups.below(Place(2, own), "agent")
    assert (own / "cgroup.subtree_control").read_text() == ""
    assert (own / "cgroup.procs").read_text() == processes
    assert [path for path in own.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(("delegated", "processes"), [(b"1", ""), (b"1", "7"), (b"0", "")])
def test_of_version_2_the_group_above_is_used_where_systemd_delegated_it_and_it_is_empty(
    tmp_path: Path, delegated: bytes, processes: str
) -> None:
    unit = tree(tmp_path / "unit", controllers="memory", processes=processes)
    own = tree(unit / "supervisor", processes="1 2")
    try:
        os.setxattr(unit, "user.delegate", delegated)
    except OSError:
        pytest.skip("this file system keeps no extended attributes of users")
    if delegated == b"1" and not processes:
        MemoryGroups.below(Place(2, own), "agent")
        assert (unit / "cgroup.subtree_control").read_text() == "+memory"
        assert (unit / "agent").is_dir()
    else:
        with pytest.raises(Unavailable):
            MemoryGroups.below(Place(2, own), "agent")


# --- on this machine ------------------------------------------------------------------------------------------------


@pytest.fixture
def groups() -> Iterator[MemoryGroups]:
    try:
        found = MemoryGroups.below(own_place(), f"fairlead-test-{os.getpid()}-{threading.get_ident()}")
    except (OSError, Unavailable) as error:
        pytest.skip(f"no memory cgroups: {error}")
    yield found
    found.close()


def test_a_program_in_a_group_is_ended_at_its_limit(groups: MemoryGroups) -> None:
    group, other = groups.group("one", 64 * MIB), groups.group("other", 64 * MIB)
    takes = "import os; bytearray(os.urandom(1 << 20)) * 128"
    ended = subprocess.run(command([sys.executable, "-c", takes], group=group.entry), check=False)
    fits = subprocess.run(command([sys.executable, "-c", "pass"], group=other.entry), check=False)
    assert (ended.returncode, fits.returncode) == (-9, 0)
    usage, unharmed = group.usage(), other.usage()
    assert usage is not None
    assert (usage.kills, usage.at_limit, usage.limit_bytes) == (1, True, 64 * MIB)
    assert unharmed is not None
    assert unharmed.kills == 0
    group.remove()
    assert group.usage() is None


def test_an_owner_ends_what_an_earlier_one_left_and_removes_all(groups: MemoryGroups) -> None:
    group = groups.group("one", 64 * MIB)
    says = "print('in', flush=True); import time; time.sleep(60)"
    started = command([sys.executable, "-c", says], group=group.entry)
    with subprocess.Popen(started, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        assert left.stdout.readline() == b"in\n"
        own = Place(groups.version, group.folder.parent.parent)
        again = MemoryGroups.below(own, group.folder.parent.name)
        assert left.wait(10) == -9
    assert not group.folder.exists()
    again.close()
    assert not group.folder.parent.exists()


def test_a_group_whose_program_ends_late_is_removed_with_a_later_one(groups: MemoryGroups) -> None:
    group = groups.group("one", 64 * MIB)
    (group.folder / "below").mkdir()  # as busy as with a process that is being ended
    group.remove()
    assert group.folder.exists()
    (group.folder / "below").rmdir()
    groups.group("two", 64 * MIB)
    assert not group.folder.exists()


def test_a_program_whose_group_cannot_be_entered_is_not_started(tmp_path: Path) -> None:
    entry = str(tmp_path / "none/cgroup.procs")
    ended = subprocess.run(command(["true"], group=entry), capture_output=True, check=False, text=True)
    why = "the cgroup that limits the memory of this program cannot be entered: No such file or directory\n"
    assert (ended.returncode, ended.stderr) == (1, why)


def test_a_hierarchy_without_a_memory_controller_is_not_used() -> None:
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup2 " in line]
    for mount in mounts:
        if "memory" not in Path(mount[4], "cgroup.controllers").read_text().split():
            with pytest.raises(Unavailable, match="no memory controller"):
                MemoryGroups.below(Place(2, Path(mount[4])), "fairlead-test")
            return
    pytest.skip("each hierarchy of version 2 here has a memory controller")
