"""Cluster check: whether services can run, by its API server, the Gateway and the driver's rights.

    API server -> Gateway API -> Gateway -> rights for the whole cluster -> each namespace and the rights in it

It changes nothing: rights come from access reviews of the API server, and a namespace is tried by a dry run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from common.errors import Conflict, FairleadError, InvalidInput, NotFound, NotPermitted, Unavailable
from integrations.clusters.base import Component, Finding
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.apply.gpu_nodes import CONFIG_MAP, found_file
from integrations.clusters.kubernetes.manifests.workloads import claims
from integrations.clusters.kubernetes.options import GatewayReference, GpuAllocation, Options
from integrations.clusters.kubernetes.rbac import (
    CLAIMS,
    DEVICES,
    GATEWAYS,
    JOBS,
    JOBS_NETWORK,
    MIG,
    REPARTITION,
    SAVING_REQUESTS,
    Right,
    is_given,
    rights,
    roles_in_namespaces,
    roles_of_the_cluster,
)

_AUTHORIZATION = "/apis/authorization.k8s.io/v1"
_NEEDED_KINDS = ("gatewayclasses", "gateways", "httproutes", "grpcroutes")
MOST_ROUTES = 4000
"""Routes of a Gateway (docs/reference/kubernetes-capacity.md): 2,000 services at rest."""
_NEARLY_FULL = 0.8
_ANOTHER_GATEWAY = "assign namespaces to another Gateway by gateways of the cluster file"
_BIND_ONCE = "bind ClusterRole {role} of role.yaml with a ClusterRoleBinding to who the kubeconfig says"
_BIND_THERE = "bind ClusterRole {role} of role.yaml with a RoleBinding in {namespace} to who the kubeconfig says"


def check(api: Api, options: Options, namespaces: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings, the API server first; where that does not answer, it is the only one.

    Args:
        namespaces: in which services run, or are to.
    """
    try:
        version = api.content("/version").get("gitVersion", "of an unknown version")
    except NotPermitted as error:
        yield Finding("API server", False, error.message, "apply the cluster file with new credentials")
        return
    except FairleadError as error:
        remedy = "see that the server runs, and that web and worker reach the address in the kubeconfig"
        yield Finding("API server", False, error.message, remedy)
        return
    yield Finding("API server", True, f"Kubernetes {version} answers at {api.server}")
    for look in (
        _kinds(api),
        _gateways(api, options),
        _everywhere(api),
        _jobs(api, options),
        _network(api, options),
        _cutting(api, options),
        _claims(api, options),
    ):
        yield from _tried(look)
    for namespace in namespaces:
        yield from _tried(in_namespace(api, options, namespace))


def in_namespace(api: Api, options: Options, namespace: str) -> Iterator[Finding]:
    """Yield the findings of a namespace: whether it exists, and whether the driver may work there."""
    about = f"namespace {namespace}"
    saving: list[Right] = []
    for role in roles_in_namespaces(options):
        lacking = _missing(api, rights()[role], namespace)
        saving += [right for right in lacking if right in SAVING_REQUESTS]
        missing = [right for right in lacking if right not in SAVING_REQUESTS]
        if missing:
            remedy = _BIND_THERE.format(role=role, namespace=namespace)
            yield Finding(about, False, f"not permitted in {namespace}: {_listed(missing)}", remedy)
            return
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fairlead-check", "namespace": namespace}}
    try:
        api.apply(probe, dry_run=True)
    except NotFound:
        remedy = f"create it (`kubectl create namespace {namespace}`), with the claim of the model files"
        yield Finding(about, False, f"there is no namespace {namespace}", remedy)
    else:
        hint = f"; the present role.yaml saves requests, since it gives {_listed(saving)} too" if saving else ""
        yield Finding(about, True, f"{namespace} is there, and all that the driver does is permitted{hint}")


def _tried(look: Iterator[Finding]) -> Iterator[Finding]:
    """Yield the findings of a check, with one more where it broke off."""
    try:
        yield from look
    except Unavailable as error:
        yield Finding("API server", False, error.message, "try again; the server answered before, and then no more")
    except FairleadError as error:
        yield Finding("API server", False, error.message, "see what the server says of it")


def _kinds(api: Api) -> Iterator[Finding]:
    about = "Gateway API"
    try:
        there = {each["name"] for each in api.content(f"/apis/{resource_types.GATEWAY_API}")["resources"]}
    except NotFound:
        there = set()
    absent = [name for name in _NEEDED_KINDS if name not in there]
    if absent:
        message = f"{resource_types.GATEWAY_API} has not {', '.join(absent)}"
        yield Finding(about, False, message, "install the Gateway API's standard CRDs, release 1.1 or newer")
    else:
        yield Finding(about, True, f"{resource_types.GATEWAY_API} is there")


def _gateways(api: Api, options: Options) -> Iterator[Finding]:
    gateways = options.all_gateways
    try:
        found = [api.get(resource_types.GATEWAY, each.namespace, each.name) for each in gateways]
    except NotPermitted:
        message = f"{', '.join(map(_named, gateways))} may not be read"
        yield Finding("Gateway", False, message, _BIND_ONCE.format(role=GATEWAYS))
        return
    for gateway, there in zip(gateways, found, strict=True):
        component = gateway_component(options, gateway, there)
        about = "Gateway" if gateway == options.gateway else _named(gateway)
        message = component.message or f"{_named(gateway)} is programmed"
        remedy = "" if component.ready else "see `kubectl describe gateway`, and that the controller of its class runs"
        yield Finding(about, component.ready, message, remedy)
        if there is not None:
            yield routes_of(gateway, there)


def gateway_component(options: Options, gateway: GatewayReference, found: Mapping[str, Any] | None) -> Component:
    """Return a Gateway of the cluster as its component: ready once programmed.

    Args:
        found: the Gateway as the API server has it; None where it is absent.
    """
    name = "gateway" if gateway == options.gateway else f"gateway {gateway.name} in {gateway.namespace}"
    if found is None:
        missing = f"there is no Gateway {gateway.name} in {gateway.namespace}; create it, or name another"
        return Component(name, ready=False, message=missing)
    conditions = {each["type"]: each for each in found.get("status", {}).get("conditions", ())}
    programmed = conditions.get("Programmed", {"status": "Unknown", "message": "its controller has said nothing"})
    ready = programmed["status"] == "True"
    return Component(name, ready=ready, message="" if ready else programmed["message"])


def routes_of(gateway: GatewayReference, there: Mapping[str, Any]) -> Finding:
    """Return whether a Gateway has room for more routes, by those that its listeners report; it warns from 80 % on."""
    routes = sum(each.get("attachedRoutes", 0) for each in there.get("status", {}).get("listeners", ()))
    share = f"{routes:,} of {MOST_ROUTES:,} routes ({100 * routes // MOST_ROUTES} %)"
    about, name = f"routes of {_named(gateway)}", _named(gateway)
    if routes >= MOST_ROUTES:
        return Finding(about, False, f"{name} is full: it has {share}", f"{_ANOTHER_GATEWAY}, and move services there")
    if routes >= _NEARLY_FULL * MOST_ROUTES:
        return Finding(about, True, f"{name} is nearly full: it has {share}; {_ANOTHER_GATEWAY}")
    return Finding(about, True, f"{name} has {share}")


def _named(gateway: GatewayReference) -> str:
    return f"Gateway {gateway.name} in {gateway.namespace}"


def _everywhere(api: Api) -> Iterator[Finding]:
    for role in roles_of_the_cluster():
        missing = _missing(api, rights()[role], "")
        message = f"not permitted: {_listed(missing)}" if missing else f"all that {role} needs is permitted"
        yield Finding(f"role {role}", not missing, message, _BIND_ONCE.format(role=role) if missing else "")


def _jobs(api: Api, options: Options) -> Iterator[Finding]:
    namespace = options.jobs_namespace
    about, create = f"role {JOBS}", f"`kubectl create namespace {namespace}`"
    missing = _missing(api, rights()[JOBS], namespace)
    if missing:
        remedy = f"have the namespace ({create}), and {_BIND_THERE.format(role=JOBS, namespace=namespace)}"
        yield Finding(about, False, f"not permitted in {namespace}: {_listed(missing)}", remedy)
    elif not _takes_jobs(api, namespace):
        remedy = f"create it ({create}), or name another in the cluster's file as jobs.namespace"
        yield Finding(about, False, f"there is no namespace {namespace}, in which model jobs run", remedy)
    else:
        yield Finding(about, True, f"model jobs can run in {namespace}")


def _network(api: Api, options: Options) -> Iterator[Finding]:
    """Yield the findings on the network of models. No API says whether the network plugin enforces NetworkPolicies."""
    about = "network of models"
    if options.network is None:
        message = "pods of models may connect to whatever the cluster lets them; network of the cluster file closes it"
        yield Finding(about, True, message)
        return
    missing = _missing(api, rights()[JOBS_NETWORK], options.jobs_namespace)
    if missing:
        remedy = _BIND_THERE.format(role=JOBS_NETWORK, namespace=options.jobs_namespace)
        message = f"not permitted in {options.jobs_namespace}: {_listed(missing)}"
        yield Finding(about, False, message, remedy)
        return
    message = (
        "NetworkPolicies close it; the API does not say whether the cluster's network plugin enforces them: "
        "docs/reference/kubernetes.md has a command that tests it"
    )
    yield Finding(about, True, message)


def _takes_jobs(api: Api, namespace: str) -> bool:
    """Return whether the namespace exists; creating jobs in it does not imply the right to read it."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "check", "image": "none"}]}
    metadata = {"name": "fairlead-check", "namespace": namespace}
    probe = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}
    try:
        api.create(probe, dry_run=True)
    except NotFound:
        return False
    except (Conflict, InvalidInput, NotPermitted):
        return True  # rules of the namespace, which this job is too small for
    return True


def _cutting(api: Api, options: Options) -> Iterator[Finding]:
    """Yield the findings on repartitions, where the cluster's file allows them."""
    allowed = options.repartition
    if allowed is None:
        return
    once, there = _BIND_ONCE.format(role=REPARTITION), _BIND_THERE.format(role=MIG, namespace=allowed.namespace)
    for role, namespace, remedy in ((REPARTITION, "", once), (MIG, allowed.namespace, there)):
        missing = _missing(api, rights()[role], namespace)
        message = f"not permitted: {_listed(missing)}" if missing else f"all that {role} needs is permitted"
        yield Finding(f"role {role}", not missing, message, remedy if missing else "")
    wrong = found_file(api, allowed)
    remedy = "make it of the GPU Operator's own, and let `migManager.config.name` of the ClusterPolicy name it"
    message = wrong or f"ConfigMap {CONFIG_MAP} in {allowed.namespace} is there for MIG manager"
    yield Finding("MIG manager's file", not wrong, message, remedy if wrong else "")


def _claims(api: Api, options: Options) -> Iterator[Finding]:
    """Yield the findings on claims of GPUs, where the cluster's file asks for them."""
    if options.gpu_allocation is not GpuAllocation.CLAIMS:
        return
    about = "claims of GPUs"
    try:
        api.content(f"/apis/{claims.API}")
    except NotFound:
        message = (
            f"gpuAllocation is claims, but the cluster does not serve {claims.API}, which Kubernetes has from 1.34"
        )
        yield Finding(about, False, message, "upgrade the cluster, or leave gpuAllocation out of its file")
        return
    once = _BIND_ONCE.format(role=DEVICES)
    there = _BIND_THERE.format(role=CLAIMS, namespace=options.jobs_namespace)
    for role, namespace, remedy in ((DEVICES, "", once), (CLAIMS, options.jobs_namespace, there)):
        missing = _missing(api, rights()[role], namespace)
        if missing:
            yield Finding(f"role {role}", False, f"not permitted: {_listed(missing)}", remedy)
            return
    absent = [name for name in claims.CLASSES if api.get(resource_types.DEVICE_CLASS, "", name) is None]
    if absent:
        message = f"gpuAllocation is claims, but the cluster has no DeviceClass {' and no DeviceClass '.join(absent)}"
        yield Finding(about, False, message, "install NVIDIA's DRA driver for GPUs, or leave gpuAllocation out")
    else:
        yield Finding(about, True, f"pods can claim GPUs by {' and '.join(claims.CLASSES)}")


def _missing(api: Api, needed: Iterable[Right], namespace: str) -> list[Right]:
    """Return the rights that the driver lacks in the namespace; "" checks them everywhere.

    One review lists most authorizers' rules; a right that it does not list is reviewed by itself, since the list may be
    incomplete.
    """
    rules: list[dict[str, Any]] = []
    if namespace:
        review = api.ask(f"{_AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": namespace}})
        rules = review["status"].get("resourceRules") or []
    return [right for right in needed if not is_given(right, rules) and not _may(api, right, namespace)]


def _may(api: Api, right: Right, namespace: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked = {"group": right.group, "resource": resource, "verb": right.verb, "namespace": namespace}
    if subresource:
        asked["subresource"] = subresource
    if right.name:
        asked["name"] = right.name
    review = api.ask(f"{_AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}})
    return bool(review["status"]["allowed"])


def _listed(missing: Sequence[Right]) -> str:
    shown = ", ".join(str(right) for right in missing[:6])
    return f"{shown} and {len(missing) - 6} more" if len(missing) > 6 else shown
