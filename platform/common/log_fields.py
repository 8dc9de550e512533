"""Fields of log lines that hold for a while: the task that runs, the service that is reconciled, and its cluster.

They are fields of their own in JSON lines; lines of text leave them out.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import MappingProxyType

_current: ContextVar[Mapping[str, str]] = ContextVar("fairlead_log_fields", default=MappingProxyType({}))


@contextmanager
def about(**fields: str) -> Iterator[None]:
    """Add fields to the lines of the block; names are those of `serving_runtime.shared.json_log.FIELDS`."""
    token = begin(**fields)
    try:
        yield
    finally:
        end(token)


def begin(**fields: str) -> Token[Mapping[str, str]]:
    """Add fields to all lines until `end`."""
    return _current.set({**_current.get(), **fields})


def end(token: Token[Mapping[str, str]]) -> None:
    """Restore the fields before the `begin` that returned `token`."""
    _current.reset(token)


class FieldsFilter(logging.Filter):
    """Puts the current fields on every record; a record's own take precedence."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Never drops a record."""
        for name, value in _current.get().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True
