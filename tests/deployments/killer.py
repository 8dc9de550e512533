"""Ends a worker at a chosen line, as `kill -9` would: from there on it executes nothing and reaches no database."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from django.db import connection

Line = tuple[str, int]
Trace = Callable[[FrameType, str, Any], Any]


class Killed(BaseException):
    """The process is gone; nothing that handles exceptions may handle this."""


@contextmanager
def killed_at(files: set[str], is_last: Callable[[Line], bool]) -> Iterator[list[Line]]:
    """Run the block until a line of `files` for which `is_last` is true is about to execute.

    Gives the lines that were executed, the last included; the block ends with `Killed` handled.
    """
    lines: list[Line] = []
    dead = False

    def unreachable(execute: Callable[..., object], sql: str, *rest: object) -> object:
        # Where tests run in a transaction, this is the database taking back what the dead one did not commit.
        if dead and not sql.startswith("ROLLBACK TO SAVEPOINT"):
            raise Killed
        return execute(sql, *rest)

    def local(frame: FrameType, event: str, argument: Any) -> Trace:
        nonlocal dead
        if event == "line":
            line = (Path(frame.f_code.co_filename).name, frame.f_lineno)
            lines.append(line)
            if is_last(line):
                dead = True
                raise Killed
        return local

    def begins(frame: FrameType, event: str, argument: Any) -> Trace | None:
        return local if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    with connection.execute_wrapper(unreachable):
        sys.settrace(begins)
        try:
            yield lines
        except Killed:
            pass
        finally:
            sys.settrace(before)
