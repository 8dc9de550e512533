"""Models of services, their revisions and rollouts, and related records.

A row is changed only under its service's row lock (`deployments.reconcile.service_change`), and every change raises the
service's `changes`, by which the reconciler detects concurrent changes. A revision's content never changes; `role`,
`retire_at` and `stopped_at` are its state.
"""

from deployments.models.approvals import Approval
from deployments.models.builds import Build
from deployments.models.comparisons import ComparisonRun
from deployments.models.events import Event
from deployments.models.policies import RolloutPolicy
from deployments.models.questions import WebhookQuestion
from deployments.models.recordings import Recording, Replay
from deployments.models.repartitions import Repartition
from deployments.models.rollouts import AnalysisPoint, AnalysisRun, Rollout
from deployments.models.services import IS_WELL, KUBERNETES, Cluster, InferenceService, Revision
from deployments.models.traffic import TrafficLook, TrafficPoint
from deployments.models.trials import Trial
from deployments.models.tunings import Tuning
from deployments.models.webhooks import Webhook, WebhookDelivery

__all__ = [
    "IS_WELL",
    "KUBERNETES",
    "AnalysisPoint",
    "AnalysisRun",
    "Approval",
    "Build",
    "Cluster",
    "ComparisonRun",
    "Event",
    "InferenceService",
    "Recording",
    "Repartition",
    "Replay",
    "Revision",
    "Rollout",
    "RolloutPolicy",
    "TrafficLook",
    "TrafficPoint",
    "Trial",
    "Tuning",
    "Webhook",
    "WebhookDelivery",
    "WebhookQuestion",
]
