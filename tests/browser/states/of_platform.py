"""Clusters with their parts and GPUs, policies, webhooks."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.services import teams
from clusters.models import Cluster
from clusters.services import clusters
from clusters.services.cluster_selection import cluster_default
from deployments.reconcile.restarts import note_components
from deployments.services import policy_apply
from deployments.services.revisions.gpu_assignment import gpus_note
from events.models import WebhookDelivery
from events.services.subscriptions import webhook_test
from gpus.services import inventory
from integrations.clusters.base import Component, Finding, GpuPod, NodeGpus, Nodes
from integrations.machine.limits import Limit
from tests import scenes
from tests.browser.states.of_home import cluster_away, service_sick
from tests.browser.states.state import PageStates, Stage, State
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.fakes import FakeCluster

SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
MIXED = NodeGpus(
    node="gpu-1",
    product="NVIDIA-H100-80GB-HBM3",
    memory_mib=81559,
    count=2,
    strategy="mixed",
    config="custom",
    config_state="success",
    resources={SMALL: 8, LARGE: 2},
    pods=(
        GpuPod("default/digits-00001-6c7f-a", "default/digits", SMALL, 1),
        GpuPod("default/digits-00001-6c7f-b", "default/digits", SMALL, 1),
        GpuPod("vision/faces-00004-1a2b-c", "vision/faces", LARGE, 1),
        GpuPod("lab/notebook", "", SMALL, 1),
    ),
)
SINGLE = replace(
    MIXED,
    node="gpu-2",
    product="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
    memory_mib=4864,
    strategy="single",
    count=7,
    resources={"nvidia.com/gpu": 7},
    pods=(GpuPod("default/words-00002-9d-e", "default/words", "nvidia.com/gpu", 1),),
)
UNCUT = replace(MIXED, node="gpu-3", product="NVIDIA-A30", strategy="none", resources={"nvidia.com/gpu": 2}, pods=())
FOUR = replace(scenes.GPU_NODE, node="gpu-4", count=2, resources={SMALL: 14})
ALL_NODES = (MIXED, SINGLE, UNCUT, FOUR)
EVERY_SECOND = {
    "name": "every-second",
    "strategy": "canary",
    "steps": [{"weight": weight, "hold": "10m"} for weight in range(2, 100, 8)],
}


LIMITS = (
    Limit(
        "open files",
        940,
        1024,
        "gateway",
        "it answers no new connections and opens no files",
        "start the platform after `ulimit -n 65536`, under systemd with LimitNOFILE=65536 in its unit",
    ),
    Limit(
        "processes",
        497,
        512,
        "the cgroup /sys/fs/cgroup/system.slice/fairlead.service",
        "no replica and no thread can be started",
        "raise TasksMax= of its unit, or --pids-limit of its container, to 1024",
    ),
    Limit("inotify instances", 12, 128, "user 998"),
    Limit("inotify watches"),
    Limit("memory", 5_100_000_000, 16 << 30, "this machine"),
)


class _Checked(FakeCluster):
    """A cluster that was asked what services need of it."""

    found: tuple[Finding, ...] = ()

    def findings(self, namespaces: Sequence[str]) -> tuple[Finding, ...]:
        assert isinstance(namespaces, Sequence)
        return self.found


def parts(cluster: Cluster, restarts: int = 1, limits: tuple[Limit, ...] = ()) -> None:
    """Let the cluster's parts have been looked at, each time after a restart of its gateway."""
    for restart in range(1, restarts + 1):
        seen = (
            Component("envoy", True, restart, "ended by SIGKILL"),
            Component("worker", True, 0),
            Component("web", True, 0, "z" * 200),
        )
        note_components(cluster_id=cluster.pk, nodes=Nodes(seen, limits=limits), now=timezone.now())


def _platform_busy(_: Stage) -> str:
    parts(cluster_default(now=timezone.now()), restarts=12, limits=LIMITS)
    for name in ("production", "a-cluster-with-a-long-name-" + "c" * 36):
        row = Cluster.objects.create(name=name, kind="kubernetes", created_at=timezone.now())
        parts(row)
    return "/platform/"


def _platform_error(_: Stage) -> str:
    parts(cluster_default(now=timezone.now()))
    cluster_away()
    return "/platform/"


def _cluster_empty(_: Stage) -> str:
    cluster_default(now=timezone.now())
    return "/platform/clusters/local/"


def _cluster_busy(_: Stage) -> str:
    for name in ("digits", "ranker", "as-long-a-name-as-a-service-can-have-" + "x" * 20):
        scenes.service(name)
    parts(Cluster.objects.get(), restarts=12, limits=LIMITS)
    return "/platform/clusters/local/"


def _cluster_error(_: Stage) -> str:
    service = service_sick()
    service.cluster = cluster_away()
    issued = timezone.now() - timedelta(minutes=50)
    ends = {"issued_at": issued.isoformat(), "expires_at": (issued + timedelta(hours=1)).isoformat()}
    Cluster.objects.filter(pk=service.cluster.pk).update(exec_token=ends)
    service.save(update_fields=["cluster"])
    return "/platform/clusters/edge/"


def _check(stage: Stage, *found: Finding) -> str:
    cluster = cluster_default(now=timezone.now())
    fake = _Checked()
    fake.found = found
    stage.patch.setattr(clusters, "driver_of", lambda _row: fake)
    return f"/platform/clusters/{cluster.name}/check"


def _check_fine(stage: Stage) -> str:
    said = ("API server", "Gateway models", "namespace default", "namespace " + "n" * 63, "role of Fairlead", "storage")
    return _check(stage, *(Finding(about, True, f"{about} is as services need it") for about in said))


def _check_missing(stage: Stage) -> str:
    remedy = "create it with `kubectl create -n gateways -f gateway.yaml`, and let its listener allow routes from all"
    missing = Finding("Gateway models", False, "there is no Gateway gateways/models", remedy)
    return _check(stage, Finding("API server", True, "it answers as v1.31"), missing)


def _gpus(stage: Stage, cluster: FakeCluster) -> str:
    scenes.service()
    stage.patch.setattr(inventory, "driver_of", lambda _row: cluster)
    return "/platform/clusters/local/gpus"


def gpus_busy(stage: Stage) -> str:
    address = _gpus(stage, FakeCluster(gpus=ALL_NODES))
    gpus_note(cluster_id=Cluster.objects.get().pk, nodes=Nodes(gpus=ALL_NODES, unknown=""), now=timezone.now())
    scenes.repartition(FOUR, cluster="local", wanted="3 x 3g.40gb")
    return address


def _policy(document: dict[str, object]) -> None:
    policy_apply(document=document, name=None, actor="test", now=timezone.now())


def _policies_busy(_: Stage) -> str:
    for name in ("careful", "quick", "p" * 63):
        _policy({**scenes.POLICY, "name": name})
    _policy(EVERY_SECOND)
    scenes.service()
    return "/policies/"


def _policy_busy(_: Stage) -> str:
    _policy(EVERY_SECOND)
    return "/policies/every-second/"


def _types_nonsense(page: Page) -> None:
    page.get_by_role("textbox", name="The policy file as YAML").fill("name: careful\nsteps:\n- weight: 101\n")
    expect(page.locator("#policy-drawing mark").first).to_be_visible()


def _policy_error(_: Stage) -> str:
    _policy(scenes.POLICY)
    return "/policies/careful/"


def _webhooks_busy(_: Stage) -> str:
    teams.team_create(name="t" * 63, actor="test", now=timezone.now())
    scenes.webhook("RolloutHealthy", "RolloutDegraded", "RolloutAborted", url="https://a.example/" + "y" * 200)
    scenes.webhook(url="https://ci.example/hook", team="t" * 63)
    return "/webhooks/"


def _makes_a_wrong_webhook(page: Page) -> None:
    page.get_by_label("Address").fill("ftp://a.example/")
    page.get_by_role("button", name="Create webhook").click()
    expect(page.locator("#notices")).to_contain_text("ftp")


def _deliveries(*answers: tuple[str, int | None, str]) -> str:
    now = timezone.now()
    hook = scenes.webhook(url="https://a.example/hooks/fairlead").webhook
    for status, answered, said in answers:
        row = webhook_test(webhook_id=hook.pk, teams=None, actor="alice", now=now)
        fields = {"status": status, "tries": 8 if status == "FAILED" else 1, "answer_status": answered, "answer": said}
        WebhookDelivery.objects.filter(pk=row.pk).update(finished_at=now, **fields)
    return f"/webhooks/{hook.pk}/"


def _webhook_busy(_: Stage) -> str:
    return _deliveries(*[("DELIVERED", 202, "accepted " + "ok" * 120)] * 22, ("PENDING", None, ""))


def _webhook_failing(_: Stage) -> str:
    refused = ("FAILED", None, "https://a.example/ cannot be reached: the name is not known (8 tries in 24 h)")
    return _deliveries(refused, ("FAILED", 500, "<html><body>Internal Server Error</body></html>"))


def _looks_at_no_cluster(page: Page) -> None:
    page.get_by_role("button", name="Preview and check").click()
    expect(page.locator("#cluster-plan .notice").first).to_be_visible()


def _cluster_file(_: Stage) -> str:
    Cluster.objects.create(name="production", kind="kubernetes", document=LEAST, created_at=timezone.now())
    return "/platform/clusters/production/file"


PAGES = {
    "deployments:cluster-new": PageStates(
        title="New cluster",
        states={
            "empty": State(lambda _: "/platform/clusters/new", "Fairlead checks the cluster before it adds it"),
            "error": State(lambda _: "/platform/clusters/new", "New cluster", act=_looks_at_no_cluster),
        },
        without={"busy": "it begins with nothing"},
    ),
    "deployments:cluster-file": PageStates(
        title="File of cluster production",
        states={"busy": State(_cluster_file, "Edit the file, look at the difference")},
        without={
            "empty": "this machine has no file, and no such page",
            "error": "told where the file is, as of a new one",
        },
    ),
    "deployments:platform": PageStates(
        title="Platform",
        states={
            "empty": State(lambda _: "/platform/", "fairlead up"),
            "busy": State(_platform_busy, "was started again (restart 12)"),
            "error": State(_platform_error, "did not answer within 5 s"),
        },
    ),
    "deployments:cluster-detail": PageStates(
        title="Cluster",
        states={
            "empty": State(_cluster_empty, "A service file selects this cluster by"),
            "busy": State(_cluster_busy, "was started again (restart 12)"),
            "error": State(_cluster_error, "did not answer within 5 s"),
        },
    ),
    "deployments:cluster-check": PageStates(
        title="Check of cluster local",
        states={
            "busy": State(_check_fine, "Services can run here"),
            "error": State(_check_missing, "Something is missing"),
        },
        without={"empty": "a check always looks at something"},
    ),
    "deployments:cluster-gpus": PageStates(
        title="GPUs of cluster local",
        states={
            "empty": State(lambda stage: _gpus(stage, FakeCluster()), "No node offers an NVIDIA GPU"),
            "busy": State(gpus_busy, "Proposed by alice"),
            "error": State(
                lambda stage: _gpus(stage, FakeCluster(away="the cluster does not answer")), "could not query"
            ),
        },
    ),
    "deployments:policy-list": PageStates(
        title="Rollout policies",
        states={
            "empty": State(lambda _: "/policies/", "No policies yet"),
            "busy": State(_policies_busy, "every-second"),
        },
        without={"error": "it asks nobody but the database"},
    ),
    "deployments:policy-new": PageStates(
        title="New policy",
        states={
            "empty": State(lambda _: "/policies/new", "the drawing of the steps"),
            "error": State(lambda _: "/policies/new", "Line 3", act=_types_nonsense),
        },
        without={"busy": "a new policy begins with one example"},
    ),
    "deployments:policy-detail": PageStates(
        title="Policy",
        states={
            "busy": State(_policy_busy, "Rollout preview"),
            "error": State(_policy_error, "Line 3", act=_types_nonsense),
        },
        without={"empty": "every policy has a text; one without steps says so in its drawing"},
    ),
    "deployments:webhook-list": PageStates(
        title="Webhooks",
        states={
            "empty": State(lambda _: "/webhooks/", "No webhooks. A webhook posts"),
            "busy": State(_webhooks_busy, "https://ci.example/hook"),
            "error": State(lambda _: "/webhooks/", "ftp", act=_makes_a_wrong_webhook, is_refused=True),
        },
    ),
    "deployments:webhook-detail": PageStates(
        title="Webhook",
        states={
            "empty": State(lambda _: _deliveries(), "No deliveries yet"),
            "busy": State(_webhook_busy, "delivered"),
            "error": State(_webhook_failing, "the name is not known"),
        },
    ),
}
