"""The command line as a whole: help, exit codes, errors on stderr."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from fairlead_cli.parser.command_table import COMMANDS, NOUNS

Fairlead = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_every_command_has_help(command: Any, fairlead: Fairlead) -> None:
    code, said, _ = fairlead(*command.words.split(), "--help")

    assert code == 0
    assert said.startswith(f"usage: fairlead {command.words}")
    assert command.help.endswith(".")
    assert ("--url" in said) is not command.local
    assert ("--output" in said) is command.answers


def test_nouns_and_commands_agree() -> None:
    assert {command.words.split()[0] for command in COMMANDS if " " in command.words} == set(NOUNS)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="no command"),
        pytest.param(("fly",), id="an unknown command"),
        pytest.param(("models",), id="a noun without a verb"),
        pytest.param(("up", "--address", "8080"), id="an address without a host"),
        pytest.param(("versions", "show", "m", "two"), id="a version that is no number"),
        pytest.param(("demo", "--rate", "0"), id="no traffic at all"),
    ],
)
def test_a_wrong_command_line_ends_with_2(fairlead: Fairlead, arguments: tuple[str, ...]) -> None:
    code, said, complained = fairlead(*arguments)

    assert (code, said) == (2, "")
    assert complained.startswith("usage: ")


@pytest.mark.parametrize(("words", "told"), [((), "models"), (("models",), "push")], ids=["no command", "a noun alone"])
def test_who_names_no_command_is_told_which_there_are(fairlead: Fairlead, words: tuple[str, ...], told: str) -> None:
    code, said, complained = fairlead(*words)

    assert (code, said) == (2, "")
    assert any(line.split()[:1] == [told] for line in complained.splitlines())


def test_a_refusal_is_one_line_on_stderr(fairlead: Fairlead, api: Any) -> None:
    api.refuse("GET /models/digits", 404, "no model digits; register it by `fairlead models push`")

    assert fairlead("models", "show", "digits") == (1, "", "no model digits; register it by `fairlead models push`\n")


def test_what_a_server_says_cannot_steer_the_terminal(fairlead: Fairlead, api: Any) -> None:
    api.refuse("GET /whoami", 400, "\x1b]0;owned\x07")

    assert fairlead("whoami") == (1, "", "?]0;owned?\n")


def test_no_control_plane_ends_with_5(fairlead: Fairlead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_URL", "http://127.0.0.1:1")

    code, said, complained = fairlead("whoami")

    assert (code, said) == (5, "")
    assert complained.startswith("no answer from http://127.0.0.1:1 (")
    assert "Traceback" not in complained


def test_json_is_for_programs(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /models", {"next": None, "results": [{"name": "digits", "extra": [1]}]})

    code, said, _ = fairlead("models", "list", "--output", "json")

    assert code == 0
    assert json.loads(said) == [{"name": "digits", "extra": [1]}]


def test_a_reader_that_has_seen_enough_is_no_error(api: Any, at_home: Any) -> None:
    api.on("GET /models", {"next": None, "results": [{"name": f"m{number}"} for number in range(20_000)]})
    command = [sys.executable, "-m", "fairlead_cli", "models", "list", "--url", api.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_ctrl_c_ends_with_130_and_without_a_word(at_home: Any) -> None:
    # Shells have what they start in the background ignore SIGINT, and children inherit that.
    listening = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    run = listening + "from fairlead_cli.__main__ import main; sys.exit(main(sys.argv[1:]))"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        command = [sys.executable, "-c", run, "models", "list", "--url", url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(60)
                connection.recv(1)  # it has asked, and waits for an answer that does not come
                process.send_signal(signal.SIGINT)
                said, complained = process.communicate(timeout=60)
    assert (process.returncode, said, complained) == (130, b"", b"")
