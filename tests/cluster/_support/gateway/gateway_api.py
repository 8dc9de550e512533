"""The Gateway API on a test control plane: its own definitions, out of the Go module, and one Gateway.

The Gateway belongs to nobody: routes are stored and validated, and `gateway.py` is what lets requests through.
"""

import time
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from tests.cluster.binaries import module_folder
from tests.cluster.plane import ControlPlane

GROUP, VERSION = "gateway.networking.k8s.io", "v1"
CLASS, NAME, NAMESPACE = "fairlead-test", "gateway", "gateways"
CONTROLLER = "fairlead/test-gateway"
_MODULE = "sigs.k8s.io/gateway-api@v1.5.1"
_CHECKSUM = "h1:RqVRIlkhLhUO8wOHKTLnTJA6o/1un4po4/6M1nRzdd0="
_KINDS = ("gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants")
_START_S = 30.0


def install(plane: ControlPlane) -> None:
    """Install the definitions, a GatewayClass that mirrors percentages, and a Gateway; raises MissingPartError."""
    folder = module_folder(_MODULE, _CHECKSUM) / "config" / "crd" / "standard"
    api = config.new_client_from_config(str(plane.kubeconfig))
    for kind in _KINDS:
        _define(api, folder / f"{GROUP}_{kind}.yaml")
    client.CoreV1Api(api).create_namespace({"metadata": {"name": NAMESPACE}})
    objects = client.CustomObjectsApi(api)
    _until_served(objects)
    own = {"metadata": {"name": CLASS}, "spec": {"controllerName": CONTROLLER}}
    objects.create_cluster_custom_object(GROUP, VERSION, "gatewayclasses", _typed("GatewayClass", own))
    listener = {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
    gateway = {"metadata": {"name": NAME}, "spec": {"gatewayClassName": CLASS, "listeners": [listener]}}
    objects.create_namespaced_custom_object(GROUP, VERSION, NAMESPACE, "gateways", _typed("Gateway", gateway))


def _define(api: client.ApiClient, file: Path) -> None:
    client.ApiextensionsV1Api(api).create_custom_resource_definition(yaml.safe_load(file.read_text()))


def _typed(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, **content}


def _until_served(objects: client.CustomObjectsApi) -> None:
    deadline = time.monotonic() + _START_S
    for kind in _KINDS:
        while True:
            try:
                objects.list_cluster_custom_object(GROUP, VERSION, kind)
                break
            except client.ApiException as error:
                if error.status != 404 or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
