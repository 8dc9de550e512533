"""Stop and resume of a service, whose file and history stay; called with the service under its lock."""

from functools import partial

from deployments.domain.phases import ServicePhase
from deployments.domain.service_file import ServiceSpec
from deployments.domain.service_state.desired import Role
from deployments.domain.waits import Condition
from deployments.reconcile.service_change import Change
from deployments.services.revisions.revision_change import give_up
from events.domain.kinds import Kind


def follow_stop(change: Change, spec: ServiceSpec, *, actor: str) -> None:
    """Stop or resume the service, as its file says.

    A stopped one gets no requests, which the gateway answers with 503, and its replicas end once they have finished
    theirs. A version that its file names meanwhile replaces the one that served, without a rollout: there is no traffic
    to protect. The one that served is the target of a rollback. A resumed service serves as soon as the first replica
    is ready.
    """
    service = change.service
    if service.stopped == spec.stopped:
        return
    service.stopped = spec.stopped
    service.standing = Condition.STOPPING if spec.stopped else Condition.STARTING  # until the cluster is observed next
    if not spec.stopped:
        service.phase, service.reason = ServicePhase.PENDING, "it was resumed, and its replicas are being started"
        change.event(Kind.SERVICE_RESUMED, f"{actor} lets {service} serve again")
        return
    give_up(change, "the stop of the service")
    stable = change.revision(Role.STABLE)
    if stable is not None and service.live_at is not None:
        stable.served_until = change.now
        change.write(partial(stable.save, update_fields=["served_until"]))
    service.live_at = None
    service.phase, service.reason = ServicePhase.STOPPED, "it was stopped; its replicas finish what they have and end"
    change.event(Kind.SERVICE_STOPPED, f"{actor} stops {service}; its replicas finish what they have and end")
