"""Starting, restarting and ending small real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.up import processes
from fairlead_cli.up.home import Home, prepare
from fairlead_cli.up.supervisor import Component, Supervisor, how_it_ended, pause_s
from tests._support.small_disk import filled, small_disk


def component(name: str, code: str = "time.sleep(60)", patience_s: float = 5.0, **options: Any) -> Component:
    command = [sys.executable, "-c", f"import os, signal, sys, time\n{code}"]
    return Component(name, command, dict(os.environ), patience_s, **options)


@contextmanager
def running(home: Home, *components: Component, said: list[str] | None = None) -> Iterator[Supervisor]:
    family = Supervisor(home, components, (said if said is not None else []).append)
    family.start()
    try:
        yield family
    finally:
        family.stop(hurry=lambda: True)


def record(home: Home, name: str) -> dict[str, Any]:
    seen: dict[str, Any] = json.loads((home.run / f"{name}.json").read_text())
    return seen


def pid(family: Supervisor, index: int = 0) -> int:
    process = family.children[index].process
    assert process is not None
    return process.pid


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (99999, 30.0)])
def test_pauses_grow_to_a_limit(failures: int, seconds: float) -> None:
    assert pause_s(failures) == seconds


@pytest.mark.parametrize(
    ("returncode", "text"),
    [(3, "ended with exit code 3"), (-9, "was ended by SIGKILL"), (-99, "was ended by signal 99")],
)
def test_an_end_in_words(returncode: int, text: str) -> None:
    assert how_it_ended(returncode) == text


def test_a_start_is_recorded_and_logged(home: Home, eventually: Callable[..., Any]) -> None:
    with running(home, component("web", "print('hello', flush=True); time.sleep(60)")) as family:
        assert record(home, "web")["pid"] == pid(family)
        assert processes.is_running(record(home, "web")["pid"], record(home, "web")["start_ticks"])
        eventually(lambda: (home.logs / "web.log").read_text() == "hello\n")
        assert os.getpgid(pid(family)) == pid(family)
    assert list(home.run.iterdir()) == []


def test_what_dies_is_started_again_and_the_restart_is_told(home: Home, eventually: Callable[..., Any]) -> None:
    said: list[str] = []
    with running(home, component("web"), said=said) as family:
        first = pid(family)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: (family.tick(), family.children[0].process is None)[1])
        assert record(home, "web") == {
            "pid": None,
            "start_ticks": None,
            "restarts": 1,
            "message": "it was ended by SIGKILL",
        }
        assert 0 < family.next_wake_s(60) <= 0.5
        eventually(lambda: (family.tick(), family.children[0].process is not None)[1])
        again = record(home, "web")

    assert again["pid"] not in {None, first}
    assert (again["restarts"], again["message"]) == (1, "its last process was ended by SIGKILL")
    assert said == [
        f"web was ended by SIGKILL; starting it again in 0.5 s (restart 1); see {home.logs}/web.log",
    ]


def test_a_full_disk_ends_nothing_and_records_are_written_later(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    said: list[str] = []
    with small_disk(tmp_path / "disk", 256) as disk:
        home = prepare(disk / "home")
        with running(home, component("web"), component("worker"), said=said) as family:
            worker = pid(family, 1)
            with filled(disk):
                os.kill(pid(family), signal.SIGKILL)
                eventually(lambda: (family.tick(), family.children[0].restarts and family.children[0].process)[1])
                assert record(home, "web")["pid"] not in {None, pid(family)}  # that of before
                assert family.next_wake_s(60) <= 1
            family.tick()
            assert record(home, "web")["pid"] == pid(family)
            assert (pid(family, 1), record(home, "worker")["pid"]) == (worker, worker)
            assert family.next_wake_s(60) == 60
    path = home.run / "web.json"
    about_room = [each for each in said if "ended by SIGKILL" not in each]
    assert about_room == [
        f"{path} cannot be written (No space left on device); everything runs on, and it is tried again",
        "there is room again: all records are written",
    ]


def test_what_is_not_wanted_yet_is_started_once_it_is(home: Home, eventually: Callable[..., Any]) -> None:
    with running(home, component("watcher", wanted_by=home.watches)) as family:
        family.tick()
        assert family.children[0].process is None
        assert family.next_wake_s(60) == 60
        home.watches.touch()
        assert family.next_wake_s(60) == 0
        family.tick()
        assert record(home, "watcher")["pid"] == pid(family)
        os.kill(pid(family), signal.SIGKILL)
        eventually(lambda: (family.tick(), family.children[0].restarts == 1)[1])
        eventually(lambda: (family.tick(), family.children[0].process is not None)[1])


def test_what_keeps_dying_waits_longer_each_time(home: Home, eventually: Callable[..., Any]) -> None:
    said: list[str] = []
    with running(home, component("web", "sys.exit(3)"), said=said) as family:
        eventually(lambda: (family.tick(), len(said) == 3)[1])

    assert [line.split("again in ")[1].split(" s")[0] for line in said] == ["0.5", "1", "2"]
    assert said[0].startswith("web ended with exit code 3;")


def test_a_dead_ones_children_go_before_its_successor_comes(home: Home, eventually: Callable[..., Any]) -> None:
    code = "import subprocess; subprocess.Popen(['/bin/sleep', '60']); print('up', flush=True); time.sleep(60)"
    with running(home, component("worker", code)) as family:
        eventually(lambda: "up" in (home.logs / "worker.log").read_text())
        first = pid(family)
        assert len(processes.group_members(first)) == 2
        os.kill(first, signal.SIGKILL)
        eventually(lambda: (family.tick(), family.children[0].process is None)[1])
        assert processes.group_members(first) == []


def test_what_a_dead_agent_had_started_goes_before_it_comes_again(
    home: Home, sleeper: Callable[..., "subprocess.Popen[str]"], eventually: Callable[..., Any]
) -> None:
    replica = sleeper()
    seen = processes.stat(replica.pid)
    assert seen is not None
    written = {"pid": replica.pid, "start_ticks": seen.start_ticks, "restarts": 0, "message": "", "started_by": "agent"}
    with running(home, component("web"), component("agent", starts_others=True)) as family:
        (home.run / "digits-00001-0.json").write_text(json.dumps(written))
        web = pid(family)
        os.kill(pid(family, 1), signal.SIGKILL)
        eventually(lambda: (family.tick(), family.children[1].process is None)[1])

        assert replica.wait() == -signal.SIGTERM
        assert pid(family) == web, "the others are left alone"
        assert (home.run / "web.json").exists()


def test_stop_goes_in_order(home: Home, eventually: Callable[..., Any]) -> None:
    order = home.path / "order"
    code = f"""
def end(*_):
    with open({str(order)!r}, "a") as file: file.write(sys.argv[0] + NAME + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
time.sleep(60)
"""
    names = ["web", "worker", "agent"]
    family = Supervisor(home, [component(name, f"NAME = {name!r}\n{code}") for name in names], [].append)
    family.start()
    eventually(lambda: all("up" in (home.logs / f"{name}.log").read_text() for name in names))

    family.stop(hurry=lambda: False)

    assert order.read_text().split() == [f"-c{name}" for name in names]
    assert list(home.run.iterdir()) == []


@pytest.mark.parametrize(
    ("patience_s", "hurry"),
    [
        pytest.param(0.2, False, id="patience ends"),
        pytest.param(60.0, True, id="a second Ctrl-C cuts the patience"),
    ],
)
def test_a_deaf_one_is_killed(home: Home, eventually: Callable[..., Any], patience_s: float, hurry: bool) -> None:
    said: list[str] = []
    deaf = component("agent", "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)")
    deaf = Component(deaf.name, deaf.command, deaf.environment, patience_s)
    family = Supervisor(home, [deaf], said.append)
    family.start()
    eventually(lambda: "up" in (home.logs / "agent.log").read_text())
    group, began = pid(family), time.monotonic()

    family.stop(hurry=lambda: hurry)

    assert time.monotonic() - began < 10
    assert processes.group_members(group) == []
    assert said == ["agent did not end in time and is killed"]


ORPHANS = """
import os, signal, sys, time
from pathlib import Path
from fairlead_cli.up import processes
from fairlead_cli.up.home import prepare
from fairlead_cli.up.supervisor import Component, Supervisor
home = prepare(Path(sys.argv[1]))
processes.adopt_orphans()
code = "import subprocess; print(subprocess.Popen(['/bin/sleep', '60'], start_new_session=True).pid, flush=True)"
family = Supervisor(home, [Component("agent", [sys.executable, "-c", code], dict(os.environ), 5.0)], print, adopts=True)
family.start()
log = home.logs / "agent.log"
while not log.read_text().strip():
    time.sleep(0.01)
orphan = int(log.read_text())
while (seen := processes.stat(orphan)) is None or seen.parent != os.getpid():
    time.sleep(0.01)
family.stop(hurry=lambda: False)
print("left" if processes.stat(orphan) else "gone")
"""


def test_an_orphan_in_a_session_of_its_own_is_not_left_behind(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHANS, str(home.path)], capture_output=True, text=True, timeout=30, check=True
    )

    assert done.stdout == "gone\n"
