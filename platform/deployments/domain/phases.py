"""Phases of services and rollouts, and the reason of a rollout's phase. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class ServicePhase(StrEnum):
    """The phase of a service."""

    PENDING = "Pending"
    READY = "Ready"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    STOPPED = "Stopped"
    DELETING = "Deleting"


class Phase(StrEnum):
    """The phase of a rollout (Argo Rollouts' words)."""

    PENDING = "Pending"
    PROGRESSING = "Progressing"
    PAUSED = "Paused"
    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    ABORTED = "Aborted"

    @property
    def is_finished(self) -> bool:
        """Return whether the rollout is over; only a retry leaves such a phase."""
        return self in (Phase.HEALTHY, Phase.DEGRADED, Phase.ABORTED)


ENDED_BADLY = (Phase.DEGRADED, Phase.ABORTED)
"""Phases of a rollout whose new version does not go live."""


class Code(StrEnum):
    """The code of a reason, for programs; the sentence beside it is for people."""

    # it waits
    CANARY_STARTING = "CanaryStarting"
    CANARY_NOT_READY = "CanaryNotReady"
    WAITING_FOR_GATEWAY = "WaitingForGateway"
    HOLDING = "Holding"
    NO_TRAFFIC = "NoTraffic"
    ANALYSIS_RUNNING = "AnalysisRunning"
    METRICS_UNAVAILABLE = "MetricsUnavailable"
    CLUSTER_UNAVAILABLE = "ClusterUnavailable"
    PROMOTING = "Promoting"
    WAITING_FOR_WEBHOOK = "WaitingForWebhook"
    AWAITING_APPROVAL = "AwaitingApproval"
    PAUSED_BY_STEP = "PausedByStep"
    PAUSED_BY_WEBHOOK = "PausedByWebhook"
    PAUSED_INCONCLUSIVE = "PausedInconclusive"
    PAUSED_BY_DEADLINE = "PausedByDeadline"
    # it is over
    PROMOTED = "Promoted"
    SHADOW_ENDED = "ShadowEnded"
    ANALYSIS_FAILED = "AnalysisFailed"
    ANALYSIS_INCONCLUSIVE = "AnalysisInconclusive"
    CANARY_CRASH_LOOPING = "CanaryCrashLooping"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    WEBHOOK_REFUSED = "WebhookRefused"
    WEBHOOK_UNDECIDED = "WebhookUndecided"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    REJECTED = "Rejected"
    ABORTED = "Aborted"
    SUPERSEDED = "Superseded"


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason of a rollout's phase: a code, and one sentence with the evidence and the sample size."""

    code: Code
    message: str
