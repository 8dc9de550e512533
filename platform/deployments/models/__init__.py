"""Models of services, their revisions and rollouts, and related records.

A row is changed only under its service's row lock (`deployments.reconcile.service_change`), and every change raises the
service's `changes`, by which the reconciler detects concurrent changes. A revision's content never changes; `role`,
`retire_at` and `stopped_at` are its state.
"""

from deployments.models.approvals import Approval
from deployments.models.comparisons import ComparisonRun
from deployments.models.controllers import ControllerProcess
from deployments.models.policies import RolloutPolicy
from deployments.models.questions import WebhookQuestion
from deployments.models.rollouts import AnalysisPoint, AnalysisRun, Rollout
from deployments.models.services import IS_WELL, InferenceService, Revision
from deployments.models.traffic import TrafficLook, TrafficPoint

__all__ = [
    "IS_WELL",
    "AnalysisPoint",
    "AnalysisRun",
    "Approval",
    "ComparisonRun",
    "ControllerProcess",
    "InferenceService",
    "Revision",
    "Rollout",
    "RolloutPolicy",
    "TrafficLook",
    "TrafficPoint",
    "WebhookQuestion",
]
