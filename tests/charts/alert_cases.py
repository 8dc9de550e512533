"""Series by which each alert fires, and near ones by which it does not, as `promtool test rules` takes them.

Series are of a release `fairlead` in the namespace `platform`, with a sample each 15 s; `1x20` is 1 twenty-one times.
"""

from dataclasses import dataclass, field

POD = 'namespace="platform"'
SERVICE = 'namespace="vision",service="digits"'
COUNTED = f'{SERVICE},team="readers",pod="fairlead-worker-a"'
ENDED = f'fairlead_rollouts_ended_total{{{COUNTED},phase="Degraded"}}'
FAILED_TICKS = f"fairlead_reconcile_failures_total{{{COUNTED}}}"
FAILED_TASKS = f'fairlead_tasks_failed_total{{{POD},pod="fairlead-worker-a",task="check"}}'
LEFT = f'kubelet_volume_stats_available_bytes{{{POD},persistentvolumeclaim="fairlead-artifacts"}}'
SIZE = f'kubelet_volume_stats_capacity_bytes{{{POD},persistentvolumeclaim="fairlead-artifacts"}}'
WELL = f'nv_inference_request_success{{{SERVICE},model="digits",pod="digits-1"}}'
BROKEN = f'nv_inference_request_failure{{{SERVICE},model="digits",pod="digits-1",reason="BACKEND"}}'
REFUSED = f'nv_inference_request_failure{{{SERVICE},model="digits",pod="digits-1",reason="REJECTED"}}'
SCRAPED = f'up{{{SERVICE},pod="digits-1",job="platform/fairlead-services"}}'
_OF_SERVICE = {"namespace": "vision", "service": "digits", "team": "readers"}
_OF_MODEL = {"namespace": "vision", "service": "digits", "model": "digits"}
HERE = {"namespace": "platform"}


def up(component: str, pod: str = "x") -> str:
    """Return the series of a pod's scrapes."""
    return f'up{{{POD},pod="fairlead-{component}-{pod}",job="fairlead"}}'


@dataclass(frozen=True)
class Case:
    """Series, and what an alert makes of them at a time.

    Attributes:
        id: what happened.
        at: when to look, as Prometheus writes durations.
        summary: that of the alert which fires; empty where it must not.
        labels: those of the alert, but for its severity.
    """

    alert: str
    id: str
    series: dict[str, str]
    at: str
    summary: str = ""
    labels: dict[str, str] = field(default_factory=dict)


def _gone(alert: str, component: str, at: str, soon: str, summary: str) -> tuple[Case, ...]:
    elsewhere = {f'up{{namespace="other",pod="fairlead-{component}-x",job="fairlead"}}': "1x200"}
    return (
        Case(alert, "all pods are gone", {up(component): "1x4 stale"}, at, summary, HERE),
        Case(alert, "no scrape succeeds", {up(component): "0x200"}, at, summary, HERE),
        Case(alert, "another installation is well", elsewhere, at, summary, HERE),
        Case(alert, "one of two is left", {up(component): "0x200", up(component, "y"): "1x200"}, at),
        Case(alert, "gone for a moment", {up(component): "1x4 stale _x1 1x200"}, soon),
    )


_WEB = f'fairlead_database_up{{{POD},pod="fairlead-web-a"}}'
_OTHER_WEB = f'fairlead_database_up{{{POD},pod="fairlead-web-b"}}'
_ELSEWHERE = 'fairlead_database_up{namespace="other",pod="fairlead-web-a"}'
_NO_WEB = "No web pod of Fairlead in platform shows its metrics."
_WATCHES = f'fairlead_watches{{{POD},pod="fairlead-watcher-a",cluster="eu"}}'
_STORED = f'fairlead_usage_stored_timestamp_seconds{{{POD},pod="fairlead-usage-collector-a"}}'
_LAG = f'fairlead_sweep_lag_seconds{{{POD},pod="fairlead-web-a"}}'
_SINK_LAG = f'fairlead_audit_sink_lag_seconds{{{POD},pod="fairlead-web-a",sink="webhook"}}'
_OTHER_SINK_LAG = f'fairlead_audit_sink_lag_seconds{{{POD},pod="fairlead-web-b",sink="webhook"}}'
_DEPTH = f'fairlead_queue_depth{{{POD},pod="fairlead-web-a",queue="celery"}}'

CASES = (
    Case("FairleadWebDown", "all web pods are gone", {_WEB: "1x4 stale"}, "4m", _NO_WEB, HERE),
    Case("FairleadWebDown", "web was never there", {_ELSEWHERE: "1x200"}, "3m", _NO_WEB, HERE),
    Case("FairleadWebDown", "one of two is gone", {_WEB: "1x4 stale", _OTHER_WEB: "1x200"}, "10m"),
    Case("FairleadWebDown", "web answers, its database does not", {_WEB: "0x200"}, "10m"),
    *_gone("FairleadWorkerDown", "worker", "5m", "3m", "No worker of Fairlead in platform shows its metrics."),
    *_gone("FairleadBeatDown", "beat", "8m", "6m", "The beat of Fairlead in platform shows no metrics."),
    *_gone("FairleadWatcherDown", "watcher", "13m", "11m", "The watcher of Fairlead in platform shows no metrics."),
    Case(
        "FairleadDatabaseDown",
        "one web pod cannot reach it",
        {_WEB: "0x200", _OTHER_WEB: "1x200"},
        "3m",
        "The control plane's database does not answer.",
        {**HERE, "pod": "fairlead-web-a"},
    ),
    Case("FairleadDatabaseDown", "it answers", {_WEB: "1x200"}, "10m"),
    Case(
        "FairleadReconcilerBehind",
        "no tick for three minutes",
        {_LAG: "0+15x200"},
        "5m",
        "A service in the installation platform has waited 5m 0s for its tick.",
        HERE,
    ),
    Case("FairleadReconcilerBehind", "a slow minute", {_LAG: "0x4 40x3 0x200"}, "5m"),
    Case(
        "FairleadReconcileFails",
        "each tick of one service fails",
        {FAILED_TICKS: "0+7x200"},
        "15m",
        "Ticks of vision/digits (team readers) fail.",
        _OF_SERVICE,
    ),
    Case("FairleadReconcileFails", "one failed", {FAILED_TICKS: "0x4 1x200"}, "15m"),
    Case(
        "FairleadTasksFail",
        "a task fails again and again",
        {FAILED_TASKS: "0+1x200"},
        "15m",
        "The task check fails.",
        {**HERE, "task": "check"},
    ),
    Case("FairleadTasksFail", "no task failed lately", {FAILED_TASKS: "7x200"}, "15m"),
    Case(
        "FairleadQueueGrows",
        "tasks wait, which two web pods show",
        {_DEPTH: "120x200", _DEPTH.replace("web-a", "web-b"): "130x200"},
        "20m",
        "130 tasks have waited for a quarter of an hour in celery.",
        {**HERE, "queue": "celery"},
    ),
    Case("FairleadQueueGrows", "many tasks that are done at once", {_DEPTH: "500x40 3x1 500x200"}, "20m"),
    Case(
        "FairleadAuditSinkLags",
        "it takes nothing, which two web pods show",
        {_SINK_LAG: "0+15x400", _OTHER_SINK_LAG: "0+15x400"},
        "25m",
        "The webhook sink of the audit log of platform is 25m 0s behind.",
        {**HERE, "sink": "webhook"},
    ),
    Case("FairleadAuditSinkLags", "it came back within the time", {_SINK_LAG: "0+15x70 0x400"}, "25m"),
    Case("FairleadAuditSinkLags", "always a little behind, so that its queue goes", {_SINK_LAG: "60x400"}, "90m"),
    Case(
        "FairleadRolloutDegraded",
        "one failed",
        {ENDED: "0x20 1x200"},
        "7m",
        "A rollout of vision/digits (team readers) failed.",
        _OF_SERVICE,
    ),
    Case(
        "FairleadRolloutDegraded",
        "one failed again, of another worker",
        {ENDED: "3x200", ENDED.replace("worker-a", "worker-b"): "1x20 2x200"},
        "7m",
        "A rollout of vision/digits (team readers) failed.",
        _OF_SERVICE,
    ),
    Case("FairleadRolloutDegraded", "three failed long ago", {ENDED: "3x200"}, "20m"),
    Case("FairleadRolloutDegraded", "a worker begins again", {ENDED: "3x20 0x200"}, "7m"),
    Case("FairleadRolloutDegraded", "somebody aborted one", {ENDED.replace("Degraded", "Aborted"): "0x20 1x200"}, "7m"),
    Case(
        "FairleadClusterNotWatched",
        "no watch streams",
        {_WATCHES: "0x200"},
        "11m",
        "The cluster eu is not watched.",
        {**HERE, "cluster": "eu", "pod": "fairlead-watcher-a"},
    ),
    Case("FairleadClusterNotWatched", "watches begin again", {_WATCHES: "5x10 0x4 5x200"}, "11m"),
    Case(
        "FairleadUsageNotStored",
        "the database refuses since the start",
        {_STORED: "0x200"},
        "8m",
        "The usage collector fairlead-usage-collector-a stores nothing.",
        {**HERE, "pod": "fairlead-usage-collector-a"},
    ),
    Case("FairleadUsageNotStored", "it stores with each scrape", {_STORED: "0+15x200"}, "20m"),
    Case(
        "FairleadUsageNotStored", "the database was away for four minutes", {_STORED: "0+15x8 120x16 360+15x200"}, "7m"
    ),
    Case(
        "FairleadVolumeFills",
        "a twentieth is left",
        {LEFT: "2684354560x200", SIZE: "53687091200x200"},
        "6m",
        "The volume fairlead-artifacts in platform has 2.5GiB left, less than a tenth.",
        {**HERE, "persistentvolumeclaim": "fairlead-artifacts"},
    ),
    Case("FairleadVolumeFills", "a fifth is left", {LEFT: "10x200", SIZE: "50x200"}, "20m"),
    Case(
        "FairleadVolumeFills",
        "a volume of another namespace fills",
        {LEFT.replace("platform", "other"): "1x200", SIZE.replace("platform", "other"): "50x200"},
        "20m",
    ),
    Case(
        "FairleadReplicaSilent",
        "a replica does not answer",
        {SCRAPED: "0x200"},
        "6m",
        "digits-1 of vision/digits shows no metrics.",
        {"namespace": "vision", "service": "digits", "pod": "digits-1", "job": "platform/fairlead-services"},
    ),
    Case("FairleadReplicaSilent", "a replica starts", {SCRAPED: "0x8 1x200"}, "6m"),
    Case(
        "FairleadModelFails",
        "two of a hundred fail",
        {WELL: "0+98x200", BROKEN: "0+2x200"},
        "12m",
        "More than 1 % of the requests to vision/digits fail in the model.",
        _OF_MODEL,
    ),
    Case(
        "FairleadModelFails",
        "all fail",
        {WELL: "0x200", BROKEN: "0+5x200"},
        "12m",
        "More than 1 % of the requests to vision/digits fail in the model.",
        _OF_MODEL,
    ),
    Case(
        "FairleadModelFails",
        "a service of that name in another namespace is well",
        {
            WELL: "0+98x200",
            BROKEN: "0+2x200",
            WELL.replace("vision", "text"): "0+10000x200",
            BROKEN.replace("vision", "text"): "0x200",
        },
        "12m",
        "More than 1 % of the requests to vision/digits fail in the model.",
        _OF_MODEL,
    ),
    Case("FairleadModelFails", "one of a thousand fails", {WELL: "0+999x200", BROKEN: "0+1x200"}, "12m"),
    Case(
        "FairleadQueueRefuses",
        "requests are refused",
        {REFUSED: "0+1x200"},
        "12m",
        "vision/digits refuses requests.",
        _OF_MODEL,
    ),
    Case("FairleadQueueRefuses", "requests fail otherwise", {BROKEN: "0+1x200", REFUSED: "4x200"}, "12m"),
)
