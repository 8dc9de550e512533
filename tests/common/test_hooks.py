"""Functions that rooms register by their dotted path, imported on their first call."""

import re
from pathlib import Path

import pytest
from django.utils.module_loading import import_string

from common.hooks import Hook, imported_later

PLATFORM = Path(__file__).parents[2] / "platform"


def test_everything_that_is_imported_later_is_there() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in PLATFORM.glob("*/apps.py"))
    paths = re.findall(r'(?:imported_later|participants\.register)\("([\w.]+)"\)', texts)
    assert len(paths) > 12
    for path in paths:
        assert import_string(path), path


def test_a_hook_calls_each_function_once_in_order() -> None:
    hook: Hook[[int], int] = Hook()
    first, second = (lambda number: number + 1), (lambda number: number + 2)
    for each in (first, second, first):
        hook.register(each)
    assert hook(1) == [2, 3]
    hook.unregister(first)
    assert hook(1) == [3]


def test_a_function_is_imported_by_its_call() -> None:
    gone = imported_later("common.durations.no_such_function")
    with pytest.raises(ImportError, match="no_such_function"):
        gone()
    assert imported_later("posixpath.basename")("a/b") == "b"
