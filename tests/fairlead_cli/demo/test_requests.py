"""A log that is read while it is written."""

import json
from pathlib import Path

from fairlead_cli.demo.requests import RequestLog

ROW = {
    "at": 1.0,
    "ended_at": 1.1,
    "protocol": "grpc",
    "revision": "digits-00001",
    "ok": True,
    "message": "",
    "label": 3,
    "truth": 4,
}


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = RequestLog(path)
    assert log.read() == []

    line = json.dumps(ROW)
    path.write_text(f"{line}\n{line[:20]}")
    assert [request.correct for request in log.read()] == [False]

    with path.open("a") as file:
        file.write(f"{line[20:]}\n")
    assert len(log.read()) == 1
    assert log.read() == []
    assert len(log.requests) == 2
