"""How pages write numbers."""

import pytest

from deployments.templatetags import formats


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        pytest.param(0.0, "percent", "0 %", id="a zero has no decimals"),
        pytest.param(24.71, "percent", "24.7 %", id="three telling digits"),
        pytest.param(0.044, "percent", "0.04 %", id="small shares keep theirs"),
        pytest.param(100.0, "percent", "100 %", id="a trailing zero before the point stays"),
        pytest.param(0.24, "percentage points", "0.24 %", id="what is compared in points is a share itself"),
        pytest.param(1204.0, "requests", "1,204 requests", id="another unit is written out"),
        pytest.param(0.00031, "", "0.00031", id="a small number of no unit keeps two digits"),
        pytest.param(None, "percent", "\N{EN DASH}", id="nothing measured is a dash"),
    ],
)
def test_measured(value: float | None, unit: str, text: str) -> None:
    assert formats.measured(value, unit) == text.replace(" ", formats.NO_BREAK)


def test_limit() -> None:
    assert formats.limit(1.0, "percent") == f"1{formats.NO_BREAK}%"
    assert formats.limit(0.5, "percentage points") == f"+0.5{formats.NO_BREAK}%"


def test_sentence() -> None:
    assert formats.sentence("the gateway sends") == "The gateway sends"
    assert formats.sentence("digits-00002 runs no more") == "digits-00002 runs no more"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("AnalysisRunning", "Analysis running", id="a code"),
        pytest.param("server_error_percent", "Server error percent", id="a metric"),
        pytest.param("quality:accuracy", "Quality: accuracy", id="a scorer"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_words(name: str, text: str) -> None:
    assert formats.words(name) == text


def test_duration_and_count() -> None:
    assert formats.duration(90.0) == "1m30s"
    assert formats.count(1234567) == "1,234,567"


@pytest.mark.parametrize(
    ("verdict", "ended", "shown"),
    [
        pytest.param("Running", None, "Running", id="evidence still comes in"),
        pytest.param("Running", "a time", "Undecided", id="it ended before it was decided"),
        pytest.param("Successful", "a time", "Successful", id="it was decided"),
    ],
)
def test_outcome(verdict: str, ended: str | None, shown: str) -> None:
    assert formats.outcome(verdict, ended) == shown


@pytest.mark.parametrize(
    ("request_id", "shown"),
    [
        pytest.param("0f3c19aa2b7d4e55a1b2c3d4e5f60718", "0f3c19aa\N{HORIZONTAL ELLIPSIS}", id="one that was made"),
        pytest.param("pipeline-1204", "pipeline-1204", id="a caller's own"),
    ],
)
def test_short_id(request_id: str, shown: str) -> None:
    assert formats.short_id(request_id) == shown
