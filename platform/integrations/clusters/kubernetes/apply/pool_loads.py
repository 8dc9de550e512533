"""First load of a revision by its pool, at the replica where the gateway's hash sends its requests.

The revision counts as ready once that replica has its model, so that a canary gets no request before, and none at all
where its model does not load. The service's entry remembers it for all workers. A control plane that reaches pods
through the API server alone may not ask them: there the first request loads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx

from integrations.clusters.base import Desired
from integrations.clusters.kubernetes.manifests.names import HTTP_PORT, METRICS_PORT
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.routes.traffic_policy import TABLE_SIZE
from integrations.clusters.kubernetes.options import Options, Reach
from integrations.clusters.local.envoy import maglev

Json = dict[str, Any]
_AGAIN_S = 10.0
_TIMEOUT = httpx.Timeout(5.0)  # the load goes on, and the next turn asks for it again
_MOST_CHARACTERS = 400


def loaded(desired: Desired, entry: Entry, slices: Sequence[Json], options: Options, now: float) -> Entry:
    """Return the entry with the revisions that are loaded now, and why others are not.

    Args:
        slices: endpoints of all of the pool's replicas.
    """
    wanted = [each for each in desired.revisions if each.replicas or each.weight_percent]
    names = {each.name for each in desired.revisions}
    done = set(entry.loaded & names)
    failures = {name: failure for name, failure in entry.failures.items() if name in names - done}
    home = home_among(addresses(slices), desired.namespace, desired.service)
    for revision in wanted if home else ():
        failed = failures.get(revision.name)
        if revision.name in done or (failed is not None and now < failed[1] + _AGAIN_S):
            continue
        key = f"{desired.namespace}.{desired.service}@{revision.model_version}"
        why = "" if options.reach is Reach.API_SERVER else _asked(home, key)
        if why == "":
            done.add(revision.name)
            failures.pop(revision.name, None)
        elif why is not None:
            failures[revision.name] = (why, now)
    return replace(entry, loaded=frozenset(done), failures=failures)


def addresses(slices: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the addresses of the replicas that take requests, as they are written in URLs."""
    found: set[str] = set()
    for each in slices:
        for endpoint in each.get("endpoints") or ():
            if endpoint.get("conditions", {}).get("ready"):
                found.update(f"[{ip}]" if ":" in ip else str(ip) for ip in endpoint.get("addresses", ())[:1])
    return sorted(found)


def home_among(hosts: Sequence[str], namespace: str, service: str, port: int = HTTP_PORT) -> str:
    """Return the replica that gets a service's requests; empty without any.

    Envoy's table is of addresses with ports: requests over gRPC go by one of their own.
    """
    if not hosts:
        return ""
    places = [f"{host}:{port}" for host in hosts]
    return hosts[maglev.chosen(places, f"{namespace}/{service}".encode(), TABLE_SIZE)]


def _asked(host: str, key: str) -> str | None:
    """Have a replica load a model version; return why it could not, nothing where it did, None while it loads."""
    url = f"http://{host}:{METRICS_PORT}/v2/repository/models/{quote(key, safe='@.')}/load"
    try:
        answer = httpx.post(url, timeout=_TIMEOUT, trust_env=False)
        if answer.status_code == httpx.codes.OK:
            return ""
        said = answer.json()
        why = str(said.get("error", "")) if isinstance(said, dict) else ""
        return why[:_MOST_CHARACTERS] or f"it answered {answer.status_code}"
    except httpx.ReadTimeout:
        return None
    except (httpx.HTTPError, ValueError) as error:
        return f"the replica at {host} did not answer: {error or type(error).__name__}"
