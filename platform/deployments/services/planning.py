"""What the analysis of a rollout could find, and in how many requests, by what stable does now.

Counters are read, so this is called outside of transactions.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from common.errors import Unavailable
from deployments.analysis.planning import plan
from deployments.analysis.traffic import Traffic, traffic_of
from deployments.models import Revision
from deployments.policy import Policy
from deployments.shapes import AnalysisPlan
from integrations.clusters.base import Sample

Look = Callable[[str, str], Sequence[Sample]]


def analysis_plan(*, policy: Policy, stable: Revision, look: Look, now: datetime) -> AnalysisPlan:
    """Return the plan of a policy's analysis.

    Args:
        look: returns the counters of a service, by namespace and name; where it cannot, no traffic is known.
    """
    service = stable.service
    try:
        samples, problem = look(service.namespace, service.name), ""
    except Unavailable as error:
        samples, problem = (), error.message
    traffic = traffic_of(samples, stable.name, policy, now.timestamp())
    return AnalysisPlan(
        alpha=policy.alpha,
        traffic=_told(traffic, problem),
        requests_per_second=None if traffic.per_second is None else round(traffic.per_second, 3),
        steps=plan(policy, traffic),
    )


def _told(traffic: Traffic, problem: str) -> str:
    if traffic.per_second is None:
        why = f" ({problem})" if problem else ""
        return (
            f"how many requests clients send is not known{why}; 30 a second and a stable without errors are assumed "
            "for the size of blocks"
        )
    return (
        f"clients sent {traffic.per_second:.3g} requests a second over the last {traffic.seconds:.0f} s; "
        f"{100 * traffic.server_errors:.2g} % of stable's failed, {100 * traffic.client_errors:.2g} % were refused"
    )
