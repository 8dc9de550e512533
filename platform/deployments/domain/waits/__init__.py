"""Wait reasons: why a service or rollout waits, as one value for API, CLI and pages. Pure; made by the selectors.

wait      Wait: the condition, its evidence, the sample size, what would change it, and since when
rollout   of a rollout in progress, from its recorded state and what its present step has counted
service   of a service, from what was recorded of it
"""

from deployments.domain.waits.rollout import Counted, wait_of_rollout
from deployments.domain.waits.service import Condition, ServiceFacts, condition_of, wait_of_service
from deployments.domain.waits.wait import Wait

__all__ = [
    "Condition",
    "Counted",
    "ServiceFacts",
    "Wait",
    "condition_of",
    "wait_of_rollout",
    "wait_of_service",
]
