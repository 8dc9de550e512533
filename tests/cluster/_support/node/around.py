"""What a pod finds around it on a real node, for tests only: names of Services, and the API server with a token.

Files at places that programs know by heart are put there in a mount namespace of the container's own: `/etc/hosts`, and
the folder of the account's token, which the API server has added to the pod's volumes. `/run` is empty there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

Json = dict[str, Any]
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
_MOUNTED = """
set -e
if [ -n "$1" ]; then mount --bind "$1" /etc/hosts; fi
if [ -n "$2" ]; then
    mount -t tmpfs tmpfs /run
    mkdir -p "$3"
    mount --bind "$2" "$3"
fi
shift 3
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Around:
    """What stands before a container's command, and variables that it gets without asking."""

    prefix: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def around(client: httpx.Client, namespace: str, folders: Mapping[str, Path], hosts: Path | None) -> Around:
    """Return what a container finds around it; the names of Services as they are now.

    Args:
        folders: the container's mounts and where they are here.
        hosts: the file to write names to; None where the pod is to find no names.
    """
    token = folders.get(TOKEN_FOLDER)
    variables = {}
    if token is not None:
        server = urlsplit(str(client.base_url))
        variables = {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}
    if hosts is not None:
        hosts.write_text("127.0.0.1 localhost\n" + "".join(_lines(client, namespace)))
    if token is None and hosts is None:
        return Around()
    places = [str(hosts or ""), str(token or ""), TOKEN_FOLDER]
    return Around(("unshare", "--mount", "sh", "-c", _MOUNTED, "mounted", *places), variables)


def _lines(client: httpx.Client, namespace: str) -> Iterator[str]:
    for each in client.get("/api/v1/services").raise_for_status().json()["items"]:
        name, place, ip = each["metadata"]["name"], each["metadata"]["namespace"], each["spec"].get("clusterIP", "None")
        if ip != "None":
            names = [f"{name}.{place}", f"{name}.{place}.svc", f"{name}.{place}.svc.cluster.local"]
            yield f"{ip} {' '.join([*names, name] if place == namespace else names)}\n"
