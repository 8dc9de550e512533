"""The chart installed on a test cluster, and what a person does with it who has `helm`, `kubectl` and `fairlead`."""

import base64
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import CONFLICT, NOT_FOUND
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import helm_python as helm
import httpx
import yaml

from tests.charts.chart import ROOT
from tests.cluster import binaries
from tests.cluster._support.node import images
from tests.cluster._support.node.pod import Image
from tests.cluster._support.node.service_proxy import ServiceProxy
from tests.cluster.harness import IMAGE, Harness, harness
from tests.cluster.plane import ControlPlane
from tests.runbooks.following import Shell, tool
from tests.servers.network import fixed_ports
from tests.servers.parts import MissingPartError, skip_or_fail

# Who follows the pages reaches the web as by `kubectl port-forward`, at its newest pod.
_FAIRLEAD = """#!/bin/sh
set -eu
ip=$(kubectl get pods --namespace {namespace} --selector app.kubernetes.io/component=web \
    --sort-by .metadata.creationTimestamp --output 'jsonpath={{.items[-1:].status.podIP}}')
FAIRLEAD_URL=http://$ip:8080 exec {program} -m fairlead_cli "$@"
"""
T = TypeVar("T")
Json = dict[str, Any]
RELEASE, NAMESPACE = "fairlead", "fairlead"
WITHIN_S = 600
MODEL_CACHE = f"{RELEASE}-model-cache"
"""The claim from which replicas start without the control plane, in each namespace of services."""
_CLAIMS = (f"{RELEASE}-artifacts", f"{RELEASE}-state", f"data-{RELEASE}-postgresql-0")


@dataclass(frozen=True, slots=True)
class Installed:
    """A release and its cluster; services run in the namespace `default`.

    Attributes:
        claims: the folder of each of the release's claims.
    """

    helm: helm.Config
    shell: Shell
    harness: Harness
    api: httpx.Client
    claims: dict[str, Path]

    def own(self, version: str) -> Json:
        """Return the values of this machine: a version's images, one pod of each, and where its folders are."""
        once = {"replicas": 1}
        file = {
            "artifacts": {"root": str(self.claims[_CLAIMS[0]])},  # pods are processes, and see the machine's own paths
            "drain": "5s",
            "preStop": "1s",
        }
        return {
            "image": {"tag": version},
            "web": once,
            "worker": {**once, "concurrency": 3},
            "cluster": {
                "runtimeImage": dict(zip(("repository", "tag"), IMAGE.split(":"), strict=True)),
                "file": file,
            },
        }

    def values(self, version: str) -> Json:
        """Return the values of a small installation of a version, as `my-values.yaml` has them from now on."""
        claim = {"size": "1Gi", "accessMode": "ReadWriteOnce"}
        gateway = self.harness.gateway.reference
        own = self.own(version)
        made = {
            **own,
            "persistence": {"artifacts": claim, "state": claim},
            "postgresql": {"size": "1Gi"},
            "cluster": {
                **own["cluster"],
                "namespaces": ["default"],
                "gateway": {"url": self.harness.gateway.url, "name": gateway.name, "namespace": gateway.namespace},
            },
        }
        self.write("my-values.yaml", made)
        return made

    def shell_with(self, token: str) -> Shell:
        """Return the shell of somebody who has a token."""
        return Shell(self.shell.folder, {**self.shell.environment, "FAIRLEAD_TOKEN": token})

    def write(self, name: str, values: Json) -> None:
        """Write a file of values into the folder of the shell."""
        (self.shell.folder / name).write_text(yaml.safe_dump(values))

    @property
    def web(self) -> str:
        """Return the address of the one web pod that is ready."""
        (pod,) = [each for each in self.pods("web") if _is_ready(each)]
        return f"http://{pod['status']['podIP']}:8080"

    @property
    def service(self) -> str:
        """Return the address of the web's Service."""
        path = f"/api/v1/namespaces/{NAMESPACE}/services/{RELEASE}"
        return f"http://{self.api.get(path).raise_for_status().json()['spec']['clusterIP']}"

    def pods(self, component: str) -> list[Json]:
        """Return a component's pods that are not about to end."""
        labels = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component={component}"
        answer = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods", params={"labelSelector": labels})
        items: list[Json] = answer.raise_for_status().json()["items"]
        return [each for each in items if "deletionTimestamp" not in each["metadata"]]

    def images(self) -> set[str]:
        """Return the images of web and worker."""
        found = [each for component in ("web", "worker") for each in self.pods(component)]
        return {container["image"] for each in found for container in each["spec"]["containers"]}

    def manage(self, *arguments: str) -> str:
        """Run a management command in the web pod and return what it printed."""
        (pod,) = self.pods("web")
        kubelet = self.harness.kubelet
        return kubelet.pod(pod["metadata"]["name"]).run_in("web", "python", "-m", "django", *arguments)

    def secret(self, key: str) -> str:
        """Return a value of the Secret that the chart made."""
        path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{RELEASE}"
        return base64.b64decode(self.api.get(path).raise_for_status().json()["data"][key]).decode()

    def secret_of_webhook(self) -> str:
        """Return what the only webhook signs with, as a web pod reads it."""
        code = (
            "from common.encryption import unseal; from events.services.delivery import SECRET; "
            "from events.models import Webhook; print(unseal(Webhook.objects.get().sealed_secret, purpose=SECRET))"
        )
        return self.manage("shell", "--no-imports", "--command", code).strip()

    def newest_migration(self) -> str:
        """Return the migration that the database had last."""
        code = (
            "from django.db.migrations.recorder import MigrationRecorder as R; print(R.Migration.objects.latest('id'))"
        )
        return self.manage("shell", "--no-imports", "--command", code)

    def fairlead(self, token: str, *arguments: str) -> str:
        """Run the command line, and return what it printed."""
        variables = {"FAIRLEAD_URL": self.web, "FAIRLEAD_TOKEN": token}
        done = subprocess.run(
            [sys.executable, "-m", "fairlead_cli", *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def until(self, look: Callable[[], T], what: str) -> T:
        """Return the first true value that `look` sees."""
        deadline = time.monotonic() + WITHIN_S
        while not (seen := look()):
            assert time.monotonic() < deadline, f"not within {WITHIN_S} s: {what}"
            time.sleep(0.1)
        return seen

    def logs(self) -> str:
        """Return the end of what each of the release's pods said, for who reads a failure."""
        items = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods").json()["items"]
        names = [(each["metadata"]["name"], box["name"]) for each in items for box in each["spec"]["containers"]]
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        said = {name: self.api.get(f"{path}/{name}/log", params={"container": box}).text for name, box in names}
        return "\n".join(f"--- {name}\n{text[-1500:]}" for name, text in said.items())


@contextmanager
def cluster_for_the_chart(
    plane: ControlPlane, folder: Path, versions: dict[str, Image], *, runtime: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Installed]:
    """Give a cluster on which the chart can be installed: its images, its volumes, names of its Services.

    Args:
        versions: what the control plane's image does, by its tag.
        runtime: variables with which the serving runtime's image is another than the present one.
    """
    with ExitStack() as running:
        running.enter_context(fixed_ports())
        # Below /tmp, since the user `postgres` cannot reach a test's own folder.
        place = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-chart-")))
        place.chmod(0o755)
        claims = {name: place / name for name in _CLAIMS}
        for claim in claims.values():
            claim.mkdir()
        known = {
            IMAGE: images.serving_runtime(runtime),
            **{f"fairlead/control-plane:{tag}": image for tag, image in versions.items()},
            "postgres:17": images.postgres,
            "redis:7": images.redis,
        }
        (folder / "shell").mkdir()
        try:
            images.missing()
            shell = _shell(plane, folder / "shell")
        except MissingPartError as missing:
            skip_or_fail(missing)
        folders = {**claims, MODEL_CACHE: place / MODEL_CACHE}
        folders[MODEL_CACHE].mkdir()
        made = running.enter_context(harness(plane, folder, images=known, claims=folders, finds_names=True))
        proxy = ServiceProxy(plane)
        running.callback(proxy.close)
        api = running.enter_context(plane.client())
        _until_gone(api)
        running.callback(api.delete, f"/api/v1/namespaces/{NAMESPACE}")
        for name in _CLAIMS:
            volume(api, name)
            running.callback(api.delete, f"/api/v1/persistentvolumes/{NAMESPACE}-{name}")
        running.enter_context(proxy.following(NAMESPACE))
        config = running.enter_context(helm.Config(kubeconfig_path=plane.kubeconfig, namespace=NAMESPACE))
        yield Installed(config, shell, made, api, claims)


def _until_gone(api: httpx.Client) -> None:
    """Wait for the end of a namespace that another test has deleted on the same control plane."""
    deadline = time.monotonic() + WITHIN_S
    while api.get(f"/api/v1/namespaces/{NAMESPACE}").status_code != NOT_FOUND:
        assert time.monotonic() < deadline, f"the namespace {NAMESPACE} is not gone within {WITHIN_S} s"
        time.sleep(0.1)


def _shell(plane: ControlPlane, folder: Path) -> Shell:
    """Return the shell of who installs, in a folder with the chart. Raises MissingPartError."""
    tools = folder / "tools"
    for name, program in (("helm", binaries.helm()), ("kubectl", binaries.kubectl())):
        tool(tools / name, [str(program)])
    tool(tools / "fairlead", _FAIRLEAD.format(namespace=NAMESPACE, program=sys.executable))
    (folder / "charts").symlink_to(ROOT / "charts")
    path = f"{tools}:{os.environ['PATH']}"
    return Shell(folder, {**os.environ, "PATH": path, "HOME": str(folder), "KUBECONFIG": str(plane.kubeconfig)})


def volume(
    api: httpx.Client, claim: str, *, size: str = "1Gi", storage_class: str = "", namespace: str = NAMESPACE
) -> None:
    """Make a volume for a claim that comes later; one that is there for it already is replaced."""
    name = f"{namespace}-{claim}"
    spec = {
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
        "capacity": {"storage": size},
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": namespace, "name": claim},
        "storageClassName": storage_class,
    }
    api.delete(f"/api/v1/persistentvolumes/{name}")
    deadline = time.monotonic() + WITHIN_S
    while (
        api.post("/api/v1/persistentvolumes", json={"metadata": {"name": name}, "spec": spec}).status_code == CONFLICT
    ):
        assert time.monotonic() < deadline, f"the volume {name} is not gone within {WITHIN_S} s"
        time.sleep(0.1)


def _is_ready(pod: Json) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True"
