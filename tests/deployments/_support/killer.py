"""Ends a worker at a chosen line, as `kill -9` would: from there on it executes nothing and reaches no database."""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from django.db import connection

Line = tuple[str, int]
"""A source file and a line of it."""
Trace = Callable[[FrameType, str, Any], Any]


class Killed(BaseException):
    """The process is gone; nothing that handles exceptions may handle this."""


def with_lines(files: Iterable[str]) -> set[Line]:
    """Return the lines of `with` statements.

    Such a line is executed when its block is entered and once more when it is left; who dies at the latter would leave
    the block without its end, as if the process had gone on without a transaction's rollback.
    """
    return {
        (file, node.lineno)
        for file in files
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
        if isinstance(node, ast.With)
    }


@contextmanager
def killed_at(files: set[str], is_last: Callable[[Line, int], bool]) -> Iterator[None]:
    """Run the block until a line of `files` for which `is_last` is true is about to execute; `Killed` is handled.

    Args:
        is_last: is told the line and how many statements the database was sent that may change it.
    """
    dead = False
    writes = 0

    def unreachable(execute: Callable[..., object], sql: str, *rest: object) -> object:
        # Where tests run in a transaction, this is the database taking back what the dead one did not commit.
        nonlocal writes
        writes += not sql.startswith("SELECT")
        if dead and not sql.startswith("ROLLBACK TO SAVEPOINT"):
            raise Killed
        return execute(sql, *rest)

    def local(frame: FrameType, event: str, argument: Any) -> Trace:
        nonlocal dead
        if event == "line":
            line = (frame.f_code.co_filename, frame.f_lineno)
            if is_last(line, writes):
                dead = True
                raise Killed
        return local

    def begins(frame: FrameType, event: str, argument: Any) -> Trace | None:
        return local if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    with connection.execute_wrapper(unreachable):
        sys.settrace(begins)
        try:
            yield
        except Killed:
            pass
        finally:
            sys.settrace(before)
