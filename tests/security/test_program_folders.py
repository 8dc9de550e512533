"""Programs of services: which folders they may be, and what a hostile one reaches from its sandbox."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import parse_service
from integrations.artifacts.programs import recorded
from integrations.clusters.base import DesiredRevision
from integrations.clusters.local.agent.replicas.programs import check_programs
from tests.integrations._support.programs import custom, program
from tests.integrations._support.runtimes import RUNTIME, Cluster

HOSTILE = '''
import socket


def attempt(what):
    try:
        return what() or "done"
    except Exception as error:
        return type(error).__name__


def listing(path):
    return attempt(lambda: sorted(os.listdir(path)) or "empty")


def connect(address, family=socket.AF_INET):
    with socket.socket(family) as sock:
        sock.settimeout(3)
        sock.connect(address)
        return "connected"


def answer(path, body):
    """Do what it is asked for and report it."""
    asked = body["inputs"][0]["parameters"]
    home, other, port = asked["home"], asked["other"], asked["port"]
    return {
        "home": listing(home),
        "key": attempt(lambda: open(home + "/secret").read()),
        "cluster": listing(home + "/cluster"),
        "other program": listing(other),
        "all programs": listing(os.path.dirname(os.getcwd())),
        "own folder": attempt(lambda: open("more.py", "w").close()),
        "own file": attempt(lambda: open("parameter.json", "w").close()),
        "variables": sorted(set(os.environ) & {"SECRET_OF_THE_AGENT", "DJANGO_SETTINGS_MODULE"}),
        "the machine": attempt(lambda: connect(("127.0.0.1", port))),
        "the network": attempt(lambda: connect(("192.0.2.1", 80))),
        "the agent": attempt(lambda: os.kill(asked["agent"], 0)),
        "file of programs": [name for name in listing(os.environ["HOME"]) if name.startswith("programs")],
        "temporary": attempt(lambda: open(os.environ["TMPDIR"] + "/x", "w").close()),
    }
'''


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "home")
    made.home.mkdir()
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    "named",
    [
        "{0}/programs/../home",
        "{0}/programs/a/../../home",
        "{0}/programs/./a",
        "{0}/programs//a",
        "//{0}/programs/a",
        "{0}/programs/a/",
        "{0}/programs/a\0",
        "{0}/programs/-a",
        "{0}/programs/..",
        "programs/a",
        "",
        "~/a",
    ],
)
def test_a_path_that_might_lead_elsewhere_is_refused_when_it_is_read(tmp_path: Path, named: str) -> None:
    container = {"workingDir": named.format(tmp_path), "command": ["./serve"]}
    document = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"predictor": {"containers": [container]}},
    }
    with pytest.raises(InvalidInput, match="workingDir"):
        parse_service(document)
    with pytest.raises(InvalidInput):
        recorded(named.format(tmp_path), [tmp_path / "programs"], home=tmp_path / "home")


def test_links_lead_to_no_other_folder(tmp_path: Path) -> None:
    """Whoever may write into the programs' folder cannot have the platform's own files run or read."""
    programs, home = tmp_path / "programs", tmp_path / "home"
    home.mkdir()
    (home / "secret").write_text("key")
    programs.mkdir()
    (programs / "linked").symlink_to(home)
    (programs / "inner").mkdir()
    (programs / "inner" / "home").symlink_to(home)
    (programs / "file").mkdir()
    (programs / "file" / "secret").symlink_to(home / "secret")
    for name in ("linked", "inner", "file"):
        with pytest.raises(InvalidInput, match="link"):
            recorded(str(programs / name), [programs], home=home)
    with pytest.raises(InvalidInput, match="files of the platform itself"):
        recorded(str(home), [tmp_path], home=home)


def test_programs_without_a_network_of_their_own_start_only_with_egress(tmp_path: Path) -> None:
    folder = program(tmp_path / "programs" / "times-2", "")
    revision = DesiredRevision("digits-00001", "digits", "1", "", "", 1, 100, custom=custom(folder), egress=False)
    machine: dict[str, Any] = {"home": tmp_path / "home", "on_sockets": True}
    check_programs(revision, [folder.parent], **machine, own_network=True)
    check_programs(replace(revision, egress=True), [folder.parent], **machine, own_network=False)
    with pytest.raises(InvalidInput, match="gives programs no network of their own"):
        check_programs(revision, [folder.parent], **machine, own_network=False)


@pytest.mark.parametrize("egress", [False, True], ids=["without egress", "with egress"])
def test_a_hostile_program_reaches_its_own_folder_and_no_more(
    cluster: Cluster, tmp_path: Path, port: int, egress: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_AGENT", "x")
    folder = tmp_path / "programs"
    other = program(folder / "other-1", "")
    (cluster.home / "secret").write_text("key")
    its = custom(program(folder / "hostile-1", HOSTILE))
    cluster.start(runtime=RUNTIME, flags=[f"--program-folders={folder}"])
    assert cluster.agent is not None
    cluster.apply(1, DesiredRevision("digits-00001", "digits", "1", "", "", 1, 100, custom=its, egress=egress))
    cluster.until_weights(r1=100)
    asked = {"home": str(cluster.home), "other": str(other), "port": port, "agent": cluster.agent.pid}
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1], "parameters": asked}]}
    status, _, said = cluster.request(
        "/serving/default/digits/v2/models/digits/infer", "POST", json.dumps(body).encode()
    )
    assert status == 200, said
    found: dict[str, Any] = json.loads(said)
    refused = {"FileNotFoundError", "PermissionError", "OSError"}
    for what in ("key", "cluster", "other program", "own folder", "own file"):
        assert found[what] in refused, (what, found)
    assert "secret" not in found["home"]
    assert "other-1" not in found["all programs"]
    assert (found["variables"], found["file of programs"], found["temporary"]) == ([], [], "done")
    assert found["the agent"] in {"PermissionError", "ProcessLookupError"}
    if egress:
        assert found["the machine"] == "connected"
    else:
        assert found["the machine"] == "ConnectionRefusedError", "its loopback is its own"
        assert found["the network"] in {"OSError", "PermissionError"}
