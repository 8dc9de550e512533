"""The chart as Argo CD installs it: rendered without the cluster at every sync, and applied in waves.

Argo CD renders as `helm template` does: a first installation, of revision 1, for which `lookup` finds nothing.
"""

import copy
import re

import helm_python as helm
import pytest

from tests.charts.argo_cd import SETTINGS, patch
from tests.charts.chart import VARIATIONS, Json, objects, rendered, values
from tests.charts.waves import HOOK, Key, annotation, key, may_wait_forever, too_early, wave

ARGO_CD: Json = {"argoCD": True, "existingSecret": "fairlead-servers"}
TRIAL: Json = {**ARGO_CD, "web": {"service": {"type": "LoadBalancer"}}}
DELETE = "argocd.argoproj.io/hook-delete-policy"
everywhere = pytest.mark.parametrize("variation", VARIATIONS)


def of(variation: str, **more: object) -> Json:
    return {**values(variation), **ARGO_CD, **more}


def migrations(given: Json) -> str:
    (name,) = (each["metadata"]["name"] for each in objects(given) if "-migrations-" in each["metadata"]["name"])
    return str(name)


@everywhere
@pytest.mark.parametrize("defaults", ["auto", "compatible"])
def test_two_renderings_are_the_same_byte_for_byte(variation: str, defaults: str) -> None:
    given = of(variation, defaults=defaults)
    assert rendered(given) == rendered(given)


@pytest.mark.parametrize("given", [{"argoCD": True}, {"argoCD": True, "redis": {"enabled": False}}])
def test_secrets_that_no_one_gives_are_refused_with_the_value_to_set(given: Json) -> None:
    with pytest.raises(helm.HelmRenderError, match="argoCD is true, but existingSecret is empty; name a Secret with"):
        rendered(given)


@everywhere
def test_no_secret_comes_with_it(variation: str) -> None:
    assert [each for each in objects(of(variation)) if each["kind"] == "Secret"] == []


@everywhere
def test_a_job_is_a_hook_that_each_sync_makes_again(variation: str) -> None:
    """A Job cannot be changed: as a plain object the next version of it would be refused."""
    made = objects(of(variation))
    jobs = [each for each in made if each["kind"] in ("Job", "Pod")]
    assert jobs
    for each in jobs:
        assert annotation(each, HOOK) == "Sync", "before the phase Sync neither database nor ServiceAccount is there"
        assert annotation(each, DELETE) == "BeforeHookCreation,HookSucceeded"
    assert [key(each) for each in made if annotation(each, "helm.sh/hook")] == [], "it would be another phase's"


def test_migrations_are_named_by_what_they_run() -> None:
    first = migrations(TRIAL)
    assert re.fullmatch("fairlead-migrations-[0-9a-f]{8}", first)
    assert migrations(TRIAL) == first
    for other in ({"image": {"tag": "0.1.1"}}, {"migrations": {"deadlineSeconds": 60}}):
        assert migrations({**TRIAL, **other}) != first
    assert migrations({**TRIAL, "web": {"replicas": 5}}) == first
    assert len(migrations({**TRIAL, "fullnameOverride": "a" * 40})) <= 63


@everywhere
def test_no_object_needs_what_a_later_wave_brings(variation: str) -> None:
    assert too_early(objects(of(variation))) == []


def test_waves_bring_the_database_then_its_tables_then_the_workloads() -> None:
    waves = {key(each): wave(each) for each in objects(TRIAL)}
    database, tables = Key("StatefulSet", "fairlead-postgresql"), Key("Job", migrations(TRIAL))
    workloads = [found for each, found in waves.items() if each.kind == "Deployment" and each.name != "fairlead-redis"]
    entry = waves[Key("Job", "fairlead-cluster")]
    assert len(workloads) == 4
    assert waves[database] < waves[tables] < min(workloads) == max(workloads) < entry


@pytest.mark.parametrize("given", [*map(of, VARIATIONS), TRIAL], ids=[*VARIATIONS, "load balancer"])
def test_what_may_never_become_healthy_comes_last(given: Json) -> None:
    """Argo CD waits for each wave but the last one until all of it is healthy."""
    made = objects(given)
    last = max(map(wave, made))
    assert [key(each) for each in made if may_wait_forever(each, made) and wave(each) < last] == []


def test_a_wrong_wave_is_found() -> None:
    made = copy.deepcopy(objects(TRIAL))
    for each in made:
        if each["kind"] in ("ServiceAccount", "PersistentVolumeClaim"):
            each["metadata"].setdefault("annotations", {})["argocd.argoproj.io/sync-wave"] = "3"
    found = too_early(made)
    assert (Key("Deployment", "fairlead-web"), Key("PersistentVolumeClaim", "fairlead-artifacts")) in found
    assert (Key("Job", migrations(TRIAL)), Key("ServiceAccount", "fairlead")) in found


@everywhere
def test_what_stays_at_uninstall_is_neither_pruned_nor_deleted(variation: str) -> None:
    kept = [each for each in objects(of(variation)) if annotation(each, "helm.sh/resource-policy") == "keep"]
    for each in kept:
        assert annotation(each, "argocd.argoproj.io/sync-options") == "Prune=false,Delete=false", key(each)


@everywhere
def test_nothing_of_argo_cd_is_in_a_release_of_helm(variation: str) -> None:
    if not values(variation).get("argoCD"):
        assert "argocd" not in "".join(rendered(values(variation)).values())


def test_the_settings_of_argo_cd_are_up_to_date() -> None:
    assert SETTINGS.read_text() == patch(), "run `python -m tests.charts.argo_cd`"
