"""Series by which each alert fires, and near ones by which it does not, as `promtool test rules` takes them.

Series are of a release `fairlead` in the namespace `platform`, with a sample each 15 s; `1x20` is 1 twenty-one times.
"""

from dataclasses import dataclass, field

POD = 'namespace="platform"'
SERVICE = 'namespace="vision",service="digits"'
COUNTED_BY_WEB = f'{SERVICE},team="readers",pod="fairlead-web'
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
_OF_POOL = {"namespace": "vision", "service": "digits"}
_NEVER_FITS = f'fairlead_pool_load_failures{{{SERVICE},pod="digits-1",reason="too-large"}}'
_NO_ROOM = f'fairlead_pool_load_failures{{{SERVICE},pod="digits-1",reason="no-room"}}'
HERE = {"namespace": "platform"}


def up(component: str, pod: str = "x") -> str:
    """Return the series of a pod's scrapes."""
    return f'up{{{POD},pod="fairlead-{component}-{pod}",job="fairlead"}}'


def of_pool(*, hits: str, misses: str, evictions: str, pod: str = "digits-1") -> dict[str, str]:
    """Return the counters of a pool's replica."""
    of = f'{{{SERVICE},pod="{pod}"}}'
    counters = {"hits": hits, "misses": misses, "evictions": evictions}
    return {f"fairlead_pool_{name}{of}": values for name, values in counters.items()}


def objective(name: str, ratio: float, pod: str = "a") -> dict[str, str]:
    """Return the series of an objective of the service, by the minute."""
    return {f'fairlead_service_objective_ratio{{{COUNTED_BY_WEB}-{pod}",objective="{name}"}}': f"{ratio}x400"}


def of_revision(number: int, well: str, broken: str, model: str = "digits") -> dict[str, str]:
    """Return the request counters of a revision's replica."""
    of = f'{SERVICE},model="{model}",revision="digits-0000{number}",pod="digits-{number}"'
    return {
        f"nv_inference_request_success{{{of}}}": well,
        f'nv_inference_request_failure{{{of},reason="BACKEND"}}': broken,
        f'nv_inference_request_failure{{{of},reason="REJECTED"}}': "0x400",
        f'nv_inference_request_failure{{{of},reason="OTHER"}}': "0+30x400",
        f'nv_inference_request_failure{{{of},reason="CANCELED"}}': "0+30x400",
    }


def answered(within: str, later: str, all_: str, le: str = "200000") -> dict[str, str]:
    """Return the latency histogram of a replica: answers up to the objective's time, the next bound and in all."""
    of = f'{SERVICE},model="digits",revision="digits-00001",pod="digits-1"'
    name = "fairlead_inference_request_duration_us"
    return {
        f'{name}_bucket{{{of},le="{le}"}}': within,
        f'{name}_bucket{{{of},le="300000"}}': later,
        f'{name}_bucket{{{of},le="+Inf"}}': all_,
        f"{name}_count{{{of}}}": all_,
        f'fairlead_service_objective_latency_seconds{{{COUNTED_BY_WEB}-a"}}': "0.2x400",
    }


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


_UPGRADE = f'fairlead_fleet_upgrade_paused{{{POD},pod="fairlead-web-a",upgrade="7"}}'
_WEB = f'fairlead_database_up{{{POD},pod="fairlead-web-a"}}'
_OTHER_WEB = f'fairlead_database_up{{{POD},pod="fairlead-web-b"}}'
_ELSEWHERE = 'fairlead_database_up{namespace="other",pod="fairlead-web-a"}'
_NO_WEB = "No web pod of Fairlead in platform shows its metrics."
_WATCHES = f'fairlead_watches{{{POD},pod="fairlead-watcher-a",cluster="eu"}}'
_STORED = f'fairlead_usage_stored_timestamp_seconds{{{POD},pod="fairlead-usage-collector-a"}}'
_LAG = f'fairlead_sweep_lag_seconds{{{POD},pod="fairlead-web-a"}}'
_SINK_LAG = f'fairlead_audit_sink_lag_seconds{{{POD},pod="fairlead-web-a",sink="webhook"}}'
_OTHER_SINK_LAG = f'fairlead_audit_sink_lag_seconds{{{POD},pod="fairlead-web-b",sink="webhook"}}'
_WAITS = (
    'fairlead_rollout_waiting_seconds{namespace="vision",service="digits",rollout="7",phase="Progressing",'
    'reason="CanaryStarting"}'
)
_TURNS = f'fairlead_rollout_turn_interval_seconds_count{{{POD},pod="fairlead-worker-a"}}'
_IN_TIME = f'fairlead_rollout_turn_interval_seconds_bucket{{{POD},pod="fairlead-worker-a",le="10.0"}}'
_CLUSTER_UP = f'fairlead_cluster_up{{{POD},pod="fairlead-web-a",cluster="eu"}}'
_EXPIRES = f'fairlead_credential_expires_timestamp_seconds{{{POD},pod="fairlead-web-a",cluster="eu",kind="token"}}'
_OF_TOKEN = {**HERE, "cluster": "eu", "kind": "token"}
_RENEWED = f'{{{POD},pod="fairlead-web-a",cluster="eu",kind="mounted_token"}}'
_RENEWED_ENDS = f"fairlead_credential_expires_timestamp_seconds{_RENEWED}"
_RENEWED_MADE = f"fairlead_credential_issued_timestamp_seconds{_RENEWED}"
_DEPTH = f'fairlead_queue_depth{{{POD},pod="fairlead-web-a",queue="celery"}}'
_AVAILABLE = objective("availability", 0.999)
_OF_AVAILABILITY = {**_OF_SERVICE, "objective": "availability"}
_SHADOW = {
    f'fairlead_rollout_info{{{SERVICE},rollout="7",revision="digits-00002",policy="careful",phase="Progressing"}}': (
        "1x60 stale"
    ),
    f'fairlead_rollout_weight_percent{{{SERVICE},rollout="7",kind="desired"}}': "0x60 stale",
}


def _burns(objective: str, times: str) -> str:
    return f"vision/digits (team readers) burns its {objective} budget {times} times as fast as its objective allows."


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
        "FairleadRolloutStuck",
        "its canary does not start",
        {_WAITS: "3600+15x200"},
        "10m",
        "A rollout of vision/digits has waited 1h 10m 0s: CanaryStarting.",
        {"namespace": "vision", "service": "digits", "rollout": "7", "reason": "CanaryStarting"},
    ),
    Case("FairleadRolloutStuck", "it waits for half an hour", {_WAITS: "1800+0x200"}, "30m"),
    Case(
        "FairleadRolloutStuck",
        "it waits for a person",
        {_WAITS.replace("CanaryStarting", "AwaitingApproval"): "86400+15x200"},
        "30m",
    ),
    Case(
        "FairleadFleetUpgradePaused",
        "a service of it failed",
        {_UPGRADE: "0x20 1x200"},
        "30m",
        "Upgrade 7 of the fleet is paused.",
        {"namespace": "platform", "upgrade": "7"},
    ),
    Case("FairleadFleetUpgradePaused", "it goes on within minutes", {_UPGRADE: "0x20 1x20 0x200"}, "12m"),
    Case(
        "FairleadTurnsLate",
        "one of ten is late",
        {_TURNS: "0+10x400", _IN_TIME: "0+9x400"},
        "30m",
        "10% of the turns of services in rollout in platform come later than 10 s.",
        HERE,
    ),
    Case("FairleadTurnsLate", "one of a hundred is late", {_TURNS: "0+100x400", _IN_TIME: "0+99x400"}, "30m"),
    Case("FairleadTurnsLate", "no service is in rollout", {_TURNS: "9x400", _IN_TIME: "3x400"}, "30m"),
    Case(
        "FairleadClusterAway",
        "it does not answer",
        {_CLUSTER_UP: "1x4 0x200", _CLUSTER_UP.replace("web-a", "web-b"): "1x4 0x200"},
        "8m",
        "The cluster eu does not answer.",
        {**HERE, "cluster": "eu"},
    ),
    Case("FairleadClusterAway", "it comes back", {_CLUSTER_UP: "1x4 0x8 1x200"}, "8m"),
    Case(
        "FairleadCredentialExpires",
        "29 days are left",
        {_EXPIRES: "2506800x200"},
        "20m",
        "The token of the cluster eu expires in 29d 0h 0m 0s.",
        _OF_TOKEN,
    ),
    Case("FairleadCredentialExpires", "31 days are left", {_EXPIRES: "2678400x200"}, "20m"),
    Case(
        "FairleadCredentialExpiresSoon",
        "an hour is left",
        {_EXPIRES: "4800x200"},
        "20m",
        "The token of the cluster eu expires in 1h 0m 0s.",
        _OF_TOKEN,
    ),
    Case("FairleadCredentialExpiresSoon", "eight days are left", {_EXPIRES: "692400x200"}, "20m"),
    Case(
        "FairleadCredentialNotRenewed",
        "the kubelet no longer renews a token of an hour",
        {_RENEWED_ENDS: "3600x400", _RENEWED_MADE: "0x400"},
        "60m",
        "The mounted_token of the cluster eu is not renewed.",
        {**HERE, "cluster": "eu", "kind": "mounted_token"},
    ),
    Case(
        "FairleadCredentialNotRenewed",
        "a token that does not say when it was made has ended",
        {_RENEWED_ENDS: "3600x400"},
        "66m",
        "The mounted_token of the cluster eu is not renewed.",
        {**HERE, "cluster": "eu", "kind": "mounted_token"},
    ),
    Case(
        "FairleadCredentialNotRenewed",
        "a token of an hour is renewed with a fifth left",
        {_RENEWED_ENDS: "3600x192 6480x200", _RENEWED_MADE: "0x192 2880x200"},
        "60m",
    ),
    Case("FairleadCredentialExpires", "a token of an hour renews itself", {_RENEWED_ENDS: "3600x200"}, "20m"),
    Case("FairleadCredentialExpiresSoon", "a token of an hour renews itself", {_RENEWED_ENDS: "3600x200"}, "20m"),
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
    Case(
        "FairleadPoolThrashing",
        "a third of the requests evict a model",
        of_pool(hits="0+20x200", misses="0+10x200", evictions="0+10x200"),
        "40m",
        "The model pool vision/digits evicts a model for more than a fifth of its requests.",
        _OF_POOL,
    ),
    Case(
        "FairleadPoolThrashing",
        "one of two replicas evicts, a tenth of the requests of both",
        {
            **of_pool(hits="0+20x200", misses="0+5x200", evictions="0+5x200"),
            **of_pool(hits="0+25x200", misses="0x200", evictions="0x200", pod="digits-2"),
        },
        "40m",
    ),
    Case(
        "FairleadPoolThrashing",
        "few requests, of which each evicts",
        of_pool(hits="0x200", misses="0x80 1x120", evictions="0x80 1x120"),
        "40m",
    ),
    Case(
        "FairleadPoolThrashing",
        "it fills again after a restart",
        of_pool(hits="0+20x200", misses="0+10x20 200x180", evictions="0+10x20 200x180"),
        "40m",
    ),
    Case(
        "FairleadPoolModelNeverFits",
        "clients ask again and again",
        {_NEVER_FITS: "0+2x200"},
        "10m",
        "Clients ask the model pool vision/digits for a model that never fits into it.",
        _OF_POOL,
    ),
    Case("FairleadPoolModelNeverFits", "they asked an hour ago", {_NEVER_FITS: "0+2x20 40x300"}, "70m"),
    Case("FairleadPoolModelNeverFits", "there is no room for a moment", {_NO_ROOM: "0+2x200"}, "10m"),
    Case(
        "FairleadDataDrift",
        "two features have drifted",
        {f'fairlead_drift_alarms{{{COUNTED_BY_WEB}-a"}}': "0x8 2x200"},
        "5m",
        "2 features of vision/digits (team readers) have drifted from their reference.",
        _OF_SERVICE,
    ),
    Case(
        "FairleadDataDrift",
        "the present was accepted",
        {f'fairlead_drift_alarms{{{COUNTED_BY_WEB}-a"}}': "2x8 0x200"},
        "5m",
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "2 % fail, which two web pods show the objective of",
        {**_AVAILABLE, **objective("availability", 0.999, "b"), **of_revision(1, "0+98x100", "0+2x100")},
        "70m",
        _burns("availability", "20.0"),
        _OF_AVAILABILITY,
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "all of few requests fail",
        {**_AVAILABLE, **of_revision(1, "0x100", "0 0+1x100")},
        "20m",
        _burns("availability", "1000.0"),
        _OF_AVAILABILITY,
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "2 % of the answers are slow, at a Prometheus that writes bounds with a decimal",
        {**objective("latency", 0.999), **answered("0+98x100", "0+100x100", "0+100x100", "200000.0")},
        "70m",
        _burns("latency", "20.0"),
        {**_OF_SERVICE, "objective": "latency"},
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "answers take all of their time",
        {**objective("latency", 0.99), **answered("0+100x100", "0+100x100", "0+100x100")},
        "70m",
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "one of ten requests fails",
        {**_AVAILABLE, **of_revision(1, "0x50 0+1x8 8x20", "0x58 1x20")},
        "60m",
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "it is over",
        {**_AVAILABLE, **of_revision(1, "0+98x40 3920+100x60", "0+2x40 80x60")},
        "55m",
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "callers break off and send what it refuses",
        {**_AVAILABLE, **of_revision(1, "0+1x100", "0x100")},
        "70m",
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "a step of its ensemble fails and is repeated",
        {
            **_AVAILABLE,
            **of_revision(1, "0+100x100", "0x100"),
            **of_revision(2, "0+50x100", "0+50x100", model="digits-step"),
        },
        "70m",
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "the copies for a shadow fail",
        {**_AVAILABLE, **_SHADOW, **of_revision(1, "0+100x100", "0x100"), **of_revision(2, "0x60", "0+100x60")},
        "55m",
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "a shadow failed and its rollout ended",
        {**_AVAILABLE, **_SHADOW, **of_revision(1, "0+100x100", "0x100"), **of_revision(2, "0x60", "0+100x60")},
        "63m",
    ),
    Case(
        "FairleadErrorBudgetBurnsFast",
        "a canary with a weight fails",
        {
            **_AVAILABLE,
            **{name: values.replace("0x60", "10x60") for name, values in _SHADOW.items()},
            **of_revision(1, "0+90x100", "0x100"),
            **of_revision(2, "0x60", "0+10x60"),
        },
        "55m",
        _burns("availability", "100.0"),
        _OF_AVAILABILITY,
    ),
    Case(
        "FairleadErrorBudgetBurns",
        "0.8 % fail for six hours",
        {**_AVAILABLE, **of_revision(1, "0+992x400", "0+8x400")},
        "380m",
        _burns("availability", "8.0"),
        _OF_AVAILABILITY,
    ),
    Case(
        "FairleadErrorBudgetBurns",
        "0.5 % fail for six hours",
        {**_AVAILABLE, **of_revision(1, "0+995x400", "0+5x400")},
        "380m",
    ),
    Case(
        "FairleadErrorBudgetBurnsSlowly",
        "0.2 % fail",
        {**_AVAILABLE, **of_revision(1, "0+998x400", "0+2x400")},
        "380m",
        _burns("availability", "2.0"),
        _OF_AVAILABILITY,
    ),
    Case(
        "FairleadErrorBudgetBurnsSlowly",
        "0.2 % of few requests fail, too few to judge",
        {**_AVAILABLE, **of_revision(1, "0+10x400", "0x100 3x100 5x100 9x100")},
        "380m",
    ),
    Case(
        "FairleadErrorBudgetBurnsSlowly",
        "2 % fail of a service without objectives",
        of_revision(1, "0+98x400", "0+2x400"),
        "380m",
    ),
)
