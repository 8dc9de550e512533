"""The pages of builds: forms that offer what makes sense, each build with its address, and Home."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services.teams import ownership_set
from clusters.models import Cluster
from deployments.models import Revision
from jobs.domain.attempts import STOPPED
from model_jobs.models import Build
from registry.models import ModelVersion
from tests import scenes
from tests.accounts._support.pages import Browser, page
from tests.deployments._support.pages import signed_in, text

pytestmark = pytest.mark.django_db
PAGE = "/models/digits/versions/1/builds/"


def ended(row: Build, **fields: object) -> None:
    Build.objects.filter(pk=row.pk).update(**{"finished_at": timezone.now(), "next_try_at": None, **fields})


def test_a_build_is_asked_for_followed_and_stopped() -> None:
    scenes.model_version(1)
    client = signed_in(Scope.WRITE)
    assert PAGE in text(client, "/models/digits/versions/1/")
    answer = client.post(PAGE, {"kind": "fp16"})
    row = Build.objects.get()
    assert answer["Location"] == f"{PAGE}{row.pk}/"
    assert row.order["precision"] == "fp16"
    shown = text(client, answer["Location"])
    assert "It waits for its turn; cluster local makes one build at a time" in shown
    assert 'value="fp16"' in text(client, PAGE)
    assert f"{PAGE}{row.pk}/" in text(client, "/models/digits/versions/1/")

    client.post(f"{PAGE}{row.pk}/stop")
    row.refresh_from_db()
    assert (row.status, row.reason) == ("FAILED", STOPPED)
    assert "Somebody stopped it." in text(client, f"{PAGE}{row.pk}/")
    assert AuditEntry.objects.filter(action="build.stop").count() == 1
    assert client.post(f"{PAGE}{row.pk}/stop").status_code == 409


def test_what_it_became_is_linked_with_its_state_and_the_ways_on() -> None:
    scenes.model_version(1)
    row = scenes.build()
    report = {"made": {"precision": "fp16", "onnxruntime": "1.31.0"}}
    ended(row, status="DONE", version=scenes.model_version(2), report=report)
    shown = text(signed_in(), f"{PAGE}{row.pk}/")
    assert "/models/digits/versions/2/compare?with=1" in shown
    assert "/deploy/digits/2/" in shown
    assert "<dt>Onnxruntime</dt><dd><code>1.31.0</code></dd>" in shown
    assert "version 2</a>" in text(signed_in(), PAGE)


def test_only_what_makes_sense_is_offered() -> None:
    row = scenes.model_version(1)
    client = signed_in(Scope.WRITE)
    assert '<option value="int8" disabled>' in text(client, PAGE), "a file has no calibration.npz"
    ModelVersion.objects.update(source_name="digits.tar")
    assert '<option value="int8">' in text(client, PAGE)
    ModelVersion.objects.update(platform="tensorrt_plan")
    shown = text(client, PAGE)
    assert "builds begin with an ONNX model, and this one is tensorrt_plan" in shown
    assert "Start build" not in shown
    assert PAGE not in text(client, f"/models/digits/versions/{row.number}/")
    ModelVersion.objects.update(platform="onnxruntime_onnx", status="PENDING")
    assert "it is PENDING, not READY" in text(client, PAGE)


def test_a_plan_is_built_on_what_a_service_has_or_what_is_named() -> None:
    service = scenes.service()
    Revision.objects.filter(service=service).update(accelerator="nvidia.com/mig-1g.10gb")
    nodes = [{**_node(), "resources": {"nvidia.com/mig-3g.40gb": 2}}]
    Cluster.objects.update(gpus={"nodes": nodes, "unknown": ""}, gpus_at=timezone.now())
    client = signed_in(Scope.WRITE)
    shown = text(client, PAGE)
    assert "what default/digits has (nvidia.com/mig-1g.10gb)" in shown
    assert '<option value="resource nvidia.com/mig-3g.40gb">' in shown

    plan = {"kind": "plan", "precision": "fp16", "profiles": "image:1x4:8x4:32x4"}
    for on, resource in (
        ("service default/digits", "nvidia.com/mig-1g.10gb"),
        ("resource nvidia.com/mig-3g.40gb", "nvidia.com/mig-3g.40gb"),
    ):
        assert client.post(PAGE, {**plan, "on": on}).status_code == 302
        assert Build.objects.latest("pk").order["accelerator"] == resource
    refused = client.post(PAGE, {**plan, "on": ""})
    assert (refused.status_code, "name one" in refused.content.decode()) == (400, True)


def _node() -> dict[str, object]:
    return {
        "node": "gpu-1",
        "product": "NVIDIA-H100-80GB-HBM3",
        "memory_mib": 81559,
        "count": 1,
        "strategy": "mixed",
        "config": "",
        "config_state": "",
        "resources": {},
        "pods": [],
    }


def test_who_may_not_write_sees_how_it_goes_and_changes_nothing(browser: Browser) -> None:
    scenes.model_version(1)
    row = scenes.build()
    viewer = browser("default", Role.VIEWER)
    assert "Start build" not in page(viewer, PAGE)
    assert "Stop this build?" not in page(viewer, f"{PAGE}{row.pk}/")
    assert viewer.post(PAGE, {"kind": "fp16"}).status_code == 403
    assert viewer.post(f"{PAGE}{row.pk}/stop").status_code == 403


def test_another_teams_builds_are_nobody_elses(browser: Browser) -> None:
    scenes.model_version(1)
    row = scenes.build()
    viewer = browser("default", Role.VIEWER)
    ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=timezone.now())
    for address in (PAGE, f"{PAGE}{row.pk}/", f"{PAGE}{row.pk}/stream"):
        assert viewer.get(address).status_code == 404, address
    assert f"{PAGE}{row.pk}/" not in page(viewer, "/")


def test_home_shows_those_that_go_on_and_those_that_failed_lately() -> None:
    scenes.service()
    going, failed, stopped, old = (scenes.build() for _ in range(4))
    ended(failed, status="FAILED", reason="the model cannot be built so")
    ended(stopped, status="FAILED", reason=STOPPED)
    ended(old, status="FAILED", finished_at=timezone.now() - timedelta(days=2))
    tuning = scenes.tuning()
    shown = text(signed_in(), "/")
    rolling = shown.partition('id="home-rolling"')[2].partition("</section>")[0]
    broken = shown.partition('id="home-broken"')[2].partition("</section>")[0]
    assert re.findall(r"/(builds|tunings)/(\d+)/", rolling) == [("builds", str(going.pk)), ("tunings", str(tuning.pk))]
    assert re.findall(r"/(builds|tunings)/(\d+)/", broken) == [("builds", str(failed.pk))]
    assert "The model cannot be built so" in broken
    assert "<strong>1</strong> failed" in shown


def test_the_number_of_queries_does_not_grow(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    scenes.model_version(1)
    client = signed_in()
    client.get(PAGE)
    scenes.build()
    with django_assert_num_queries(8) as few:
        client.get(PAGE)
    for _ in range(5):
        scenes.build()
    with django_assert_num_queries(len(few.captured_queries)):
        client.get(PAGE)
