"""Manifests of a joining cluster: namespaces, the control plane's ServiceAccount, and its roles. Pure.

Which roles follows from the cluster file, as in the chart `fairlead-member`. The YAML files are copies of the driver's;
a test compares them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fairlead_cli.client import Json

_RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}
_GROUP = "rbac.authorization.k8s.io"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Account:
    """The control plane's ServiceAccount in the cluster."""

    namespace: str
    name: str


def manifests(document: Json, *, namespaces: Sequence[str], account: Account) -> list[Json]:
    """Return the objects that a cluster needs for its file, in an order in which they can be made.

    Args:
        namespaces: those that services may run in.
    """
    in_namespaces, once = bound_roles(document, namespaces)
    roles = {each["metadata"]["name"]: each for each in _documents("role.yaml")}
    used = {role for role, _ in in_namespaces} | set(once)
    made: list[Json] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in dict.fromkeys((account.namespace, *namespaces, _jobs_namespace(document)))
    ]
    made.append(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account.name, "namespace": account.namespace},
            "automountServiceAccountToken": False,
        }
    )
    made += [role for name, role in roles.items() if name in used]
    made += [_binding("ClusterRoleBinding", role, "", account) for role in once]
    made += [_binding("RoleBinding", role, namespace, account) for role, namespace in in_namespaces]
    if document.get("customResources") is True:
        kinds = list(_documents("crds.yaml"))
        kinds += _documents("kserve_role.yaml") if document.get("kserveObjects") is True else ()
        of_objects = [each["metadata"]["name"] for each in kinds if each["kind"] == "ClusterRole"]
        made += [*kinds, *(_binding("ClusterRoleBinding", role, "", account) for role in of_objects)]
    return made


def bound_roles(document: Json, namespaces: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the roles to bind, each with its namespace, and those to bind once for the cluster."""
    claims = document.get("gpuAllocation") == "claims"
    optional = {
        "fairlead-driver-metrics": document.get("reach") == "apiServer",
        "fairlead-driver-replays": document.get("reach") == "apiServer",
        "fairlead-driver-keda": document.get("keda") is not None,
        "fairlead-driver-claims": claims,
        "fairlead-driver-repartition-pods": document.get("repartition") is not None,
    }
    roles = ["fairlead-driver", "fairlead-driver-access", *(role for role, is_needed in optional.items() if is_needed)]
    bound = [(role, namespace) for namespace in namespaces for role in roles]
    once = ["fairlead-driver-gateways", "fairlead-driver-identity", "fairlead-driver-nodes"]
    if (repartition := document.get("repartition")) is not None:
        bound.append(("fairlead-driver-repartition-mig", _text(repartition, "namespace", "gpu-operator")))
        once.append("fairlead-driver-repartition")
    jobs = _jobs_namespace(document)
    if claims:
        once.append("fairlead-driver-devices")
        bound += [("fairlead-driver-claims", jobs)] if jobs not in namespaces else []
    bound.append(("fairlead-driver-jobs", jobs))
    if document.get("network") is not None:
        bound.append(("fairlead-driver-jobs-network", jobs))
    return bound, once


def as_yaml(objects: Sequence[Json]) -> str:
    """Return the objects as one YAML text that `kubectl apply -f -` reads."""
    return str(yaml.safe_dump_all(objects, sort_keys=False, width=120))


def _jobs_namespace(document: Json) -> str:
    return _text(document.get("jobs"), "namespace", "fairlead-jobs")


def _text(value: object, name: str, default: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else default


def _binding(kind: str, role: str, namespace: str, account: Account) -> Json:
    # Control planes that share a cluster share the roles, and have bindings of their own.
    metadata = {"name": f"{account.namespace}-{account.name}-{role.removeprefix('fairlead-')}"}
    if namespace:
        metadata["namespace"] = namespace
    return {
        **_RBAC,
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    }


def _documents(name: str) -> Iterator[Any]:
    yield from yaml.safe_load_all((_FOLDER / name).read_text(encoding="utf-8"))
