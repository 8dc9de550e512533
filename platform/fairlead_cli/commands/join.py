"""`fairlead clusters join`: makes a cluster ready for services, and registers it."""

import argparse
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fairlead_cli.client import Json, path
from fairlead_cli.commands.clusters import FINDINGS
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.files.documents import read_documents
from fairlead_cli.join.kubectl import Kubectl
from fairlead_cli.join.manifests import Account, as_yaml, manifests
from fairlead_cli.output import render

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DURATION = re.compile(r"([0-9]+h)?([0-9]+m)?([0-9]+s)?")


def join_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=_label, help="name of the cluster")
    parser.add_argument("-f", "--file", required=True, type=Path, help="cluster file without `connection`; - for stdin")
    parser.add_argument(
        "--namespace",
        action="append",
        type=_label,
        metavar="NAMESPACE",
        help="namespace that services may run in; may be repeated (default: models)",
    )
    parser.add_argument(
        "--account",
        type=_account,
        default=Account("fairlead-access", "control-plane"),
        metavar="NAMESPACE/NAME",
        help="the control plane's ServiceAccount in the cluster (default: fairlead-access/control-plane)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--apply", action="store_true", help="applies the manifests with kubectl, then registers the cluster"
    )
    what.add_argument(
        "--register",
        action="store_true",
        help="only registers the cluster, to which the manifests or the chart are applied",
    )
    parser.add_argument("--context", default="", metavar="CONTEXT", help="kubectl's context (default: the current one)")
    parser.add_argument(
        "--server",
        default="",
        metavar="URL",
        help="the API server's address for the control plane (default: kubectl's)",
    )
    parser.add_argument(
        "--token-lifetime",
        default="8760h",
        type=_duration,
        metavar="DURATION",
        help="lifetime of the account's token, which the API server may shorten (default: 8760h)",
    )


def join_cluster(call: Call) -> None:
    """Prints what a cluster needs to run services; with --apply makes it there and registers the cluster.

    Without --apply and --register it prints the manifests and changes nothing. Registering makes a token of the
    ServiceAccount and sends it to the control plane, which stores it encrypted. Repeat it for a new token.
    """
    options = call.options
    document = _document(call)
    namespaces = options.namespace or ["models"]
    made = manifests(document, namespaces=namespaces, account=options.account)
    if not options.apply and not options.register:
        print(render.as_json(made) if call.as_json else as_yaml(made), end="\n" if call.as_json else "")
        return
    kubectl = Kubectl(options.context)
    if options.apply:
        call.note(f"applies {len(made)} objects")
        kubectl.apply(made)
    kubeconfig = kubectl.kubeconfig(options.account, server=options.server, lifetime=options.token_lifetime)
    joined = {**document, "connection": {"kubeconfig": kubeconfig}}
    cluster = call.client.put(path("clusters", options.name), joined)
    found = call.client.get(path("clusters", options.name, "check") + "?" + urlencode({"namespace": namespaces[0]}))
    if call.as_json:
        print(render.as_json({"cluster": cluster, "check": found}))
    else:
        call.note(f"cluster {options.name} is registered")
        call.show_list(found["findings"], FINDINGS)
    if not found["ok"]:
        raise CliError(f"cluster {options.name} is registered, and needs the remedies above before services run there")


def _document(call: Call) -> Json:
    """Return the cluster file; raises CliError where it names another cluster, or a connection."""
    documents = read_documents(call.options.file)
    if len(documents) != 1:
        raise CliError(f"{call.options.file} has {len(documents)} documents; expected one cluster file")
    document: dict[str, Any] = {
        "kind": "kubernetes",
        **documents[0],
        "name": documents[0].get("name", call.options.name),
    }
    if document["name"] != call.options.name:
        raise CliError(
            f"{call.options.file} is of cluster {document['name']!r}; expected {call.options.name!r}, or no name"
        )
    if document.pop("connection", None) not in (None, {"kubeconfig": "stored"}):
        raise CliError(
            f"{call.options.file} has `connection`, which joining makes; leave it out, or use `clusters apply`"
        )
    return document


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name; expected small letters, digits and - within 63 characters"
        )
    return text


def _account(text: str) -> Account:
    namespace, _, name = text.partition("/")
    return Account(_label(namespace), _label(name))


def _duration(text: str) -> str:
    if not text or not _DURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; expected one such as 8760h or 30m")
    return text
