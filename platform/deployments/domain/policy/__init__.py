"""Rollout policies as values, and the policy file. Pure.

values    Policy, Step and their words
approval  ApprovalRule: how many people must agree, and its part of the file
detect    Detect: the regression that a plan is made for
gate      Gate: what a step's canary has to hold to, and its part of the file
clients   a group by its headers, and sessions that stay: their parts of the file
order     which steps may follow each other
metrics   Metric: a number that Prometheus returns for a query, and its bounds
quality   Quality: how much worse its answers may be, by the labels that come for them
promql    the placeholders of its query
series    limits it to the series of one service
webhooks  StepWebhook: a system outside that a step asks, and its part of the file
file      the whole policy file, read and written
uncompared  whether wrong answers pass its steps
"""

from deployments.domain.policy.approval import ApprovalRule, approval_json
from deployments.domain.policy.clients import affinity_json, match_json, match_text, stored_match
from deployments.domain.policy.detect import Detect
from deployments.domain.policy.file import parse_policy, policy_json, stored_policy
from deployments.domain.policy.gate import Gate, SlowLimit, background_json, gate_json
from deployments.domain.policy.metrics import Metric, Series
from deployments.domain.policy.quality import Quality
from deployments.domain.policy.uncompared import uncompared
from deployments.domain.policy.values import DIRECT, OnDeadline, OnInconclusive, Policy, Step, Strategy, Then
from deployments.domain.policy.webhooks import StepWebhook, When, webhook_json

__all__ = [
    "DIRECT",
    "ApprovalRule",
    "Detect",
    "Gate",
    "Metric",
    "OnDeadline",
    "OnInconclusive",
    "Policy",
    "Quality",
    "Series",
    "SlowLimit",
    "Step",
    "StepWebhook",
    "Strategy",
    "Then",
    "When",
    "affinity_json",
    "approval_json",
    "background_json",
    "gate_json",
    "match_json",
    "match_text",
    "parse_policy",
    "policy_json",
    "stored_match",
    "stored_policy",
    "uncompared",
    "webhook_json",
]
