"""Labels that the gateway took: from the agent's files into the database."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from feedback.models import Label
from feedback.services.spool import spool_read
from integrations.clusters.local.feedback_spool import Batch, Spool, waiting_files
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.django_db(transaction=True)
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


def batch(service: str, *values: int, by: str = "") -> Batch:
    labels = [{"request_id": f"r{number}", "value": value} for number, value in enumerate(values)]
    return Batch(service, by, AT.timestamp(), labels)


def test_labels_are_stored_once_and_their_files_deleted(platform: Platform, tmp_path: Path) -> None:
    service = platform.live()
    spool = Spool(tmp_path)
    spool.write([batch(str(service), 3, 1, by="nightly")])
    (path,) = waiting_files(tmp_path)
    content = path.read_bytes()
    assert spool_read(folder=tmp_path) == 2
    assert waiting_files(tmp_path) == []
    path.write_bytes(content)  # as if the process had ended before the file was deleted
    spool.write([batch(str(service), 4), batch("elsewhere/gone", 5)])
    assert spool_read(folder=tmp_path) == 4
    found = Label.objects.order_by("request_id").values_list("request_id", "value", "given_by", "received_at")
    assert list(found) == [("r0", 4, "gateway", AT), ("r1", 1, "key nightly", AT)]
    assert waiting_files(tmp_path) == []
    assert spool_read(folder=tmp_path / "never made") == 0
