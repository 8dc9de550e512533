"""The reader of numbers is compiled when it pays off, and servers go on without it."""

import logging
import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from serving_runtime.protocol.http.codec.compiled.compiler import Compiler, Read


def numbers(text: bytes, start: int, end: int, count: int) -> NDArray[np.float32] | None:
    return None


def compiler(compiled: "Read | Exception" = numbers, *, allowed: bool = True) -> Compiler:
    def made() -> Read:
        if isinstance(compiled, Exception):
            raise compiled
        return compiled

    found = Compiler(made, worth_bytes=1000)
    found.allowed = allowed
    return found


def finish() -> None:
    for thread in compiling():
        thread.join(30)
        assert not thread.is_alive()


def compiling() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "compiled-json"]


def test_it_is_compiled_once_enough_was_read_and_used_from_then_on() -> None:
    one = compiler()
    assert one.reader(999) is None
    assert not compiling()
    one.reader(1)
    finish()
    assert one.reader(10_000) is numbers


def test_it_is_compiled_while_requests_are_read_in_the_other_way() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly() -> Read:
        begun.set()
        assert go_on.wait(30)
        return numbers

    one = Compiler(slowly, worth_bytes=1)
    one.allowed = True
    assert one.reader(1) is None
    assert begun.wait(30)
    assert [one.reader(1), len(compiling())] == [None, 1]
    go_on.set()
    finish()
    assert one.reader(1) is numbers


def test_where_it_is_not_allowed_it_never_is() -> None:
    one = compiler(allowed=False)
    assert one.reader(10_000) is None
    assert not compiling()


def test_where_it_cannot_be_compiled_requests_are_read_as_before(caplog: pytest.LogCaptureFixture) -> None:
    one = compiler(RuntimeError("no such processor"))
    with caplog.at_level(logging.INFO):
        assert one.reader(10_000) is None
        finish()
    assert "no such processor" in caplog.text
    assert "could not be compiled; they are read as before" in caplog.text
    assert one.reader(10_000) is None
