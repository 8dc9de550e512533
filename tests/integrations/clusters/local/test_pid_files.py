import os
import signal
import subprocess
import sys

import pytest

from integrations.clusters.local.pid_files import (
    AGENT,
    ProcessRecord,
    end_leftovers,
    is_alive,
    read_record,
    start_ticks,
    write_record,
)

SLEEPER = "import signal, sys; print('up', flush=True); signal.pause()"
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
)


@pytest.fixture
def start():
    started = []

    def make(code: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, process_group=0)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    yield make
    for process in started:
        process.kill()
        process.communicate()


def record_of(process: subprocess.Popen[bytes], started_by: str = AGENT) -> ProcessRecord:
    return ProcessRecord(process.pid, start_ticks(process.pid), 2, "why", started_by)


def test_record_survives_its_file(tmp_path):
    record = ProcessRecord(1, 2, 3, "why", AGENT)
    write_record(tmp_path / "x.json", record)
    assert read_record(tmp_path / "x.json") == record


def test_record_of_the_command_line_has_fewer_fields(tmp_path):
    (tmp_path / "web.json").write_text('{"pid": null, "start_ticks": null, "restarts": 1, "message": "why"}')
    assert read_record(tmp_path / "web.json") == ProcessRecord(None, None, 1, "why")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x", "start_ticks": 1}', '{"pid": 1}'])
def test_damaged_record_is_none(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    assert read_record(tmp_path / "x.json") is None


def test_process_is_known_by_id_and_start():
    ticks = start_ticks(os.getpid())
    assert ticks is not None
    assert is_alive(ProcessRecord(os.getpid(), ticks))
    assert not is_alive(ProcessRecord(os.getpid(), ticks + 1))
    assert not is_alive(ProcessRecord(None, None))


def test_zombie_is_not_alive(start):
    process = start(SLEEPER)
    record = record_of(process)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(record)


@pytest.mark.parametrize(
    ("code", "number"),
    [
        pytest.param(SLEEPER, signal.SIGTERM, id="one that heeds SIGTERM"),
        pytest.param(STUBBORN, signal.SIGKILL, id="one that does not is killed"),
    ],
)
def test_leftovers_are_ended_and_forgotten(tmp_path, start, code, number):
    process = start(code)
    write_record(tmp_path / "replica.json", record_of(process))
    assert end_leftovers(tmp_path, patience_s=0.3) == ["replica"]
    assert process.wait(timeout=5) == -number
    assert list(tmp_path.iterdir()) == []


def test_others_are_left_alone(tmp_path, start):
    process = start(SLEEPER)
    record = record_of(process)
    write_record(tmp_path / "web.json", record_of(process, started_by=""))
    write_record(tmp_path / "old.json", ProcessRecord(process.pid, (record.start_ticks or 0) + 1, started_by=AGENT))
    assert end_leftovers(tmp_path, patience_s=0.3) == []
    assert process.poll() is None
    assert [path.name for path in tmp_path.iterdir()] == ["web.json"]


def test_no_folder_is_no_leftover(tmp_path):
    assert end_leftovers(tmp_path / "run", patience_s=0.1) == []
