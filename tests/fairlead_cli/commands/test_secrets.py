"""`fairlead secrets`: values come from standard input or files, and never from the command line."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]
SECRET = {"namespace": "team-a", "name": "hub", "keys": ["token"], "services": ["team-a/digits"]}


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def put(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put


def test_values_come_from_standard_input_and_files_without_the_last_line_break(
    fairlead: Fairlead, api: Any, typed: Callable[[bytes], None], tmp_path: Path
) -> None:
    api.on("POST /secrets", SECRET, status=201)
    (tmp_path / "key.pem").write_text("-----BEGIN\n-----END\n")
    typed(b"hf_planted\n")
    code, said, _ = fairlead(
        "secrets", "create", "hub", "--namespace", "team-a", "--key", "token", "--from-file", f"pem={tmp_path}/key.pem"
    )
    assert code == 0
    values = {"pem": "-----BEGIN\n-----END", "token": "hf_planted"}
    assert api.seen[0].document == {"namespace": "team-a", "name": "hub", "values": values}
    assert "hf_planted" not in said


def test_values_are_set_and_removed(fairlead: Fairlead, api: Any, typed: Callable[[bytes], None]) -> None:
    api.on("PATCH /secrets/default/hub", SECRET)
    typed(b"hf_second")
    assert fairlead("secrets", "set", "hub", "--key", "token", "--remove", "old")[0] == 0
    assert api.seen[0].document == {"values": {"token": "hf_second", "old": None}}


@pytest.mark.parametrize(
    ("options", "content", "words"),
    [
        ((), b"", "no value was named; name one with --key"),
        (("--from-file", "token"), b"", "'token' names no value and file; expected KEY=FILE"),
        (("--from-file", "token=/nowhere/x"), b"", "the value of token cannot be read from /nowhere/x: No such file"),
        (("--key", "token"), b"\xff", "the value of token is no text in UTF-8"),
        (("--key", "token"), b"x" * 70_000, "the value of token has more than 65536 bytes"),
    ],
)
def test_what_is_no_value_is_refused(
    options: tuple[str, ...], content: bytes, words: str, fairlead: Fairlead, api: Any, typed: Callable[[bytes], None]
) -> None:
    typed(content)
    code, _, complained = fairlead("secrets", "create", "hub", *options)
    assert code == 1
    assert words in complained
    assert api.seen == []


def test_secrets_of_a_namespace_are_listed(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /secrets?namespace=team-a", {"results": [SECRET], "next": None})
    _, said, _ = fairlead("secrets", "list", "--namespace", "team-a")
    assert "team-a/digits" in said
