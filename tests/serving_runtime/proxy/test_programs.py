"""Programs that the proxy starts, as real processes: their requests, their environment and their end."""

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.serving_runtime._support.programs import MODEL, is_gone, pids, program, replica, until

AT_REST = 5
"""Sockets of a proxy without connections: three that listen, and two of its loop."""
EXPLAIN = (f"/v1/models/{MODEL}:explain", f"/v2/models/{MODEL}/explain")


def all_three(folder: Path, mode: str = "") -> dict[str, Any]:
    return {
        "predictor": program(folder, "predictor"),
        "transformer": program(folder, "transformer", mode, GRPC="echo"),
        "explainer": program(folder, "explainer"),
    }


def test_a_predictor_alone_is_served_and_counted(tmp_path: Path) -> None:
    predictor = program(tmp_path, "predictor", "", "--http_port=$(PORT)", "$$(PORT) $(UNKNOWN)", MODEL_NAME=MODEL)
    with replica(tmp_path, {"predictor": predictor}) as served:
        served.until_ready()
        assert not served.file.exists()
        answer = served.infer(b"x")
        assert answer.json() == {"role": "predictor", "path": f"/v2/models/{MODEL}/infer", "body": "x"}
        assert "fairlead-rows" not in answer.headers
        about = served.ask("GET", "/about").json()
        assert about["argv"] == [f"--http_port={about['env']['PORT']}", "$(PORT) $(UNKNOWN)"]
        assert about["cwd"] == str(tmp_path)
        assert about["env"].keys() - {"LC_CTYPE"} == {*predictor["env"], "PORT"}, "Python sets LC_CTYPE itself"
        assert about["sockets"] == 2, "its own that listens and this connection, and none of the proxy's"
        assert served.ask("POST", EXPLAIN[0], b"y").json()["role"] == "predictor"
        page = served.ask("GET", "/metrics", endpoint="metrics").text
        assert f'nv_inference_request_success{{model="{MODEL}",version="1"}} 2' in page
        assert served.ask("GET", "/v2/health/live").status == 200
        with socket.socket(socket.AF_UNIX) as refused, pytest.raises(ConnectionRefusedError):
            refused.connect(str(tmp_path / "grpc"))
        assert json.loads((tmp_path / "ports").read_text()) == {
            name: f"unix:{tmp_path / name}" for name in ("http", "grpc", "metrics")
        }
        served.terminate()
        assert served.ended() == 0
        assert is_gone(*pids(tmp_path, ["predictor"]))


def test_requests_pass_the_transformer_and_explanations_the_explainer(tmp_path: Path) -> None:
    with replica(tmp_path, all_three(tmp_path)) as served:
        served.until_ready()
        seen = served.infer(b"x").json()
        assert (seen["role"], seen["behind"]["role"]) == ("transformer", "predictor")
        for path in EXPLAIN:
            seen = served.ask("POST", f"{path}?n=1", b"x").json()
            assert (seen["role"], seen["path"]) == ("explainer", f"{path}?n=1")
            assert (seen["behind"]["role"], seen["behind"]["behind"]["role"]) == ("transformer", "predictor")
        others = [f"/v1/models/{MODEL}%3Aexplain", f"/v2/models/{MODEL}/versions/1/explain", "/v1/models/other:explain"]
        assert [served.ask("POST", path, b"x").json()["role"] for path in others] == ["transformer"] * 3
        assert served.ask("GET", EXPLAIN[0]).status == 200  # the transformer's answer
        page = served.ask("GET", "/metrics", endpoint="metrics").text
        assert f'nv_inference_request_success{{model="{MODEL}",version="1"}} 2' in page, "explanations do not count"
        about = served.ask("GET", "/about").json()
        env = about["env"]
        assert about["argv"] == [f"--model_name={MODEL}", f"--predictor_host={env['PREDICTOR_HOST']}"]
        assert env["PREDICTOR_HOST"].startswith("127.0.0.1:")
        assert "PREDICTOR_GRPC_HOST" not in env


def test_bytes_of_grpc_pass_to_the_transformer_unchanged(tmp_path: Path) -> None:
    programs = all_three(tmp_path)
    del programs["explainer"]
    with replica(tmp_path, programs) as served:
        served.until_ready()
        until(lambda: served.sockets() == AT_REST)
        for sent in (b"bytes that are " * 200_000, b""):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(tmp_path / "grpc"))
                client.settimeout(10)
                sender = threading.Thread(target=send_all, args=(client, sent))
                sender.start()
                with client.makefile("rb") as answers:
                    received = answers.read()
                sender.join()
            assert received == b"hello from gRPC " + sent.upper()
        until(lambda: served.sockets() == AT_REST)


def send_all(client: socket.socket, content: bytes) -> None:
    client.sendall(content)
    client.shutdown(socket.SHUT_WR)


def test_a_program_that_ends_ends_the_replica(tmp_path: Path) -> None:
    with replica(tmp_path, all_three(tmp_path)) as served:
        served.until_ready()
        running = pids(tmp_path, ["predictor", "transformer", "explainer"])
        assert served.infer(b"kill").status == 502
        assert served.ended() == 128 + 9
        assert "the transformer ended by signal 9, and the replica ends with it" in served.said().splitlines()[-1]
        assert all(map(is_gone, running))


def test_a_program_that_fails_at_start_has_its_words_in_the_log(tmp_path: Path) -> None:
    programs = {"predictor": program(tmp_path, "predictor", "exits"), "explainer": program(tmp_path, "explainer")}
    with replica(tmp_path, programs) as served:
        assert served.ended() == 3
        assert "no weights here" in served.said()
        assert "the predictor ended with exit code 3" in served.said().splitlines()[-1]


def test_a_program_that_never_becomes_ready_is_named(tmp_path: Path) -> None:
    with replica(tmp_path, all_three(tmp_path, "never ready")) as served:
        pids(tmp_path, ["predictor", "transformer", "explainer"])
        until(lambda: b"answers" in ready(served))
        assert json.loads(ready(served)) == {
            "ready": False,
            "error": "the transformer answers GET /v2/health/ready with 503",
        }
        served.terminate()
        assert served.ended() == 0


def ready(served: Any) -> bytes:
    try:
        content: bytes = served.ask("GET", "/v2/health/ready").content
    except OSError:
        return b""
    return content


def test_requests_in_flight_are_answered_before_the_programs_end(tmp_path: Path) -> None:
    with replica(tmp_path, all_three(tmp_path)) as served:
        served.until_ready()
        running = pids(tmp_path, ["predictor", "transformer", "explainer"])
        answers: list[Any] = []
        client = threading.Thread(target=lambda: answers.append(served.infer(b"slow")))
        client.start()
        until((tmp_path / "arrived").exists)
        served.terminate()
        until(lambda: "stopping: 1 requests in flight" in served.said())
        assert not any(map(is_gone, running))
        (tmp_path / "go-on").touch()
        client.join()
        assert (answers[0].status, answers[0].json()["behind"]["role"]) == (200, "predictor")
        assert served.ended() == 0
        assert all(map(is_gone, running))


def with_a_child_of_its_own(folder: Path) -> dict[str, Any]:
    """Return a program that ignores SIGTERM, and has started another one."""
    found = program(folder, "predictor", "stubborn")
    script = f"sleep 1000 & echo $! > pid-of-sleep; exec {' '.join(found['command'])}"
    return {**found, "command": ["/bin/sh", "-c", script]}


def test_a_program_that_ignores_sigterm_is_killed_with_what_it_has_started(tmp_path: Path) -> None:
    with replica(tmp_path, {"predictor": with_a_child_of_its_own(tmp_path)}, "--exit-timeout-secs=0") as served:
        served.until_ready()
        running = pids(tmp_path, ["predictor", "sleep"])
        served.terminate()
        assert served.ended() == 0
        assert "the predictor has not ended in time after SIGTERM; it is killed" in served.said()
        until(lambda: all(map(is_gone, running)))


def killed(served: Any) -> None:
    served.process.kill()


def twice(served: Any) -> None:
    served.terminate()
    until(lambda: "stopping" in served.said())
    served.terminate()


@pytest.mark.parametrize("end", [killed, twice])
def test_nothing_outlives_a_killed_proxy_or_a_second_signal(tmp_path: Path, end: Any) -> None:
    with replica(tmp_path, {"predictor": with_a_child_of_its_own(tmp_path)}) as served:
        served.until_ready()
        running = pids(tmp_path, ["predictor", "sleep"])
        end(served)
        assert served.ended() in (-9, 1)
        until(lambda: all(map(is_gone, running)))


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    (tmp_path / "not-executable").touch()
    programs = {
        "predictor": program(tmp_path, "predictor"),
        "transformer": {"command": ["./not-executable"], "folder": str(tmp_path)},
    }
    with replica(tmp_path, programs) as served:
        assert served.ended() == 1
        assert "the transformer cannot be started: ./not-executable: Permission denied" in served.said()
    assert not os.path.lexists(tmp_path / "programs.json")
