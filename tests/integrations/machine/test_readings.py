"""Limits as this machine shows them, used up by real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integrations.machine import readings
from integrations.machine.limits import INSTANCES, MEMORY, OPEN_FILES, PROCESSES, WATCHES, Level, Limit, tightest
from integrations.sandbox.memory_cgroup import Place

OTHER_USER = 54321
USES = """
import ctypes, json, os, resource, sys
from integrations.machine import readings
from integrations.machine.limits import tightest
{before}
opened = [{each} for _ in range(int(sys.argv[1]))]
found = tightest(readings.read({{"digits": os.getpid()}}))
print(json.dumps([[limit.name, limit.level, limit.sentence] for limit in found]), flush=True)
sys.stdin.read()
"""
FILES = USES.format(before="resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))", each="os.open('/dev/null', 0)")
INOTIFY = USES.format(
    before=f"libc = ctypes.CDLL(None)\nif not os.geteuid(): os.setuid({OTHER_USER})", each="libc.inotify_init1(0)"
)


@contextmanager
def using(code: str, number: int) -> Iterator[tuple[int, dict[str, tuple[str, str]]]]:
    """Run a program that opens so many; give its process, and the level and sentence of what it reads itself."""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        seen = {name: (level, sentence) for name, level, sentence in json.loads(process.stdout.readline())}
        try:
            yield process.pid, seen
        finally:
            process.communicate("", timeout=30)


def named(found: tuple[Limit, ...], name: str) -> Limit:
    return next(limit for limit in found if limit.name == name)


@pytest.mark.parametrize(
    ("number", "level"),
    [pytest.param(20, Level.FINE), pytest.param(80, Level.CLOSE), pytest.param(93, Level.AT_LIMIT)],
)
def test_open_files_are_counted_in_each_process_against_its_own_limit(number: int, level: Level) -> None:
    with using(FILES, number) as (pid, seen):
        found = named(tightest(readings.read({"gateway": os.getpid(), "digits": pid})), OPEN_FILES)
        assert (found.most, found.whose, found.level) == (100, "digits", level)
        assert found.used is not None
        assert number <= found.used <= number + 6
        assert bool(found.sentence) == bool(seen[OPEN_FILES][1]) == (level is not Level.FINE)
    if found.sentence:
        assert "`ulimit -n 65536`" in found.sentence
        assert "LimitNOFILE=65536" in found.sentence


def test_what_a_part_starts_counts_for_it() -> None:
    with using(FILES, 80) as (pid, _):
        found = named(tightest(readings.read({"agent": os.getpid()})), OPEN_FILES)
        assert found.whose == f"process {pid} of agent"


def test_inotify_instances_of_a_user_are_counted_and_named_before_none_is_left() -> None:
    most = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    if os.geteuid() or most > 512:
        pytest.skip("only root may use up the instances of another user, and of few")
    for number, level in ((2, Level.FINE), (most * 85 // 100, Level.CLOSE), (most, Level.AT_LIMIT)):
        with using(INOTIFY, number) as (_, seen):
            assert seen[INSTANCES][0] == level
            assert (f"fs.inotify.max_user_instances={2 * most}" in seen[INSTANCES][1]) == (level is not Level.FINE)


def test_watches_are_counted(tmp_path: Path) -> None:
    watch = (
        "[(fd := libc.inotify_init1(0)), libc.inotify_add_watch(fd, b'/tmp', 2), libc.inotify_add_watch(fd, b'/', 2)]"
    )
    code = USES.format(before="libc = ctypes.CDLL(None)", each=watch)
    with using(code, 3):
        found = readings.read({})
        assert (named(found, INSTANCES).used or 0) >= 3
        assert (named(found, WATCHES).used or 0) >= 6


def test_processes_and_memory_of_this_machine_are_known() -> None:
    found = tightest(readings.read({"this": os.getpid()}))
    for name in (PROCESSES, MEMORY):
        limit = named(found, name)
        assert limit.used is not None
        assert limit.most is not None
        assert 0 < limit.used <= limit.most


def test_a_process_that_has_ended_is_no_error() -> None:
    with using(FILES, 80) as (pid, _):
        pass
    assert {limit.whose for limit in readings.read({"gone": pid}) if limit.name == OPEN_FILES} <= {"this machine"}


def group(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in {"cgroup.procs": "", **files}.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_a_cgroup_and_of_one_above_it(tmp_path: Path, version: int) -> None:
    stat = "inactive_file 100\nactive_file 100\ntotal_inactive_file 200\ntotal_active_file 100\n"
    if version == 2:
        memory = {"memory.max": "1000", "memory.current": "1100"}
        without = {"memory.max": "max", "memory.current": "1100"}
    else:
        memory = {"memory.limit_in_bytes": "1000", "memory.usage_in_bytes": "1200"}
        without = {"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "1200"}
    above = group(tmp_path / "unit", **memory, **{"memory.stat": stat, "pids.max": "50", "pids.current": "48\n"})
    own = group(above / "agent", **without, **{"memory.stat": stat, "pids.max": "max\n", "pids.current": "7"})

    found = [*readings.group_processes(Place(version, own)), *readings.group_memory(Place(version, own))]

    assert {limit.whose for limit in found} == {f"the cgroup {above}"}, "its own has no limits"
    groups = {limit.name: limit for limit in found}
    assert (groups[MEMORY].used, groups[MEMORY].most, groups[MEMORY].level) == (900, 1000, Level.CLOSE)
    assert (groups[PROCESSES].used, groups[PROCESSES].most, groups[PROCESSES].level) == (48, 50, Level.AT_LIMIT)
    assert "TasksMax=" in groups[PROCESSES].remedy
    assert "MemoryMax=" in groups[MEMORY].remedy


def test_without_proc_and_cgroups_nothing_is_known() -> None:
    """As on a system that is not Linux."""
    hidden = 'mount -t tmpfs none /proc && exec "$0" -c "$1"'
    code = "from integrations.machine.limits import tightest\nfrom integrations.machine.readings import read\n"
    code += "print(*{limit.level for limit in tightest(read({'this': 1}))})"
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hidden, sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"/proc cannot be hidden here: {done.stderr.strip()}")
    assert (done.stdout, done.stderr) == ("unknown\n", "")
