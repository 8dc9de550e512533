"""NetworkPolicies of a service, a replay and the namespace of Jobs. Pure.

Where the cluster file has no `network`, a service and a replay have one policy, for ingress. Else all is denied but

    pods of               ingress                        egress
    replicas              gateway, own transformers and  DNS, `egress`; receivers, where the revision has a logger
                          explainers; readers of metrics
    transformers          the same                       DNS, own replicas
    explainers            the same                       DNS, own replicas and transformers
    revisions with        the same                       and `granted`
    granted egress
    jobs                  none                           DNS, `egress`, `granted` where the service has it
    replays               readers of metrics             the same

Policies of a pod add up, so each names what its pods need beside the others.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from integrations.clusters.base import CompanionKind, Desired
from integrations.clusters.kubernetes.manifests.names import (
    COMPANION_LABELS,
    EGRESS,
    GRPC_PORT,
    HTTP_PORT,
    JOB,
    MANAGED,
    METRICS_PORT,
    REPLAY,
    REVISION,
    SERVICE,
    TRANSFORMER,
    Manifest,
    manifest,
    service_labels,
)
from integrations.clusters.kubernetes.manifests.network.peers import (
    dns_rule,
    is_closed,
    namespaces,
    ports,
    rule,
)
from integrations.clusters.kubernetes.manifests.workloads.pods import service_beside
from integrations.clusters.kubernetes.options import (
    ClosedNetwork,
    Destination,
    GatewayReference,
    Options,
    Reach,
)

JOBS = "fairlead-jobs"
"""Name of the policy of the namespace of Jobs."""
_API = "networking.k8s.io/v1"
_PORTS = {"http": 80, "https": 443}


def of_service(desired: Desired, options: Options) -> list[Manifest]:
    """Return the policies of a service: the gateway and companions for requests, monitoring for metrics."""
    closed = options.network
    spec = {"policyTypes": ["Ingress"], "ingress": list(_callers(desired, options))}
    if closed is not None:
        spec |= {"policyTypes": ["Ingress", "Egress"], "egress": _dns(closed)}
    main = _policy(desired, desired.service, {"matchLabels": {SERVICE: desired.service}}, spec)
    return [main] if closed is None else [main, *_egress(desired, closed, options)]


def of_replay(job: Manifest, options: Options, *, egress: bool = False) -> Manifest:
    """Return the NetworkPolicy of a replay's pod, for readers of replicas' metrics only; it is deleted with its Job.

    Args:
        job: as the API server made it.
        egress: the service has granted egress.
    """
    metadata = job["metadata"]
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    known = {name: metadata[name] for name in ("name", "namespace", "labels")}
    opened = ports(HTTP_PORT)
    ingress: list[Manifest] = []
    if options.reach is Reach.API_SERVER:
        ingress.append({"ports": opened})  # it comes from an address of its own, in no namespace
    elif options.monitoring_namespaces:
        ingress.append({"from": namespaces(options.monitoring_namespaces), "ports": opened})
    return {
        "apiVersion": _API,
        "kind": "NetworkPolicy",
        "metadata": {**known, "ownerReferences": [owner]},
        "spec": {"podSelector": {"matchLabels": {JOB: metadata["name"]}}, **_of_job(ingress, options.network, egress)},
    }


def of_jobs(options: Options) -> list[Manifest]:
    """Return the policies of all Jobs but replays in their namespace; none where egress is open."""
    closed = options.network
    if closed is None:
        return []
    jobs = [{"key": JOB, "operator": "Exists"}, {"key": REPLAY, "operator": "DoesNotExist"}]
    made = [_of_jobs(JOBS, {"matchLabels": dict(MANAGED), "matchExpressions": jobs}, _of_job([], closed), options)]
    if closed.granted:
        chosen = {"matchLabels": {**MANAGED, EGRESS: "true"}, "matchExpressions": jobs}
        opened = {"policyTypes": ["Egress"], "egress": [rule(each) for each in closed.granted]}
        made.append(_of_jobs(f"{JOBS}.granted", chosen, opened, options))
    return made


def _of_jobs(name: str, chosen: Manifest, spec: Manifest, options: Options) -> Manifest:
    metadata = {"name": name, "namespace": options.jobs_namespace, "labels": dict(MANAGED)}
    spec = {"podSelector": chosen, **spec}
    return {"apiVersion": _API, "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _of_job(ingress: list[Manifest], closed: ClosedNetwork | None, is_granted: bool = False) -> Manifest:
    if closed is None:
        return {"policyTypes": ["Ingress"], "ingress": ingress}
    rules = [*_dns(closed), *map(rule, (*closed.egress, *(closed.granted if is_granted else ())))]
    return {"policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": rules}


def _callers(desired: Desired, options: Options) -> Iterator[Manifest]:
    kinds = _kinds(desired)
    opened = {HTTP_PORT, GRPC_PORT}.union(*(_ports_of(desired, kind) for kind in kinds))
    gateways = dict.fromkeys(each.proxy_namespace or each.namespace for each in _gateways(options))
    yield {"from": namespaces([*gateways]), "ports": ports(*sorted(opened))}
    for kind in kinds:
        own = _with({"matchLabels": {SERVICE: desired.service}}, _exists(COMPANION_LABELS[kind]))
        called = {HTTP_PORT, GRPC_PORT}
        if kind is CompanionKind.EXPLAINER:
            called |= _ports_of(desired, CompanionKind.TRANSFORMER)
        yield {"from": [{"podSelector": own}], "ports": ports(*sorted(called))}
    yield from _readers(options)


def _gateways(options: Options) -> Sequence[GatewayReference]:
    """Return the Gateways that reach a service's pods: its own, and those of services in a pool that is shared."""
    return (options.gateway, *options.also, *options.callers)


def _kinds(desired: Desired) -> list[CompanionKind]:
    """Return the kinds of companions that any revision has."""
    return [kind for kind in CompanionKind if any(kind in each.companions for each in desired.revisions)]


def _ports_of(desired: Desired, kind: CompanionKind) -> set[int]:
    """Return the ports of all companions of a kind."""
    found = [each.companions[kind] for each in desired.revisions if kind in each.companions]
    return {port for each in found for port in (each.http_port, each.grpc_port)}


def _exists(label: str) -> Manifest:
    return {"key": label, "operator": "Exists"}


def _readers(options: Options) -> Iterator[Manifest]:
    """Yield the peers that may read metrics. The API server's own address is in no namespace."""
    if options.reach is Reach.API_SERVER:
        networks = [{"ipBlock": {"cidr": network}} for network in options.api_server_networks]
        yield {**({"from": networks} if networks else {}), "ports": ports(METRICS_PORT)}
        if not networks:
            return  # every peer may
    if options.monitoring_namespaces:
        yield {"from": namespaces(options.monitoring_namespaces), "ports": ports(METRICS_PORT)}


def _egress(desired: Desired, closed: ClosedNetwork, options: Options) -> Iterator[Manifest]:
    """Yield the policies that open egress of some of the service's pods; no service has a name with a dot, as these."""
    chosen = {"matchLabels": {SERVICE: desired.service}}
    replicas = _with(chosen, _exists(REVISION))
    if closed.egress:
        yield _opening(desired, "replicas", replicas, [rule(each) for each in closed.egress])
    kinds = _kinds(desired)
    for kind in kinds:
        own = [{"to": [{"podSelector": replicas}], "ports": ports(HTTP_PORT, GRPC_PORT)}]
        if kind is CompanionKind.EXPLAINER and CompanionKind.TRANSFORMER in kinds:
            transformers = _with(chosen, _exists(TRANSFORMER))
            opened_at = sorted(_ports_of(desired, CompanionKind.TRANSFORMER))
            own.append({"to": [{"podSelector": transformers}], "ports": ports(*opened_at)})
        yield _opening(desired, f"{kind}s", _with(chosen, _exists(COMPANION_LABELS[kind])), own)
    for revision in desired.revisions:
        if revision.logger is not None:
            of_revision = _with(chosen, {"key": REVISION, "operator": "In", "values": [revision.name]})
            name = f"logger.{revision.name}"
            yield _opening(desired, name, of_revision, [_receiver(desired, revision.logger.url, options)])
    granted = [each for each in desired.revisions if each.egress]
    if granted and closed.granted:
        opened = [rule(each) for each in closed.granted]
        yield _opening(desired, "granted", {"matchLabels": {SERVICE: desired.service, EGRESS: "true"}}, opened)
        for kind in kinds:
            names = [each.name for each in granted if kind in each.companions]
            if names:
                of_granted = _with(chosen, {"key": COMPANION_LABELS[kind], "operator": "In", "values": names})
                yield _opening(desired, f"granted.{kind}s", of_granted, opened)


def _receiver(desired: Desired, url: str, options: Options) -> Manifest:
    """Return the rule to a logger's receiver: behind a Service beside the model, any pod there that is not ours."""
    if service_beside(desired.namespace, url):
        key, value = next(iter(MANAGED.items()))
        return {"to": [{"podSelector": {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]}]}}]}
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 443)
    places = [Destination(is_internet=True)]
    places += [Destination(network) for network in options.egress_allowed if not is_closed(network)]
    return {"to": [peer for each in places for peer in rule(each)["to"]], "ports": ports(port)}


def _dns(closed: ClosedNetwork) -> list[Manifest]:
    return [dns_rule(each) for each in closed.dns]


def _with(chosen: Manifest, expression: Manifest) -> Manifest:
    return {**chosen, "matchExpressions": [expression]}


def _opening(desired: Desired, name: str, chosen: Manifest, egress: Sequence[Manifest]) -> Manifest:
    spec = {"policyTypes": ["Egress"], "egress": list(egress)}
    return _policy(desired, f"{desired.service}.{name}", chosen, spec)


def _policy(desired: Desired, name: str, chosen: Manifest, spec: Manifest) -> Manifest:
    labels = service_labels(desired.service)
    return manifest(_API, "NetworkPolicy", desired, name, labels, spec={"podSelector": chosen, **spec})
