"""Rollout state machine. Pure: the reconciler supplies the clock and observations, and records the result.

            start, or retry of Degraded and Aborted
                             │
                          Pending ───────────────────────────────────────────┐
                             │ canary ready, gateway sends all to stable     │ canary crash-loops, or is not
                             ▼                                               │ ready for progressDeadline;
     ┌──────────► Progressing at step i ─────────────────────────────────────┤ an analysis failed
     │ i + 1        weight asked for; the gateway confirms; hold; analysis   │
     │                  │    │         │                                     ├──────────────────────► Degraded
     │ Successful, held │    │         │ Inconclusive                        │
     ├──────────────────┘    │         ├──────────────────► Aborted          │
     │                pause: │         │ (onInconclusive: abort)             │
     │ promote               ▼         ▼ (onInconclusive: pause)             │
     └───────────────────── Paused ──────────────────────────────────────────┘
                             │
          after the last step: Progressing at 100 % ── the gateway confirms ──► Healthy

    What a step of a canary asks for is one of these, and they come in this order:

          mirror: N           copies of N % of the requests; clients get all their answers from stable
          match: [...]        the requests with these headers, besides a weight also N % of the others
          weight: N           N % of the requests

    A shadow goes the same way with copies alone. What follows its last step is the policy's to say:

          then: pause     Paused ── promote ──► Progressing at 100 % ── the gateway confirms ──► Healthy
          then: promote                         Progressing at 100 % ── the gateway confirms ──► Healthy
          then: end       nothing is copied any more, stable stays what it is ─────────────────► Healthy

    Blue/green goes the same way with one step, in which the canary gets what comes to the preview address and clients
    get all their answers from stable; then all traffic moves in one update of the gateway:

          Progressing at step 1, weight 0 and preview ── Successful, held, promoted ──► Progressing at 100 %

    Where the policy asks for approvals, they are what ends a pause, or what a Pending rollout waits for as well:

          Pending, Paused ── as many different people as asked for approve the same thing ──► Progressing
          Pending, Paused ── one of them rejects it ──► Aborted

    Where a step asks webhooks, before its weight or after its hold and analysis:

          all say go ──► as drawn above        one says no ──► Degraded
          anything else, and no answer ── until its deadline ──► Paused, or Aborted (onInconclusive)

    abort, and a newer rollout (Superseded): Pending, Progressing, Paused ──► Aborted
    deadline passed (onDeadline: abort): Pending, Progressing at a step, Paused ──► Aborted
    deadline passed (onDeadline: pause): Progressing at a step ──► Paused

Degraded and Aborted remove the canary's traffic at once. It gets requests or copies only while it is ready, and a new
portion only once the gateway confirmed the present one; while it is unready all traffic goes to stable. The gateway
changes from one step to the next in one update: from copies to weights there is no moment with both, and none with
neither. An observation without evidence (metrics or cluster cannot be read) moves nothing.
"""

from deployments.domain.rollout.commands import (
    abort,
    pass_over,
    pass_webhooks,
    promote,
    reject,
    retry,
    start,
    supersede,
)
from deployments.domain.rollout.state import CanarySeen, Observation, RolloutState
from deployments.domain.rollout.tick import RESTART_LIMIT, advance
from deployments.domain.rollout.traffic_split import Portion

__all__ = [
    "RESTART_LIMIT",
    "CanarySeen",
    "Observation",
    "Portion",
    "RolloutState",
    "abort",
    "advance",
    "pass_over",
    "pass_webhooks",
    "promote",
    "reject",
    "retry",
    "start",
    "supersede",
]
