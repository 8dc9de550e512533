from pathlib import Path

import pytest
from celery import Celery

from jobs.services import hints


def noop(number: int) -> None:
    """Stand for any task."""


def application(broker: str, folder: Path) -> Celery:
    app = Celery("test", broker=broker, set_as_current=False)
    app.conf.broker_connection_timeout = 0.1
    if broker == "filesystem://":
        app.conf.broker_transport_options = {
            "data_folder_in": str(folder / "queue"),
            "data_folder_out": str(folder / "queue"),
            "control_folder": str(folder / "control"),
        }
    return app


def test_a_hint_goes_to_the_broker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "queue").mkdir()
    hints.send(application("filesystem://", tmp_path).task(name="some.task", ignore_result=True)(noop), 7)
    assert len(list((tmp_path / "queue").iterdir())) == 1
    assert "the broker did not take" not in caplog.text


@pytest.mark.parametrize(
    ("broker", "folder"),
    [
        pytest.param("amqp://127.0.0.1:1//", "", id="nobody listens"),
        pytest.param("filesystem://", "", id="no queue folder"),
        pytest.param("filesystem://", "missing", id="no folder at all"),
    ],
)
def test_a_broker_that_is_away_is_told_in_the_log_and_nowhere_else(
    broker: str, folder: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hints.send(application(broker, tmp_path / folder).task(name="some.task", ignore_result=True)(noop), 7)
    assert "the broker did not take some.task(7,); the next sweep will" in caplog.text
