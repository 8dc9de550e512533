"""Attacks by kubeconfigs that name a program: which ones run, with what, and what they can do by their output."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from clusters.models import Cluster
from clusters.services.clusters import cluster_apply
from clusters.services.connection import access_to, driver_of
from common.errors import InvalidInput, Unavailable
from integrations.clusters.kubernetes.access import Credentials, ExecPlugin
from integrations.clusters.kubernetes.api import exec_plugin
from integrations.clusters.kubernetes.api.exec_plugin import MOST_BYTES, token_of
from tests.deployments._support.cluster_files import LEAST
from tests.integrations._support.exec_plugins import V1, credential, printing, program, runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def plugin(tmp_path: Path, settings: Settings) -> Path:
    """Give a program that the operator lists."""
    place = printing(tmp_path, credential())
    settings.EXEC_PLUGINS = (str(place),)
    return place


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "TIME_LIMIT_S", 0.5)


def kubeconfig(**given: object) -> dict[str, Any]:
    return {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "robot", "user": {"exec": {"apiVersion": V1, **given}}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
    }


def apply(**given: object) -> Cluster:
    document = {**LEAST, "connection": {"kubeconfig": kubeconfig(**given)}}
    return cluster_apply(document=document, name=None, actor="mallory", now=timezone.now())[0]


def test_a_listed_program_gives_the_token_and_stays_with_the_cluster(plugin: Path, tmp_path: Path) -> None:
    made = apply(
        command=str(plugin), args=["get-token"], env=None, installHint="rm -rf /", interactiveMode="IfAvailable"
    )
    kept = access_to(Cluster.objects.get(pk=made.pk))
    assert isinstance(kept, Credentials)
    assert kept.exec_plugin == ExecPlugin(str(plugin), ("get-token",))
    assert "exec" not in json.dumps(made.document)
    assert token_of(kept.exec_plugin).text == "from-the-plugin"
    assert runs(tmp_path) == 1


def test_without_a_list_nothing_that_is_sent_runs(plugin: Path, tmp_path: Path, settings: Settings) -> None:
    made = apply(command=str(plugin))
    for listed in (None, (), ("/bin/true",)):
        settings.EXEC_PLUGINS = listed
        with pytest.raises(InvalidInput, match="not in the operator's list FAIRLEAD_EXEC_PLUGINS"):
            apply(command=str(plugin))
        with pytest.raises(InvalidInput, match="not in the operator's list"):  # also one from before
            driver_of(made)
    assert runs(tmp_path) == 0


def test_another_way_to_a_program_is_another_program(plugin: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(plugin)
    folder = plugin.parent
    for command in (
        "plugin",
        "./plugin",
        f"{folder}/../{folder.name}/plugin",
        f"{folder}//plugin",
        f"{plugin}/",
        f"{plugin} ",
        f" {plugin}",
        f"{plugin};id",
        f"{plugin}\n/bin/sh",
        f"{plugin}\0",
        str(link),
        "/bin/sh",
        "",
    ):
        with pytest.raises(InvalidInput, match=r"FAIRLEAD_EXEC_PLUGINS"):
            apply(command=command)
    for command in (7, None, [str(plugin)], {"path": str(plugin)}):
        with pytest.raises(InvalidInput):
            apply(command=command)
    assert not Cluster.objects.filter(name="production").exists()
    assert runs(tmp_path) == 0


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV", "IFS"),
        *("HOME", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE", "AWS_ENDPOINT_URL"),
        *("AZURE_AUTHORITY_HOST", "AZURE_FEDERATED_TOKEN_FILE", "CLOUDSDK_PYTHON", "CLOUDSDK_CONFIG"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "HTTPS_PROXY", "KUBERNETES_EXEC_INFO", "aws_region", "AWS_REGION=x", ""),
    ],
)
def test_variables_that_load_code_or_lead_elsewhere_are_refused(name: str, plugin: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="may be sent"):
        apply(command=str(plugin), env=[{"name": name, "value": "/tmp/evil"}])
    assert runs(tmp_path) == 0


@pytest.mark.parametrize(
    "given",
    [
        {"env": [{"name": "AWS_REGION"}]},
        {"env": "LD_PRELOAD=x"},
        {"env": [["LD_PRELOAD", "x"]]},
        {"args": "get-token; id"},
        {"args": [1]},
        {"args": ["x"] * 65},
        {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
        {"interactiveMode": "Always"},
        {"shell": True},
        {"provideClusterInfo": "yes"},
    ],
)
def test_what_exec_does_not_have_is_refused(given: dict[str, object], plugin: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"user\.exec"):
        apply(**{"command": str(plugin), **given})
    assert runs(tmp_path) == 0


def test_arguments_reach_the_program_as_they_are(tmp_path: Path) -> None:
    code = f"import sys; open({str(tmp_path / 'args')!r}, 'w').write(repr(sys.argv[1:])); print({credential()!r})"
    odd = ("$(id)", "`id`", "; id", "| id", "a b", "*", "")
    token_of(ExecPlugin(str(program(tmp_path, code)), odd))
    assert (tmp_path / "args").read_text() == repr(list(odd))
    with pytest.raises(Unavailable, match="cannot be started"):
        token_of(ExecPlugin(str(tmp_path / "plugin"), ("a\0b",)))


@pytest.mark.usefixtures("short_limit")
def test_a_program_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    code = f"""
import subprocess, time
child = subprocess.Popen(["/bin/sleep", "1000"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
time.sleep(1000)
"""
    hanging = ExecPlugin(str(program(tmp_path, code)))
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"did not print a token and end within 0\.5 s"):
        token_of(hanging)
    with pytest.raises(Unavailable, match="within"):  # remembered: the next request does not wait again
        token_of(hanging)
    assert time.monotonic() - began < 5
    pid = (tmp_path / "pid").read_text()
    deadline = time.monotonic() + 5
    while _runs(pid):
        assert time.monotonic() < deadline, "the program's child goes on"


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param(
            "while True: print('x' * 65536)", f"printed more than {MOST_BYTES >> 10} KiB", id="endless output"
        ),
        pytest.param("import sys\nwhile True: sys.stderr.write('x' * 65536)", "within", id="endless complaint"),
        pytest.param("print('token')", "no JSON", id="no JSON"),
        pytest.param("print('[' * 100000)", "no JSON", id="nested too deeply"),
        pytest.param("print('[]')", "no ExecCredential", id="a list"),
        pytest.param("print('')", "no JSON", id="nothing"),
        pytest.param("import os; os.write(1, bytes(range(256)))", "no JSON", id="bytes"),
        pytest.param("raise SystemExit('\\x1b[2Jboom')", r"exit code 1: \?\[2Jboom", id="it fails"),
        pytest.param("import os; os.kill(os.getpid(), 9)", "exit code -9", id="it is killed"),
        pytest.param(f"print({credential('a b')!r})", "no token of printable", id="a space"),
        pytest.param(
            f"print({credential('a' + chr(13) + chr(10) + 'X: y')!r})", "no token of printable", id="a header"
        ),
        pytest.param(f"print({credential('ü')!r})", "no token of printable", id="not ASCII"),
        pytest.param(f"print({credential('')!r})", "no token of printable", id="an empty token"),
        pytest.param(f"print({credential().replace('/v1', '/v9')!r})", "another apiVersion", id="another version"),
        pytest.param(f"print({credential().replace('Z', 'never')!r})", "no time such as", id="an odd end"),
        pytest.param(f"print({credential().replace('Z', '')!r})", "no time such as", id="an end without a zone"),
    ],
)
def test_what_a_program_prints_is_checked(code: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=sentence):
        token_of(ExecPlugin(str(program(tmp_path, code))))


def test_a_program_that_anybody_may_replace_does_not_run(tmp_path: Path) -> None:
    place = printing(tmp_path, credential())
    place.chmod(0o777)
    with pytest.raises(Unavailable, match="only its owner and group may write"):
        token_of(ExecPlugin(str(place)))
    with pytest.raises(Unavailable, match="only its owner and group"):
        token_of(ExecPlugin("/dev/null"))
    with pytest.raises(Unavailable, match="cannot be found"):
        token_of(ExecPlugin(str(tmp_path / "gone")))
    assert runs(tmp_path) == 0


def test_a_mounted_kubeconfig_runs_what_is_listed_alone(plugin: Path, tmp_path: Path, settings: Settings) -> None:
    settings.KUBECONFIG_FOLDER = tmp_path
    path = tmp_path / "eu.yaml"
    document = {**LEAST, "connection": {"kubeconfigPath": str(path)}}

    def mounted(content: object) -> Cluster:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return cluster_apply(document=document, name=None, actor="alice", now=timezone.now())[0]

    driver_of(mounted(kubeconfig(command=str(plugin), env=[{"name": "VAULT_ADDR", "value": "https://v"}])))
    with pytest.raises(InvalidInput, match="not in the operator's list"):
        mounted(kubeconfig(command="/bin/sh"))
    with pytest.raises(InvalidInput, match="expected the absolute path"):
        mounted(kubeconfig(command="plugin"))
    provider = kubeconfig()
    provider["users"][0]["user"] = {"auth-provider": {"name": "gcp", "config": {"cmd-path": str(plugin)}}}
    with pytest.raises(InvalidInput, match="auth-provider, which runs programs that no list has"):
        mounted(provider)
    with pytest.raises(InvalidInput, match="no YAML"):  # one that the library would read otherwise than the check
        mounted("a: &a {}\nb: *a\n")
    assert runs(tmp_path) == 0
