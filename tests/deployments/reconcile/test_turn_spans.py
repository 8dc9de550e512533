"""Spans of the reconciler's turns: what changed a service or failed has one, a settled turn has none."""

import pytest

from common.errors import InvalidInput
from integrations.otlp.tracing import of_process
from tests._support.collector import attributes, collecting
from tests.deployments._support.platform import Platform


def test_turns_that_change_a_service_or_fail_have_spans_and_settled_ones_none(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.live()
    platform.turn()
    with collecting() as collector:
        of_process.start(collector.endpoint, "fairlead-worker")
        try:
            platform.turn()
            platform.cluster.broken["digits-00001"] = "out of memory"
            platform.turn()
            monkeypatch.setattr(platform.cluster, "apply", _refuse)
            with pytest.raises(InvalidInput):
                platform.turn()
        finally:
            of_process.stop()
        _, (changed, failed) = collector.spans(2)
    found = attributes(changed)
    assert changed.name == failed.name == "reconcile"
    about = ("fairlead.service", "fairlead.cluster", "fairlead.outcome")
    assert [found[name] for name in about] == ["default/digits", "local", "done"]
    assert failed.status.message == "InvalidInput: no room"


def _refuse(*_: object) -> None:
    raise InvalidInput("no room")
