"""Route rules of HTTPRoutes and GRPCRoutes: matches, weighted backends and mirrors. Pure.

Answers carry their revision in the header `fairlead-revision`. The runtime sets it, and a transformer may pass it on,
so that no backendRef needs a filter: only without any does Envoy Gateway keep the backends of a rule in one cluster of
Envoy, with weights of endpoints (`RouteDestination.NeedsClusterPerSetting` of its source). With a cluster for each,
Envoy gets the route to a new one before that is warm, and answers 500.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from integrations.clusters.kubernetes.manifests.names import GRPC_PORT, HTTP_PORT, Manifest
from integrations.clusters.kubernetes.manifests.routes.calls import GRPC_INFER, GRPC_OTHERS, Calls, Path
from integrations.clusters.kubernetes.manifests.routes.pooled import HALVES

ANYBODY: Sequence[Sequence[Manifest]] = ((),)
"""The match of a rule without header conditions."""


def filtered(rules: Sequence[Manifest], by: Manifest) -> list[Manifest]:
    """Return the rules with one more filter, the first of each, or a part of the one that removes headers already."""
    return [{**rule, "filters": _first(by, rule.get("filters", ()))} for rule in rules]


def _first(by: Manifest, filters: Sequence[Manifest]) -> list[Manifest]:
    """Return filters with one more; a rule may have one that changes headers of requests."""
    member = "requestHeaderModifier"
    if not filters or member not in by or member not in filters[0]:
        return [by, *filters]
    removed = [*by[member]["remove"], *filters[0][member]["remove"]]
    return [{**filters[0], member: {**filters[0][member], "remove": removed}}, *filters[1:]]


def preflight_rule(prefix: str, shares: Sequence["Share"]) -> Manifest:
    """Return the rule of browsers' preflights below `prefix`, which the gateway answers before any backend.

    Other requests with OPTIONS match only the rules that take every method, for V1 and for versions: pods refuse them.
    """
    names = ("origin", "access-control-request-method")
    present = [{"type": "RegularExpression", "name": name, "value": ".+"} for name in names]
    path = {"type": "PathPrefix", "value": prefix or "/"}
    match: Manifest = {"path": path, "method": "OPTIONS", "headers": present}
    return {"matches": [match], "backendRefs": _backends(shares, HTTP_PORT)}


@dataclass(frozen=True, slots=True)
class Share:
    """One backend's share of a route: a weight of requests, and copies of a percentage of the inferences.

    Attributes:
        backend: the name of the revision's Service, or of its transformer's.
        explain_backend: the same for explain requests; empty where they go where the others do.
        filters: of its requests and answers (`pooled.py`).
        namespace: of the backend; empty for the route's own.
        own: the Service of its own replicas beside its pool; empty where routes do not know them.
    """

    backend: str
    weight: int
    mirror_percent: int = 0
    explain_backend: str = ""
    filters: tuple[Manifest, ...] = ()
    namespace: str = ""
    own: str = ""


def http_rules(
    prefix: str,
    calls: Calls,
    shares: Sequence[Share],
    *,
    whose: Sequence[Sequence[Manifest]] = ANYBODY,
    mirrors: bool = False,
    timeout_s: int = 0,
    mount: str = "",
) -> list[Manifest]:
    """Return the rules for calls below `prefix`, which `mount` replaces: one per path, since a path is replaced by one.

    Args:
        prefix: empty where a host selects the service; one rule for inference and one for what reads are enough there.
        whose: header matches; a request matches when all of one of these lists hold.
        mirrors: get copies of the inferences.
        timeout_s: how long a request may take; 0 leaves that to the client.
        mount: where the calls are at the backends; empty where these have no others.
    """
    made = []
    for paths, copied in ((calls.infer, mirrors), (calls.reads, False)):
        for its in _of_rules(paths) if prefix != mount else [paths] if paths else []:
            made.append(_http_rule(its, shares, whose, timeout_s=timeout_s, mirrors=copied, prefix=prefix, mount=mount))
    return made


def most_http_rules(calls: Calls) -> int:
    """Return how many rules `http_rules` makes at most of these calls."""
    return sum(len([*_of_rules(paths)]) for paths in (calls.infer, calls.reads))


def explain_rules(
    prefix: str,
    calls: Calls,
    shares: Sequence[Share],
    *,
    whose: Sequence[Sequence[Manifest]] = ANYBODY,
    timeout_s: int = 0,
) -> list[Manifest]:
    """Return the rules for explain requests, as `http_rules` does: by the same weights, never copied."""
    its = [replace(share, backend=share.explain_backend or share.backend) for share in shares]
    found = _of_rules(calls.explain) if prefix else [calls.explain] if calls.explain else []
    return [_http_rule(paths, its, whose, timeout_s=timeout_s, prefix=prefix) for paths in found]


def _of_rules(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield the paths of each rule that replaces its path: one prefix with one method, or one whole path."""
    for _, its in groupby(paths, key=lambda path: path._replace(method="") if path.is_exact else path):
        yield list(its)


def grpc_rules(
    shares: Sequence[Share], *, named: Sequence[Manifest], whose: Sequence[Sequence[Manifest]] = ANYBODY
) -> list[Manifest]:
    """Return the rules for calls whose metadata match all of `named` and all of one of the lists `whose`."""

    def matches(*calls: tuple[str, str]) -> list[Manifest]:
        return [_grpc_match(*call, [*named, *headers]) for headers in whose for call in calls]

    refs = _backends(shares, GRPC_PORT)
    infer: Manifest = {"matches": matches(GRPC_INFER), "backendRefs": refs}
    copies = _mirrors(shares, GRPC_PORT)
    if copies:
        infer["filters"] = copies
    return [infer, {"matches": matches(*GRPC_OTHERS), "backendRefs": refs}]


def _grpc_match(service: str, method: str, headers: Sequence[Manifest]) -> Manifest:
    found: Manifest = {"method": {"type": "Exact", "service": service, "method": method}}
    return {**found, "headers": list(headers)} if headers else found


def _http_rule(
    paths: Sequence[Path],
    shares: Sequence[Share],
    whose: Sequence[Sequence[Manifest]],
    *,
    timeout_s: int,
    mirrors: bool = False,
    prefix: str = "",
    mount: str = "",
) -> Manifest:
    matches = [_http_match(prefix, path, headers) for headers in whose for path in paths]
    # 0 sets no timeout: the client limits how long a model may take, or the service does.
    timeouts = {"request": f"{timeout_s}s"}
    rule: Manifest = {"matches": matches, "backendRefs": _backends(shares, HTTP_PORT), "timeouts": timeouts}
    filters: list[Manifest] = []
    if prefix != mount:
        filters.append({"type": "URLRewrite", "urlRewrite": {"path": _replaced_by(paths[0], mount)}})
    if mirrors:
        filters += _mirrors(shares, HTTP_PORT)
    return {**rule, "filters": filters} if filters else rule


def _http_match(prefix: str, path: Path, headers: Sequence[Manifest]) -> Manifest:
    kind = "Exact" if path.is_exact else "PathPrefix"
    match: Manifest = {"path": {"type": kind, "value": prefix + path.value}}
    if path.method:
        match["method"] = path.method
    return {**match, "headers": list(headers)} if headers else match


def _replaced_by(path: Path, mount: str) -> Manifest:
    if path.is_exact:
        return {"type": "ReplaceFullPath", "replaceFullPath": mount + path.value}
    return {"type": "ReplacePrefixMatch", "replacePrefixMatch": mount + path.value}


def _backends(shares: Sequence[Share], port: int) -> list[Manifest]:
    filtered = [share for share in shares if share.filters and share.weight]
    if filtered:
        return [
            {**_service(share, port), "weight": share.weight, "filters": list(share.filters)}
            for share in _in_two(filtered)
        ]
    return [{**_service(share, port), "weight": share.weight} for share in shares]


def _in_two(shares: Sequence[Share]) -> Sequence[Share]:
    """Return the shares, a single one in two halves (`pooled.py`)."""
    return [replace(shares[0], weight=half) for half in HALVES] if len(shares) == 1 else shares


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
    there = {"namespace": share.namespace} if share.namespace else {}
    return {"group": "", "kind": "Service", "name": share.backend, **there, "port": port}
