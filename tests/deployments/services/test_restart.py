from accounts.models import AuditEntry
from deployments.services import service_restart
from tests.deployments._support.platform import Platform


def test_a_restart_reaches_the_cluster_as_a_number_that_rises(platform: Platform) -> None:
    platform.live(replicas=2)
    for number in (1, 2):
        service_restart(namespace="default", name="digits", actor="bob", now=platform.clock())
        platform.turn()
        [revision] = platform.cluster.desired["default", "digits"].revisions
        assert (revision.restart_number, revision.replicas) == (number, 2)
    assert platform.events().count("ServiceRestarted") == 2
    entry = AuditEntry.objects.filter(action="service.restart").latest("id")
    assert (entry.actor, entry.before, entry.after) == ("bob", {"restart_number": 1}, {"restart_number": 2})


def test_a_restart_in_the_middle_of_a_rollout_leaves_its_weights(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.cluster.weights() == {"digits-00001": 90, "digits-00002": 10})
    service_restart(namespace="default", name="digits", actor="bob", now=platform.clock())
    platform.turn()
    assert platform.cluster.weights() == {"digits-00001": 90, "digits-00002": 10}
    assert {revision.restart_number for revision in platform.cluster.desired["default", "digits"].revisions} == {1}
