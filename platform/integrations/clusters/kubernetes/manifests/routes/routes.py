"""HTTPRoutes and GRPCRoutes of a service on the operator's Gateway (Gateway API v1). Pure.

A service is addressed by path (`/serving/default/digits/...`), for gRPC by metadata (`fairlead-service:
default/digits`), or by host (`digits.default.example.org`), as the cluster says; some have both, and then each route
of these twice.

    at rest            one HTTPRoute and one GRPCRoute, for all calls (`calls.py`): 4 rules by path or 2 by host, and 2
    several revisions  and those of the group of clients whose requests are the canary's (`client_groups.py`)
    several versions   and an HTTPRoute for each, of the requests that name it
    a preview          and both routes of its address
    own replicas       no route more; each route's rules of the kind twice, of which one matches (`own_replicas.py`)
    an explainer       no route more; 2 rules more by path or 1 by host, of explain requests

A request that names a version meets the rules for everyone while all of these requests are that version's; its replicas
refuse another version.

Only the backendRefs depend on a rollout: weights of client requests, and for shadows a mirror. Where no revision may
answer yet all weight is on a Service without endpoints: the Gateway API requires 503 then, and 500 where no backendRef
has a weight (HTTPRouteRule.backendRefs).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from integrations.clusters.base import PREVIEW_SUFFIX, Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import (
    GENERATION,
    MATCH,
    OWN,
    OWN_SINCE,
    PREVIEW,
    SERVICE_METADATA,
    Manifest,
    backend,
    explain_backend,
    manifest,
    match_route,
    no_endpoints_name,
    pool_namespace,
    pool_of,
    replicas_name,
    service_labels,
)
from integrations.clusters.kubernetes.manifests.routes.calls import Calls, of_group, of_service, of_version
from integrations.clusters.kubernetes.manifests.routes.client_groups import EMPTY_GROUP, by_route, to_json
from integrations.clusters.kubernetes.manifests.routes.own_replicas import OWN_FACTOR, Own, Stage
from integrations.clusters.kubernetes.manifests.routes.pooled import WITHHOLD_POOLS_HEADERS, filters_of
from integrations.clusters.kubernetes.manifests.routes.rules import (
    ANYBODY,
    Share,
    explain_rules,
    filtered,
    grpc_rules,
    http_rules,
    most_http_rules,
    preflight_rule,
)
from integrations.clusters.kubernetes.manifests.routes.security_policy import WITHHOLD_TOKEN
from integrations.clusters.kubernetes.options import GatewayReference, Options

_API = "gateway.networking.k8s.io/v1"
_Whose = Sequence[Sequence[Manifest]]


def routes(
    desired: Desired, shares: Mapping[str, int], options: Options, beside_pool: Own | None = None
) -> list[Manifest]:
    """Return the routes of a service in their order of application.

    Its HTTPRoute `<service>` records what was applied; after it come only routes that take no request any more.

    Args:
        shares: percent of requests per revision; an absent revision gets none.
        beside_pool: own replicas of a service in a pool.
    """
    revisions = sorted(desired.revisions, key=lambda revision: revision.name)
    beside = beside_pool or Own()
    address, calls = _Address(desired, options, desired.service, beside), of_service(desired.service)
    own = [_share(address, each, shares.get(each.name, 0), each.mirror_percent) for each in revisions]
    if not any(share.weight for share in own):
        own.append(Share(no_endpoints_name(desired.service), 1))
    opened, closed = _versions(address, revisions, shares)
    made = [*opened, *_groups(address, revisions, own), *_grpc(address, own)]
    if desired.preview:
        preview = _Address(desired, options, f"{desired.service}{PREVIEW_SUFFIX}", beside)
        tried = [_share(preview, each, 100) for each in revisions if each.name == desired.preview]
        made += [*_grpc(preview, tried), *_http(preview, tried, calls)]
    made += _http(address, own, calls, mirrors=True)
    annotations = {GENERATION: str(desired.generation), PREVIEW: desired.preview}
    if groups := {each.name: each.match for each in revisions if each.match}:
        annotations[MATCH] = to_json(groups)
    is_pooled = any(each.pool for each in revisions)
    if any(share.own for share in own) or (is_pooled and beside.stage is not Stage.POOL):
        annotations |= {OWN: beside.stage.value, OWN_SINCE: f"{beside.since:.3f}"}
    made[-1]["metadata"]["annotations"] = annotations
    return [*made, *closed]


@dataclass(frozen=True, slots=True)
class _Address:
    """The address of a service, or of its preview."""

    desired: Desired
    options: Options
    name: str
    beside: Own

    @property
    def prefix(self) -> str:
        return f"/serving/{self.desired.namespace}/{self.name}"

    @property
    def mount(self) -> str:
        """Return where the service's calls are at its backends: below a path at replicas of a pool."""
        return "" if self.is_plain else f"/serving/{self.desired.namespace}/{self.desired.service}"

    @property
    def is_plain(self) -> bool:
        """Return whether the first rules lead to the revisions' own Services, not to a pool."""
        return self.beside.stage.is_plain or not any(each.pool for each in self.desired.revisions)

    @property
    def host(self) -> str:
        return f"{self.name}.{self.desired.namespace}.{self.options.domain}"

    @property
    def metadata(self) -> str:
        return f"{self.desired.namespace}/{self.name}"

    def of_host(self, name: str) -> str:
        """Return the name of a route by host; it has the service's where the cluster has no paths."""
        return f"{name}-host" if self.options.has_paths else name

    def http(self, name: str, rules: Sequence[Manifest], *, host: str = "") -> Manifest:
        return self._route("HTTPRoute", name, rules, host)

    def grpc(self, name: str, rules: Sequence[Manifest], *, host: str = "") -> Manifest:
        return self._route("GRPCRoute", name, rules, host)

    def _route(self, kind: str, name: str, rules: Sequence[Manifest], host: str) -> Manifest:
        spec: Manifest = {"parentRefs": [_parent(kind, each) for each in (self.options.gateway, *self.options.also)]}
        if host:
            spec["hostnames"] = [host]
        labels = service_labels(self.desired.service)
        spec["rules"] = rules if self.desired.access is None else filtered(rules, WITHHOLD_TOKEN)
        return manifest(_API, kind, self.desired, name, labels, spec=spec)


def _parent(kind: str, gateway: GatewayReference) -> Manifest:
    parent = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": gateway.name,
        "namespace": gateway.namespace,
    }
    if listener := gateway.http_listener if kind == "HTTPRoute" else gateway.grpc_listener:
        parent["sectionName"] = listener
    return parent


def _share(address: _Address, revision: DesiredRevision, weight: int, mirror_percent: int = 0) -> Share:
    own = backend(revision) if address.beside.knows(revision) else ""
    if address.is_plain:
        return Share(backend(revision), weight, mirror_percent, explain_backend(revision), own=own)
    pooled = revision if revision.pool else next(each for each in address.desired.revisions if each.pool)
    at, filters = pool_namespace(pooled), filters_of(address.desired, revision)
    there = "" if at == address.desired.namespace else at
    taken = weight if revision.pool or own else 0  # one outside the pool gets requests once own replicas answer
    return Share(replicas_name(pool_of(pooled)), taken, filters=filters, namespace=there, own=own)


def _http(
    address: _Address,
    shares: Sequence[Share],
    calls: Calls,
    *,
    name: str = "",
    whose: _Whose = ANYBODY,
    mirrors: bool = False,
) -> Iterator[Manifest]:
    """Yield the routes by host and by path, as the cluster has them."""
    name = name or address.name

    def rules(prefix: str) -> list[Manifest]:
        timeout_s = address.desired.request_timeout_s
        first, second = _whose(address, shares, whose)
        made = http_rules(prefix, calls, shares, whose=first, mirrors=mirrors, timeout_s=timeout_s, mount=address.mount)
        fewer = most_http_rules(calls) - len(made) if whose is ANYBODY else 0
        if address.desired.cors is not None and name == address.name:
            made.append(preflight_rule(prefix, shares))
        if any(revision.explainer is not None for revision in address.desired.revisions):
            # Last: a rule's place is its cluster's name in Envoy, and those before keep theirs.
            made += explain_rules(prefix, calls, shares, whose=whose, timeout_s=timeout_s)
        if its := _own(address, shares):
            # They keep their places where the first ones become others, of which there are more or fewer.
            made += http_rules(prefix, calls, shares[:1], whose=EMPTY_GROUP, mount=address.mount)[:1] * fewer
            known = http_rules(prefix, calls, its, whose=second, timeout_s=timeout_s)
            made += filtered(known, WITHHOLD_POOLS_HEADERS)
        return made

    if address.options.has_hosts:
        yield address.http(address.of_host(name), rules(""), host=address.host)
    if address.options.has_paths:
        yield address.http(name, rules(address.prefix))


def _grpc(address: _Address, shares: Sequence[Share], *, name: str = "", whose: _Whose = ANYBODY) -> Iterator[Manifest]:
    """Yield the routes by metadata, where the cluster has paths, and by host."""
    name = name or address.name
    named = [{"type": "Exact", "name": SERVICE_METADATA, "value": address.metadata}]
    first, second = _whose(address, shares, whose)

    def rules(named: Sequence[Manifest]) -> list[Manifest]:
        made, its = grpc_rules(shares, named=named, whose=first), _own(address, shares)
        known = grpc_rules(its, named=named, whose=second) if its else []
        return [*made, *filtered(known, WITHHOLD_POOLS_HEADERS)]

    if address.options.has_paths:
        yield address.grpc(name, rules(named))
    if address.options.has_hosts:
        yield address.grpc(address.of_host(name), rules([]), host=address.host)


def _own(address: _Address, shares: Sequence[Share]) -> list[Share]:
    """Return the shares of revisions whose own replicas a route knows, as these have them.

    With the gateway's hash, by `traffic_policy.py`, their weights are twice as large, in the same proportions: Envoy
    takes a cluster whose policy has changed, and all that come after it, only with other endpoints, and a weight is a
    part of these.
    """
    factor = 1 if address.is_plain else OWN_FACTOR
    return [
        replace(each, backend=each.own, weight=factor * each.weight, filters=(), namespace="", own="")
        for each in shares
        if each.own
    ]


def _whose(address: _Address, shares: Sequence[Share], whose: _Whose) -> tuple[_Whose, _Whose]:
    """Return the matches of the first rules, and of those to own replicas beside a pool.

    These answer where all revisions with requests of the route have some; a rule has replicas of one kind alone.
    """
    taking = [each for each in shares if each.weight]
    if address.beside.stage in (Stage.OWN, Stage.MOVED) and taking and all(each.own for each in taking):
        return EMPTY_GROUP, whose
    return whose, EMPTY_GROUP


def _versions(
    address: _Address, revisions: Sequence[DesiredRevision], shares: Mapping[str, int]
) -> tuple[list[Manifest], list[Manifest]]:
    """Return the routes of requests that name a version: to its revisions, by share or, without one, equally.

    Those of the second list match no request, since the rules for everyone lead to their version alone: a gateway then
    knows their backends before another version takes requests.
    """
    opened: list[Manifest] = []
    closed: list[Manifest] = []
    versions = sorted({revision.model_version for revision in revisions})
    for version in versions if len(versions) > 1 else ():
        serving = [revision for revision in revisions if revision.model_version == version]
        total = sum(shares.get(each.name, 0) for each in serving)
        own = [_share(address, each, shares.get(each.name, 0) if total else 1) for each in serving]
        others = (each for each in revisions if each.model_version != version)
        is_alone = total and not any(shares.get(each.name) or each.mirror_percent or each.match for each in others)
        calls, name = of_version(address.desired.service, version), f"{address.name}-version-{version}"
        found = _http(address, own, calls, name=name, whose=EMPTY_GROUP if is_alone else ANYBODY)
        (closed if is_alone else opened).extend(found)
    return opened, closed


def _groups(address: _Address, revisions: Sequence[DesiredRevision], own: Sequence[Share]) -> Iterator[Manifest]:
    """Yield the routes of requests that belong to a group, with any shares, and name no version.

    Where a group is possible but empty, its first route matches no request and leads to the default backends: a gateway
    then knows the route's backends before the first request takes it, and until after the last. While a service moves
    into a pool or out of it no client is in a group, and its routes have no room for both kinds of rules.
    """
    calls = of_group(address.desired.service)
    if address.beside.stage.is_plain:
        address = replace(address, beside=replace(address.beside, stage=Stage.PLAIN))
        own = [replace(each, own="") for each in own]
    if len(revisions) > 1 and not any(revision.match for revision in revisions):
        name, everybodys = match_route(address.name, 0), [replace(share, mirror_percent=0) for share in own]
        yield from _grpc(address, everybodys, name=name, whose=EMPTY_GROUP)
        yield from _http(address, everybodys, calls, name=name, whose=EMPTY_GROUP)
    for revision in revisions:
        for index, whose in enumerate(by_route(revision.match)):
            name, its = match_route(address.name, index), [_share(address, revision, 100)]
            yield from _grpc(address, its, name=name, whose=whose)
            yield from _http(address, its, calls, name=name, whose=whose)
