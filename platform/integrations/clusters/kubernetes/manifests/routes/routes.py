"""HTTPRoutes and GRPCRoutes of a service on the operator's Gateway (Gateway API v1). Pure.

A service is addressed by path (`/serving/default/digits/...`), for gRPC by metadata (`fairlead-service:
default/digits`), and with a domain by host (`digits.default.example.org`). The path routes need a rule for each call,
since a path is replaced by one path; a route has 16 rules at most, so that every version has its own route, and so has
the group of clients whose requests are the canary's (`client_groups.py`).

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
    PREVIEW,
    Manifest,
    backend,
    manifest,
    match_route,
    no_endpoints_name,
    service_labels,
)
from integrations.clusters.kubernetes.manifests.routes.calls import fact_paths, infer_paths, meta_paths
from integrations.clusters.kubernetes.manifests.routes.client_groups import EMPTY_GROUP, by_route, to_json
from integrations.clusters.kubernetes.manifests.routes.rules import (
    ANYBODY,
    Share,
    filtered,
    grpc_rules,
    http_rules,
    preflight_rule,
)
from integrations.clusters.kubernetes.manifests.routes.security_policy import WITHHOLD_TOKEN
from integrations.clusters.kubernetes.options import Options

SERVICE_METADATA = "fairlead-service"
_API = "gateway.networking.k8s.io/v1"
_Whose = Sequence[Sequence[Manifest]]


def routes(desired: Desired, shares: Mapping[str, int], options: Options) -> list[Manifest]:
    """Return the routes of a service, its HTTPRoute `<service>` last, since that one records what was applied.

    Args:
        shares: percent of requests per revision; an absent revision gets none.
    """
    revisions = sorted(desired.revisions, key=lambda revision: revision.name)
    own = [_share(each, shares.get(each.name, 0), each.mirror_percent) for each in revisions]
    if not any(share.weight for share in own):
        own.append(Share(no_endpoints_name(desired.service), 1))
    address = _Address(desired, options, desired.service)
    made = [*_versions(address, revisions, shares), *_groups(address, revisions, own), *_grpc(address, own)]
    if desired.preview:
        preview = _Address(desired, options, f"{desired.service}{PREVIEW_SUFFIX}")
        tried = [_share(each, 100) for each in revisions if each.name == desired.preview]
        made += [*_grpc(preview, tried), *_http(preview, tried)]
    made += _http(address, own)
    annotations = {GENERATION: str(desired.generation), PREVIEW: desired.preview}
    if groups := {each.name: each.match for each in revisions if each.match}:
        annotations[MATCH] = to_json(groups)
    made[-1]["metadata"]["annotations"] = annotations
    return made


@dataclass(frozen=True, slots=True)
class _Address:
    """The address of a service, or of its preview."""

    desired: Desired
    options: Options
    name: str

    @property
    def prefix(self) -> str:
        return f"/serving/{self.desired.namespace}/{self.name}"

    @property
    def host(self) -> str:
        return f"{self.name}.{self.desired.namespace}.{self.options.domain}" if self.options.domain else ""

    @property
    def metadata(self) -> str:
        return f"{self.desired.namespace}/{self.name}"

    def http(self, name: str, rules: Sequence[Manifest], *, host: str = "") -> Manifest:
        return self._route("HTTPRoute", name, self.options.gateway.http_listener, rules, host)

    def grpc(self, name: str, rules: Sequence[Manifest], *, host: str = "") -> Manifest:
        return self._route("GRPCRoute", name, self.options.gateway.grpc_listener, rules, host)

    def _route(self, kind: str, name: str, listener: str, rules: Sequence[Manifest], host: str) -> Manifest:
        gateway = self.options.gateway
        parent = {
            "group": "gateway.networking.k8s.io",
            "kind": "Gateway",
            "name": gateway.name,
            "namespace": gateway.namespace,
        }
        if listener:
            parent["sectionName"] = listener
        spec: Manifest = {"parentRefs": [parent]}
        if host:
            spec["hostnames"] = [host]
        labels = service_labels(self.desired.service)
        spec["rules"] = rules if self.desired.access is None else filtered(rules, WITHHOLD_TOKEN)
        return manifest(_API, kind, self.desired, name, labels, spec=spec)


def _share(revision: DesiredRevision, weight: int, mirror_percent: int = 0) -> Share:
    return Share(backend(revision), weight, mirror_percent)


def _http(
    address: _Address, shares: Sequence[Share], *, name: str = "", version: str = "", whose: _Whose = ANYBODY
) -> Iterator[Manifest]:
    """Yield the routes by host, if any, and by path; requests that name a version are not copied."""
    name, model = name or address.name, address.desired.service
    infer, meta, facts = (paths(model, version) for paths in (infer_paths, meta_paths, fact_paths))

    def rules(prefix: str) -> list[Manifest]:
        timeout_s = address.desired.request_timeout_s
        made = http_rules(prefix, infer, meta, facts, shares, whose=whose, mirrors=not version, timeout_s=timeout_s)
        if address.desired.cors is not None and not version and whose is ANYBODY:
            made.append(preflight_rule(prefix, shares))
        return made

    if address.host:
        yield address.http(f"{name}-host", rules(""), host=address.host)
    yield address.http(name, rules(address.prefix))


def _grpc(address: _Address, shares: Sequence[Share], *, name: str = "", whose: _Whose = ANYBODY) -> Iterator[Manifest]:
    """Yield the routes by metadata and, if any, by host."""
    name = name or address.name
    named = [{"type": "Exact", "name": SERVICE_METADATA, "value": address.metadata}]
    yield address.grpc(name, grpc_rules(shares, named=named, whose=whose))
    if address.host:
        yield address.grpc(f"{name}-host", grpc_rules(shares, named=[], whose=whose), host=address.host)


def _versions(address: _Address, revisions: Sequence[DesiredRevision], shares: Mapping[str, int]) -> Iterator[Manifest]:
    """Yield the routes of requests that name a version: to its revisions, by share or, without one, equally."""
    for version in sorted({revision.model_version for revision in revisions}):
        serving = [revision for revision in revisions if revision.model_version == version]
        total = sum(shares.get(each.name, 0) for each in serving)
        own = [_share(each, shares.get(each.name, 0) if total else 1) for each in serving]
        yield from _http(address, own, name=f"{address.name}-version-{version}", version=version)


def _groups(address: _Address, revisions: Sequence[DesiredRevision], own: Sequence[Share]) -> Iterator[Manifest]:
    """Yield the routes of requests that belong to a group, with any shares, and name no version.

    Where a group is possible but empty, its first route matches no request and leads to the default backends: a gateway
    then knows the route's backends before the first request takes it, and until after the last.
    """
    if len(revisions) > 1 and not any(revision.match for revision in revisions):
        name, everybodys = match_route(address.name, 0), [replace(share, mirror_percent=0) for share in own]
        yield from _grpc(address, everybodys, name=name, whose=EMPTY_GROUP)
        yield from _http(address, everybodys, name=name, whose=EMPTY_GROUP)
    for revision in revisions:
        for index, whose in enumerate(by_route(revision.match)):
            name, its = match_route(address.name, index), [_share(revision, 100)]
            yield from _grpc(address, its, name=name, whose=whose)
            yield from _http(address, its, name=name, whose=whose)
