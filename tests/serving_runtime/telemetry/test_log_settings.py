"""The log's settings: what may be changed, and what is then written."""

import logging
from typing import Any

import pytest

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.telemetry.log_settings import LogSettings, changed


@pytest.mark.feature("E11")
def test_settings_that_are_not_named_stay() -> None:
    before = LogSettings(log_info=False, log_file="x")
    after = changed(before, {"log_verbose_level": 2, "log_format": "ISO8601"})
    assert after == LogSettings("x", log_info=False, log_verbose_level=2, log_format="ISO8601")
    assert changed(after, {}) is not None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param({"log_level": 1}, "there is no log setting 'log_level'", id="unknown"),
        pytest.param({"log_file": "y"}, "chosen by --log-file", id="the file"),
        pytest.param({"log_info": 1}, "must be true or false, found 1", id="a number for a boolean"),
        pytest.param({"log_verbose_level": True}, "must be a number >= 0, found True", id="a boolean for a number"),
        pytest.param({"log_verbose_level": -1}, "must be a number >= 0, found -1", id="less than nothing"),
        pytest.param({"log_format": "xml"}, "must be default, ISO8601 or json, found 'xml'", id="a format"),
        pytest.param({"log_format": None}, "must be a string, found None", id="nothing"),
    ],
)
def test_what_cannot_be_changed_is_told(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        changed(LogSettings(), changes)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        pytest.param(LogSettings(), [20, 30, 40, 50], id="all but details"),
        pytest.param(LogSettings(log_verbose_level=1), [10, 20, 30, 40, 50], id="details too"),
        pytest.param(LogSettings(log_info=False, log_error=False), [30], id="warnings only"),
    ],
)
def test_each_level_has_a_switch(settings: LogSettings, kept: list[int]) -> None:
    levels = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]
    assert [level for level in levels if settings.keeps(level)] == kept
