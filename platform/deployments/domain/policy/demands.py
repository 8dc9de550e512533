"""Comparison of a policy with the demands of its team and namespace. Pure."""

from collections.abc import Iterable

from accounts.domain.demand import Demand
from deployments.domain.policy.values import Policy


def most_approvals(policy: Policy) -> int:
    """Return the number of people who must approve at the point of the policy that asks for the most."""
    rules = (policy.approval, *(step.approval for step in policy.steps))
    return max((rule.approvals for rule in rules if rule is not None), default=0)


def unmet(demands: Iterable[Demand], policy: Policy | None) -> str:
    """Return which demand the policy does not meet and what to do, as a sentence; empty where it meets all.

    Args:
        policy: None for a service without one.
    """
    what = "there is no policy" if policy is None else f"this one is {policy.name}"
    for demand in demands:
        if demand.policies and (policy is None or policy.name not in demand.policies):
            several = "one of the policies" if len(demand.policies) > 1 else "the policy"
            return (
                f"{demand.of} demands {several} {', '.join(demand.policies)} of its services, and {what}; name it in "
                "`spec.rollout.policy`"
            )
        asked = 0 if policy is None else most_approvals(policy)
        if asked < demand.approvals:
            with_it = "" if policy is None else f", which asks for {asked or 'none'}"
            people = "approval" if demand.approvals == 1 else "approvals"
            return (
                f"{demand.of} demands {demand.approvals} {people} of a rollout, and {what}{with_it}; name a policy "
                "with such an `approval` or `pause`"
            )
    return ""
