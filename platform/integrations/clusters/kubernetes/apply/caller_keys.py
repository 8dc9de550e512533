"""Keys of callers in the namespaces of a cluster: public keys, ids of revoked tokens, and quotas that are used up.

A ConfigMap of each namespace has the keys that were sent last, for policies that are applied later; then each policy
that is there gets them. A policy is written only as it was read, and read after the ConfigMap was written, so that of
an apply and a push at once the later one has the present keys. An apply reads the keys, and a push the policies, from
the API server, since watches report different kinds in no order.

Only keys that a gateway can use are read: Envoy rejects a listener as a whole, with all its services, where one policy
has a key that is no key.
"""

import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from common.errors import Conflict, Unavailable
from integrations.clusters.base import CallerKeys
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import CONFIG_MAP, SECURITY_POLICY
from integrations.clusters.kubernetes.manifests.names import MANAGED
from integrations.clusters.kubernetes.manifests.routes.security_policy import with_keys
from integrations.clusters.kubernetes.observe import drift

NAME = "fairlead-access.keys"
"""Its dot keeps it apart from the ConfigMaps of services."""
_KEYS, _IN_FORCE = "keys", "in-policies"
_PARTS = ("kty", "crv", "alg", "use", "kid", "x", "y")
_ID = re.compile(r"[0-9a-f]{32}")
_LONGEST_NAME = 200
_TRIES = 5


def read(api: Api, namespace: str) -> CallerKeys:
    """Return the keys sent last; before that, and where they cannot be read, keys by which no token is valid."""
    found = api.fetch(CONFIG_MAP, namespace, NAME)
    try:
        stored = json.loads((found or {}).get("data", {}).get(_KEYS, "{}"))
        return CallerKeys(
            public=tuple(_usable(stored.get("public", ()))),
            revoked=tuple(_ids(stored.get("revoked", ()))),
            exhausted=tuple(_names(stored.get("exhausted", ()))),
            exhausted_keys=tuple(_names(stored.get("exhausted_keys", ()))),
            exhausted_services=tuple(_names(stored.get("exhausted_services", ()))),
        )
    except (ValueError, AttributeError, TypeError):  # somebody else wrote it; the next push writes it again
        return CallerKeys()


def _usable(public: Any) -> Iterator[dict[str, str]]:
    for each in public:
        key = {name: str(each[name]) for name in _PARTS if name in each} if isinstance(each, dict) else {}
        with suppress(JoseError, ValueError):
            if ECKey.import_key({**key}).curve_name == "P-256":
                yield key


def _ids(revoked: Any) -> Iterator[str]:
    return (each for each in map(str, revoked) if _ID.fullmatch(each))


def _names(found: Any) -> Iterator[str]:
    return (each for each in map(str, found) if 0 < len(each) <= _LONGEST_NAME and each.isprintable())


def push(api: Api, keys: CallerKeys, namespaces: Collection[str]) -> None:
    """Give the policies of these namespaces the keys; where they have them, one ConfigMap is read.

    Raises:
        Unavailable: others keep changing a policy; the next push does the rest.
    """
    text = json.dumps(asdict(keys), sort_keys=True)
    for namespace in sorted(namespaces):
        found = api.get(CONFIG_MAP, namespace, NAME)
        if found is not None and found.get("data") == {_KEYS: text, _IN_FORCE: "true"}:
            continue
        _write(api, namespace, {_KEYS: text})
        _renew(api, namespace, keys)
        _write(api, namespace, {_KEYS: text, _IN_FORCE: "true"})


def _renew(api: Api, namespace: str, keys: CallerKeys) -> None:
    for _ in range(_TRIES):
        with suppress(Conflict):
            for live in api.fetch_list(SECURITY_POLICY, namespace, MANAGED):
                wanted = None if "deletionTimestamp" in live["metadata"] else with_keys(live, keys)
                if wanted is not None:
                    wanted = drift.sealed(wanted)
                    wanted["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
                    api.apply(wanted, force=True)
            return
    raise Unavailable(f"the policies of namespace {namespace} keep changing; they get the keys with the next push")


def _write(api: Api, namespace: str, data: dict[str, str]) -> None:
    metadata = {"name": NAME, "namespace": namespace, "labels": MANAGED}
    api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, force=True)
