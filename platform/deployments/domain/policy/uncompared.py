"""Missing answer comparison: policies that let through a version with wrong but timely answers. Pure."""

from deployments.domain.policy.values import Policy, Strategy, Then


def uncompared(policy: Policy) -> str:
    """Return a warning where no step compares answers with stable's, as a sentence; empty where one does.

    A gate that asks labels (`quality`) compares them too.
    """
    compares = any(step.gate is not None and step.gate.comparison is not None for step in policy.steps)
    if compares or any(gate.quality is not None for gate in policy.gates):
        return ""
    end = "ends Healthy" if policy.then is Then.END else "is promoted"
    others = _others(policy)
    unless = f" unless {others} it" if others else ""
    how = "add mirror and analysis.comparison to a step, or try it by a shadow with analysis.comparison first"
    if policy.strategy is Strategy.SHADOW:
        how = "add analysis.comparison to a step"
    return (
        f"no step compares answers: a version whose answers are wrong, but come in time and without errors, {end}"
        f"{unless}; {how}"
    )


def _others(policy: Policy) -> str:
    """Return what else could detect wrong answers, with its verb; empty for nothing."""
    gates = [step.gate for step in policy.steps if step.gate is not None]
    if policy.background is not None:
        gates.append(policy.background)
    is_last_paused = bool(policy.steps) and policy.strategy is not Strategy.CANARY and policy.then is Then.PAUSE
    found = {
        "a webhook refuses": any(step.webhooks for step in policy.steps),
        "a query of Prometheus fails": any(gate.metrics for gate in gates),
        "somebody aborts": policy.approval is not None
        or is_last_paused
        or any(step.pause or step.approval is not None for step in policy.steps),
    }
    return " or ".join(name for name, is_there in found.items() if is_there)
