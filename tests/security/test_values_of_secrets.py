"""A planted value of a secret is in the process that it is for, in one file for its owner, and nowhere else."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from events.domain.kinds import Kind
from events.services.subscriptions import webhook_create
from integrations.clusters.base import Job, JobKind, SecretKeyRef
from integrations.clusters.local.jobs import jobs
from integrations.clusters.local.runtime import RUNTIME
from tests.accounts._support.pages import browser
from tests.deployments._support.fixtures import platform
from tests.deployments._support.platform import Platform
from tests.integrations._support.runtimes import Cluster, until

__all__ = ["browser", "platform"]
VALUE = "hf_planted-value-of-a-secret"
REF = {"name": "hugging-face", "key": "token"}
ENV = [{"name": "MODEL_TOKEN", "valueFrom": {"secretKeyRef": REF}}]
SECRET_ENV = {"MODEL_TOKEN": SecretKeyRef("hugging-face", "token")}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.close()


def holding(folder: Path) -> dict[Path, int]:
    """Return the files below a folder that have the value, with their modes."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and VALUE.encode() in path.read_bytes():
            found[path] = stat.S_IMODE(path.stat().st_mode)
    return found


def test_on_the_local_cluster_it_is_in_one_file_and_in_the_model_s_process(cluster: Cluster) -> None:
    cluster.hold()
    cluster.start()
    cluster.driver.apply_secrets("default", "digits", lambda: {"hugging-face": {"token": VALUE}})
    cluster.apply(1, cluster.revision(1, 100, secret_env=SECRET_ENV))
    cluster.until_ready(1)
    cluster.stop()
    cluster.start()  # the next agent takes the replica up, by the note of the one before
    cluster.until_ready(1)
    file = cluster.layout.secrets_file("default", "digits")
    assert holding(cluster.home) == {file: 0o600}
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    replica = cluster.pid("default.digits-00001-0")
    for command, pid in cluster.processes().items():
        assert VALUE not in command
        has_it = f"MODEL_TOKEN={VALUE}" in Path(f"/proc/{pid}/environ").read_text().split("\0")
        assert has_it == (os.getpgid(pid) == os.getpgid(replica)), command
    assert VALUE not in repr(cluster.observe())
    cluster.apply(2, cluster.revision(1, 100))
    assert holding(cluster.home) == {}, "no revision names it any more"


def test_a_failure_of_the_process_shows_its_name_and_a_missing_value_is_said(cluster: Cluster) -> None:
    cluster.start(runtime="/bin/sh -c 'echo the token is $MODEL_TOKEN >&2; exit 1'")
    cluster.apply(1, cluster.revision(1, 100, secret_env=SECRET_ENV))

    def failure() -> str:
        (revision,) = cluster.observe().revisions or (None,)
        failed = [each.failure for each in revision.replicas if each.failure] if revision is not None else []
        return " ".join([failed[0].message, *failed[0].log]) if failed else ""

    until(failure, "the replica failed")
    assert "MODEL_TOKEN is key token of secret hugging-face, which namespace default does not have" in failure()
    cluster.driver.apply_secrets("default", "digits", lambda: {"hugging-face": {"token": VALUE}})
    until(lambda: "the token is $(MODEL_TOKEN)" in failure(), "it was started again, with the value")
    assert VALUE not in repr(cluster.observe())
    assert "the token is $(MODEL_TOKEN)" in cluster.driver.log("default", "digits", "digits-00001-0")


def test_a_job_s_message_shows_its_name(cluster: Cluster, tmp_path: Path) -> None:
    says = (*RUNTIME[:-2], "-c", "import os, sys; sys.exit('failed: ' + os.environ['MODEL_TOKEN'])")
    job = Job(JobKind.INSPECT, cluster.revision(1, 100).artifact_uri, 60, env={"MODEL_TOKEN": VALUE})
    assert jobs.run(job, tmp_path / "jobs", runtime=says).message.endswith("failed: $(MODEL_TOKEN)")
    assert VALUE not in repr(job)


def test_the_control_plane_shows_and_stores_it_nowhere(
    api: Callable[..., APIClient],
    platform: Platform,
    browser: Callable[..., Client],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    client, pages = api(Scope.ADMIN), browser()
    webhook_create(
        url="https://ci.example/hook", events=sorted(Kind), description="", actor="test", now=platform.clock()
    )
    answers: list[Any] = [client.post("/api/v1/secrets", {"name": REF["name"], "values": {"token": VALUE}})]
    platform.version(1)
    document = platform.document(policy=None)
    document["spec"]["predictor"]["model"]["env"] = ENV
    service = "/api/v1/services/default/digits"
    for query in ("?dry_run=true", ""):
        answers.append(client.put(f"{service}{query}", document))
    for _ in range(3):
        platform.turn()
    answers.append(client.patch("/api/v1/secrets/default/hugging-face", {"values": {"token": f"{VALUE}-second"}}))
    document["spec"]["predictor"]["minReplicas"] = 2
    answers += [client.put(f"{service}{query}", document) for query in ("?dry_run=true", "")]
    for _ in range(3):
        platform.turn()
    answers.append(client.delete("/api/v1/secrets/default/hugging-face"))
    of_api = ("", "/revisions", "/events")
    answers += [client.get(f"{service}{each}") for each in of_api]
    answers += [
        client.get(f"/api/v1/{each}") for each in ("secrets", "audit", "services", "secrets/default/hugging-face")
    ]
    answers += [pages.get(each) for each in ("/services/default/digits/", "/audit/", "/")]
    assert platform.cluster.secrets["default", "digits"] == {"hugging-face": {"token": f"{VALUE}-second"}}
    assert [each.status_code for each in answers if each.status_code >= 500] == []
    assert sum(each.status_code < 300 for each in answers) >= 12
    assert not [each.request for each in answers if VALUE.encode() in each.getvalue()]
    assert VALUE not in caplog.text
    assert VALUE not in repr(platform.cluster.applied)
    rows = [row for model in apps.get_models() for row in model._default_manager.values()]
    assert len(rows) > 20
    assert not [row for row in rows if VALUE in str(row)]
