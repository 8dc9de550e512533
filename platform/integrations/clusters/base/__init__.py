"""Cluster driver contract: the values between the reconciler and the place where models run.

The reconciler sets the desired state (`Desired`), a driver applies it and reports the observed state (`Observed`).
Values here are plain and frozen, so that decisions over them are pure functions and a driver can put them into a file
or a manifest. Standard library only.
"""

from integrations.clusters.base.accelerators import ACCELERATOR, SLICE, WHOLE, is_accelerator, is_profile, profile_of
from integrations.clusters.base.desired import (
    PREVIEW_SUFFIX,
    Arrangement,
    Autoscaling,
    Desired,
    DesiredRevision,
    DesiredTransformer,
    HeaderMatch,
    Logged,
    Logger,
    MatchKind,
    Resources,
    SessionAffinity,
    Tap,
    may_connect,
)
from integrations.clusters.base.drift import Drift, DriftPolicy
from integrations.clusters.base.driver import ClusterDriver
from integrations.clusters.base.environment import permitted, refused, why_refused
from integrations.clusters.base.exchanges import Candidate, Exchange
from integrations.clusters.base.failures import (
    Failure,
    FailureReason,
    ReplicaEvent,
    failure_from_json,
    hidden,
    last_lines,
    printable,
    reason_of_exit,
    without_folders,
)
from integrations.clusters.base.findings import Finding
from integrations.clusters.base.gpu_nodes import DesiredNode, ObservedNode
from integrations.clusters.base.gpus import GpuPod, NodeGpus
from integrations.clusters.base.identity import AUDIENCE, RECORDS_AUDIENCE, JobIdentity, WorkloadIdentity
from integrations.clusters.base.jobs import Job, JobKind, JobResult, Made, OnStage
from integrations.clusters.base.observed import (
    Component,
    Node,
    Nodes,
    Observed,
    ObservedReplica,
    ObservedRevision,
    ObservedScaling,
    ObservedTransformer,
    ReplicaPhase,
)
from integrations.clusters.base.patches import Patch
from integrations.clusters.base.rolling import Rolling
from integrations.clusters.base.samples import BatchTime, Sample
from integrations.clusters.base.scaling import (
    Behavior,
    ScalingPolicy,
    ScalingRules,
    Selection,
    Unit,
    behavior_from_json,
    behavior_json,
)

__all__ = [
    "ACCELERATOR",
    "AUDIENCE",
    "PREVIEW_SUFFIX",
    "RECORDS_AUDIENCE",
    "SLICE",
    "WHOLE",
    "Arrangement",
    "Autoscaling",
    "BatchTime",
    "Behavior",
    "Candidate",
    "ClusterDriver",
    "Component",
    "Desired",
    "DesiredNode",
    "DesiredRevision",
    "DesiredTransformer",
    "Drift",
    "DriftPolicy",
    "Exchange",
    "Failure",
    "FailureReason",
    "Finding",
    "GpuPod",
    "HeaderMatch",
    "Job",
    "JobIdentity",
    "JobKind",
    "JobResult",
    "Logged",
    "Logger",
    "Made",
    "MatchKind",
    "Node",
    "NodeGpus",
    "Nodes",
    "Observed",
    "ObservedNode",
    "ObservedReplica",
    "ObservedRevision",
    "ObservedScaling",
    "ObservedTransformer",
    "OnStage",
    "Patch",
    "ReplicaEvent",
    "ReplicaPhase",
    "Resources",
    "Rolling",
    "Sample",
    "ScalingPolicy",
    "ScalingRules",
    "Selection",
    "SessionAffinity",
    "Tap",
    "Unit",
    "WorkloadIdentity",
    "behavior_from_json",
    "behavior_json",
    "failure_from_json",
    "hidden",
    "is_accelerator",
    "is_profile",
    "last_lines",
    "may_connect",
    "permitted",
    "printable",
    "profile_of",
    "reason_of_exit",
    "refused",
    "why_refused",
    "without_folders",
]
