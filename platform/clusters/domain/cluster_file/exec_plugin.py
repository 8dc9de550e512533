"""`exec` of a kubeconfig's user: a program that prints a token. Pure.

An administrator who sends a kubeconfig chooses neither the program, which the operator's list has to name, nor
variables by which a program loads code or reads other files.
"""

from collections.abc import Collection

from common.errors import InvalidInput
from common.files.document import Document
from integrations.clusters.kubernetes.access import ClusterInfo, ExecPlugin

VARIABLE = "FAIRLEAD_EXEC_PLUGINS"
API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MOST_ARGUMENTS = 64
_HARMLESS = frozenset(
    {
        "AAD_LOGIN_METHOD",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_STS_REGIONAL_ENDPOINTS",
        "AZURE_CLIENT_ID",
        "AZURE_TENANT_ID",
        "CLOUDSDK_CORE_PROJECT",
        "USE_GKE_GCLOUD_AUTH_PLUGIN",
    }
)
"""Variables that a kubeconfig which users send may set: they choose an identity, and name no file and no address."""


def parse_exec(document: Document, *, cluster: ClusterInfo, is_mounted: bool) -> ExecPlugin:
    """Return the program that `exec` names.

    Args:
        cluster: what it is given where it asks for the cluster.
        is_mounted: the operator wrote the kubeconfig, so its variables are the operator's.
    """
    version = document.text("apiVersion", default=API_VERSIONS[0], check=_check_version)
    command = document.text("command", check=_check_command)
    args = document.raw("args", None) or []
    if not isinstance(args, list) or not all(isinstance(each, str) for each in args) or len(args) > _MOST_ARGUMENTS:
        document.fault("args", f"is not a list of at most {_MOST_ARGUMENTS} texts")
        args = []
    listed = document.documents("env") if document.raw("env", None) else []
    env = tuple((each.text("name"), each.text("value")) for each in listed)
    for name, _ in env:
        if not is_mounted and name not in _HARMLESS:
            document.fault(
                "env",
                f"sets {name[:60]!r}, but only {', '.join(sorted(_HARMLESS))} may be sent; set others in the "
                "environment of web, worker and watcher, or mount the kubeconfig",
            )
    if document.text("interactiveMode", default="Never") == "Always":
        document.fault("interactiveMode", "is 'Always', but there is no terminal; use Never or IfAvailable")
    wants_cluster = document.flag("provideClusterInfo", default=False)
    document.raw("installHint", None)
    document.refuse_unknown()
    return ExecPlugin(command, tuple(args), env, version, cluster if wants_cluster else None)


def _check_version(version: str, *, field: str) -> str:
    if version not in API_VERSIONS:
        raise InvalidInput(f"{field} is {version[:60]!r}; expected {' or '.join(API_VERSIONS)}", field=field)
    return version


def _check_command(command: str, *, field: str) -> str:
    if not command.startswith("/") or not command.isprintable():
        raise InvalidInput(
            f"{field} is {command[:100]!r}; expected the absolute path of a program that {VARIABLE} lists", field=field
        )
    return command


def check_allowed(plugin: ExecPlugin, allowed: Collection[str], *, field: str) -> None:
    """Raise InvalidInput where the operator's list does not have the program, by the same absolute path."""
    if plugin.command not in allowed:
        listed = ", ".join(allowed) or "which is empty"
        raise InvalidInput(
            f"{field} runs {plugin.command[:200]!r}, which is not in the operator's list {VARIABLE} ({listed}); "
            "name a program of the list by the same path, or use a token",
            field=field,
        )
