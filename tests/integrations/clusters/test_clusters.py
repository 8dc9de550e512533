from pathlib import Path

import pytest

from common.errors import InvalidInput
from integrations.clusters import driver_for
from integrations.clusters.local.driver import LocalDriver


def test_local_cluster_has_the_local_driver(tmp_path: Path) -> None:
    assert isinstance(driver_for("local", cluster_folder=tmp_path), LocalDriver)


def test_unknown_kind_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'nomad'; the only kind is 'local'"):
        driver_for("nomad", cluster_folder=tmp_path)
