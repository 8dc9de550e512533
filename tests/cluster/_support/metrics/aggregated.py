"""An API server of a test's own, aggregated: the API server hands on a whole group of the API to it."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.plane import ControlPlane


@contextmanager
def aggregated(plane: ControlPlane, group: str, version: str, port: int) -> Iterator[None]:
    """Let the API server hand on a group to a port of this machine inside the block.

    A name outside the cluster needs no address of it: the API server resolves `localhost` itself.
    """
    name = f"{group.replace('.', '-')}-{port}"
    service = {
        "metadata": {"name": name},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    where = {"namespace": "default", "name": name, "port": port}
    spec = {"group": group, "version": version, "service": where, "insecureSkipTLSVerify": True}
    priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
    registration = {"metadata": {"name": f"{version}.{group}"}, "spec": {**spec, **priorities}}
    services, registrations = "/api/v1/namespaces/default/services", "/apis/apiregistration.k8s.io/v1/apiservices"
    with plane.client() as client:
        client.post(services, json=service).raise_for_status()
        client.post(registrations, json=registration).raise_for_status()
    try:
        yield
    finally:
        with plane.client() as client:
            client.delete(f"{registrations}/{version}.{group}")
            client.delete(f"{services}/{name}")
