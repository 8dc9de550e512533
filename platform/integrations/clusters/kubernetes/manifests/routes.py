"""Routes of a service on the operator's Gateway (Gateway API v1: HTTPRoute, GRPCRoute). Pure.

A service is found by path (`/serving/default/digits/...`), for gRPC by metadata (`fairlead-service: default/digits`),
and with a domain by host (`digits.default.example.org`). The path routes need a rule for each call, since what is put
in a path's place is one path; a route has 16 rules at most, so that every version has a route of its own.

Only the backendRefs depend on a rollout: weights of what clients ask for, and for shadows a mirror. Each backendRef
sets the header `fairlead-revision` in its answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from integrations.clusters.base import PREVIEW_SUFFIX, Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests.calls import (
    GRPC_INFER,
    GRPC_OTHERS,
    infer_paths,
    meta_paths,
)
from integrations.clusters.kubernetes.manifests.names import (
    GENERATION,
    GRPC_PORT,
    HTTP_PORT,
    PREVIEW,
    Manifest,
    manifest,
    service_labels,
)
from integrations.clusters.kubernetes.options import Options

REVISION_HEADER = "fairlead-revision"
SERVICE_METADATA = "fairlead-service"
_API = "gateway.networking.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Share:
    """What one revision gets of a route: a weight of requests, and copies of a percentage of the inferences."""

    revision: str
    weight: int
    mirror_percent: int = 0


def routes(desired: Desired, shares: Mapping[str, int], options: Options) -> list[Manifest]:
    """Return the routes of a service, its HTTPRoute `<service>` last, since that one tells what was applied.

    Args:
        shares: percent of requests that each revision gets; a revision that is not in it gets none.
    """
    revisions = sorted(desired.revisions, key=lambda revision: revision.name)
    own = [Share(each.name, shares.get(each.name, 0), each.mirror_percent) for each in revisions]
    address = _Address(desired, options, desired.service)
    made = [*_versions(address, revisions, shares), *_grpc(address, own)]
    if desired.preview:
        preview = _Address(desired, options, f"{desired.service}{PREVIEW_SUFFIX}")
        made += [*_grpc(preview, [Share(desired.preview, 100)]), *_http(preview, [Share(desired.preview, 100)])]
    made += _http(address, own)
    made[-1]["metadata"]["annotations"] = {GENERATION: str(desired.generation), PREVIEW: desired.preview}
    return made


@dataclass(frozen=True, slots=True)
class _Address:
    """How a service, or its preview, is called."""

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
        return manifest(_API, kind, self.desired, name, labels, spec={**spec, "rules": list(rules)})


def _http(address: _Address, shares: Sequence[Share]) -> Iterator[Manifest]:
    model = address.desired.service
    infer, meta = infer_paths(model), meta_paths(model)
    if address.host:
        rules = [
            _http_rule(_posts(infer), shares, mirrors=True),
            _http_rule(_gets(meta), shares),
        ]
        yield address.http(f"{address.name}-host", rules, host=address.host)
    yield address.http(address.name, _by_path(address, infer, meta, shares, mirrors=True))


def _versions(address: _Address, revisions: Sequence[DesiredRevision], shares: Mapping[str, int]) -> Iterator[Manifest]:
    """Yield the routes of requests that name a version: to who serves it, by share or, without one, alike."""
    model = address.desired.service
    for version in sorted({revision.model_version for revision in revisions}):
        serving = [revision.name for revision in revisions if revision.model_version == version]
        total = sum(shares.get(name, 0) for name in serving)
        own = [Share(name, shares.get(name, 0) if total else 1) for name in serving]
        infer, meta = infer_paths(model, version), meta_paths(model, version)
        name = f"{address.name}-version-{version}"
        if address.host:
            rules = [_http_rule(_posts(infer), own), _http_rule(_gets(meta), own)]
            yield address.http(f"{name}-host", rules, host=address.host)
        yield address.http(name, _by_path(address, infer, meta, own))


def _by_path(
    address: _Address, infer: Sequence[str], meta: Sequence[str], shares: Sequence[Share], *, mirrors: bool = False
) -> list[Manifest]:
    """Return one rule per path; the prefix of the path is taken off."""
    return [
        *(_http_rule(_posts([address.prefix + path]), shares, mirrors=mirrors, rewrite=path) for path in infer),
        *(_http_rule(_gets([address.prefix + path]), shares, rewrite=path) for path in meta),
    ]


def _grpc(address: _Address, shares: Sequence[Share]) -> Iterator[Manifest]:
    named = [{"type": "Exact", "name": SERVICE_METADATA, "value": address.metadata}]
    yield address.grpc(address.name, _grpc_rules(shares, named))
    if address.host:
        yield address.grpc(f"{address.name}-host", _grpc_rules(shares, []), host=address.host)


def _grpc_rules(shares: Sequence[Share], headers: Sequence[Manifest]) -> list[Manifest]:
    def match(service: str, method: str) -> Manifest:
        found: Manifest = {"method": {"type": "Exact", "service": service, "method": method}}
        return {**found, "headers": list(headers)} if headers else found

    refs = _backends(shares, GRPC_PORT)
    infer = {"matches": [match(*GRPC_INFER)], "backendRefs": refs}
    copies = _mirrors(shares, GRPC_PORT)
    if copies:
        infer["filters"] = copies
    return [infer, {"matches": [match(*call) for call in GRPC_OTHERS], "backendRefs": refs}]


def _posts(paths: Sequence[str]) -> list[Manifest]:
    return [{"path": {"type": "Exact", "value": path}, "method": "POST"} for path in paths]


def _gets(paths: Sequence[str]) -> list[Manifest]:
    return [
        {"path": {"type": "Exact", "value": path}, "method": method} for path in paths for method in ("GET", "HEAD")
    ]


def _http_rule(
    matches: Sequence[Manifest], shares: Sequence[Share], *, mirrors: bool = False, rewrite: str = ""
) -> Manifest:
    filters: list[Manifest] = []
    if rewrite:
        path = {"type": "ReplaceFullPath", "replaceFullPath": rewrite}
        filters.append({"type": "URLRewrite", "urlRewrite": {"path": path}})
    if mirrors:
        filters += _mirrors(shares, HTTP_PORT)
    # Without an end of its own: how long a model may think is the client's to say.
    rule: Manifest = {
        "matches": list(matches),
        "backendRefs": _backends(shares, HTTP_PORT),
        "timeouts": {"request": "0s"},
    }
    if filters:
        rule["filters"] = filters
    return rule


def _backends(shares: Sequence[Share], port: int) -> list[Manifest]:
    return [
        {
            **_service(share, port),
            "weight": share.weight,
            "filters": [
                {
                    "type": "ResponseHeaderModifier",
                    "responseHeaderModifier": {"set": [{"name": REVISION_HEADER, "value": share.revision}]},
                }
            ],
        }
        for share in shares
    ]


def _mirrors(shares: Sequence[Share], port: int) -> list[Manifest]:
    return [
        {
            "type": "RequestMirror",
            "requestMirror": {"backendRef": _service(share, port), "percent": share.mirror_percent},
        }
        for share in shares
        if share.mirror_percent
    ]


def _service(share: Share, port: int) -> Manifest:
    return {"group": "", "kind": "Service", "name": share.revision, "port": port}
