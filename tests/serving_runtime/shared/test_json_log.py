"""Log lines as JSON: one object a line, whatever was logged."""

import io
import json
import logging
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.shared.json_log import JsonFormatter


def line(message: str, *arguments: object, **more: Any) -> dict[str, Any]:
    """Return what one call logs, parsed."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    log = logging.Logger("test")
    log.addHandler(handler)
    log.warning(message, *arguments, **more)
    text = written.getvalue()
    assert text.isascii()
    assert text.endswith("}\n")
    assert not [character for character in text[:-1] if not character.isprintable()]
    found: dict[str, Any] = json.loads(text)
    return found


@given(st.text(), st.text(st.characters(categories=["Cc", "Zl", "Zp"]), max_size=5))
def test_a_clients_text_stays_within_its_field(sent: str, controls: str) -> None:
    found = line("from %s", sent, extra={"call": sent + controls, "status": 200})
    assert found["message"] == f"from {sent}"
    assert found.get("call", "") in (sent + controls, "")
    assert found["status"] == 200


def test_half_a_character_breaks_no_line() -> None:
    assert line("from %s", "\ud800")["message"] == "from \ud800"


def test_a_line_has_time_level_logger_and_the_fields_that_have_a_value() -> None:
    found = line("done", extra={"request_id": "-", "trace_id": "", "task": "sweep", "service": ["odd"]})
    assert found.pop("time").endswith("Z")
    assert found == {"level": "WARNING", "logger": "test", "message": "done", "task": "sweep", "service": "['odd']"}


def test_an_exception_is_one_field() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        found = line("it failed", exc_info=True)
    assert found["message"] == "it failed"
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith("ValueError: first\nsecond")


@pytest.mark.parametrize("arguments", [("a", "b"), ()], ids=["too many arguments", "none"])
def test_arguments_that_do_not_fit_break_no_line(arguments: tuple[str, ...]) -> None:
    assert line("%s is %d", *arguments)["message"].startswith("%s is %d")


UNCAUGHT = """
import logging, threading, warnings
from serving_runtime.shared import json_log
handler = logging.StreamHandler()
handler.setFormatter(json_log.JsonFormatter())
logging.basicConfig(handlers=[handler])
json_log.log_uncaught()
warnings.warn("old")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
raise RuntimeError("ends\\nhere")
"""


def test_uncaught_exceptions_and_warnings_are_lines() -> None:
    done = subprocess.run([sys.executable, "-c", UNCAUGHT], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    warned, thread, process = map(json.loads, done.stderr.splitlines())
    assert "old" in warned["message"]
    assert "ZeroDivisionError" in thread["exception"]
    assert (process["level"], process["message"]) == ("CRITICAL", "the process ends: RuntimeError")
