"""After a restore to another folder, versions and revisions find their files there."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from deployments.models import Revision
from registry.models import ModelVersion
from tests.deployments._support.platform import Platform


def test_versions_and_revisions_follow_the_folder(platform: Platform, tmp_path: Path) -> None:
    platform.live()
    (tmp_path / "digits-1").mkdir()
    call_command("artifacts_moved", "file:///artifacts", "file:///new%20home/artifacts", present_in=tmp_path)
    assert ModelVersion.objects.get().artifact_uri == "file:///new%20home/artifacts/digits-1"
    assert Revision.objects.get().artifact_uri == "file:///new%20home/artifacts/digits-1"


def test_an_address_elsewhere_stays(platform: Platform) -> None:
    platform.live()
    call_command("artifacts_moved", "file:///art", "file:///new")
    assert ModelVersion.objects.get().artifact_uri == "file:///artifacts/digits-1"


def test_a_missing_artifact_is_named_and_nothing_is_moved(platform: Platform, tmp_path: Path) -> None:
    platform.live()
    with pytest.raises(CommandError, match=r"the files of digits version 1 .* are missing"):
        call_command("artifacts_moved", "file:///artifacts", "file:///new", present_in=tmp_path)
    assert ModelVersion.objects.get().artifact_uri == "file:///artifacts/digits-1"
