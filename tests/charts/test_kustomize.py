"""What is generated in `kustomize/` is what the chart makes today."""

from pathlib import Path

import pytest
import yaml

from tests.charts.kustomize import BASE, COMPONENTS, FOLDER, files, objects
from tests.charts.waves import HOOK, annotation, too_early

GENERATED = dict(files())


@pytest.mark.parametrize("path", GENERATED)
def test_a_file_is_up_to_date(path: str) -> None:
    assert (FOLDER / path).read_text() == GENERATED[path], "run `python -m tests.charts.kustomize`"


def test_no_generated_file_is_left_over() -> None:
    marked = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.yaml") if "# Generated" in file.read_text()}
    assert marked == set(GENERATED)


def test_nothing_of_helm_is_in_it() -> None:
    assert [path for path, text in GENERATED.items() if "helm" in text.lower()] == []


def test_a_job_goes_by_itself() -> None:
    jobs = [each for (kind, _), each in objects({}).items() if kind == "Job"]
    assert len(jobs) == 2
    assert {job["spec"]["ttlSecondsAfterFinished"] for job in jobs} == {600}


def test_argo_cd_and_flux_make_a_job_again() -> None:
    """A Job cannot be changed, and an overlay changes what it runs without a change of its name."""
    found = objects(BASE)
    jobs = [each for (kind, _), each in found.items() if kind == "Job"]
    assert {each["metadata"]["name"] for each in jobs} == {"fairlead-migrations", "fairlead-cluster"}
    for each in jobs:
        assert annotation(each, "kustomize.toolkit.fluxcd.io/force") == "enabled"
        assert annotation(each, HOOK) == "Sync"
        assert annotation(each, "argocd.argoproj.io/hook-delete-policy").startswith("BeforeHookCreation")
    for more in ({}, *COMPONENTS.values()):
        assert too_early(list(objects({**BASE, **more}).values())) == []


@pytest.mark.parametrize("overlay", sorted((FOLDER / "overlays").iterdir()), ids=lambda folder: folder.name)
def test_an_overlay_holds_only_differences(overlay: Path) -> None:
    lines = sum(len(file.read_text().splitlines()) for file in overlay.iterdir())
    assert lines < 60
    kinds = {each["kind"] for file in overlay.iterdir() for each in yaml.safe_load_all(file.read_text())}
    assert kinds <= {"Kustomization", "ConfigMap"}


def test_no_overlay_brings_a_secret() -> None:
    assert "kind: Secret\n" not in "".join(file.read_text() for file in FOLDER.rglob("*.yaml"))
