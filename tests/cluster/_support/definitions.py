"""Definitions of kinds that are not Kubernetes' own and that the chart, or the driver, may make.

They are out of their projects' Go modules.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.cluster.binaries import envoy_gateway_source, module_folder
from tests.servers.parts import MissingPartError, skip_or_fail

_Modules = Mapping[str, tuple[str, Sequence[str]]]
_MONITORING = ("servicemonitors", "podmonitors", "prometheusrules")
_DEFINED_BY: _Modules = {
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": (
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        [f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml" for kind in _MONITORING],
    ),
    "github.com/cert-manager/cert-manager@v1.19.1": (
        "h1:Txh8L/nLWTDcb7ZnXuXbTe15BxQnLbLirXmbNk0fGgY=",
        ["deploy/crds/cert-manager.io_certificates.yaml"],
    ),
}
"""Go modules with the definitions of kinds that are not Kubernetes' own, the modules' sums, and the files."""
_KEDA: _Modules = {
    "github.com/kedacore/keda/v2@v2.21.0": (
        "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        ["config/crd/bases/keda.sh_scaledobjects.yaml"],
    )
}
_KSERVE: _Modules = {
    "github.com/kserve/kserve@v0.15.2": (
        "h1:uph7Umk331fvBMrHHpTJNDt6+lf3IAuyiskaQw8wIAk=",
        ["config/crd/full/serving.kserve.io_inferenceservices.yaml"],
    )
}
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WITHIN_S = 60.0


def define_other_kinds(admin: httpx.Client) -> None:
    """Let the API server know these kinds from now on; ends the test where their modules are not to be had."""
    _define_all(admin, _DEFINED_BY)


def define_keda(admin: httpx.Client) -> None:
    """Let the API server know ScaledObjects from now on, as `define_other_kinds` does."""
    _define_all(admin, _KEDA)


def define_kserve(admin: httpx.Client) -> None:
    """Let the API server know KServe's InferenceServices from now on, as `define_other_kinds` does."""
    _define_all(admin, _KSERVE)


def define_policies(admin: httpx.Client) -> None:
    """Let the API server know Envoy Gateway's policies from now on, as `define_other_kinds` does."""
    try:
        folder = envoy_gateway_source() / "charts" / "gateway-crds-helm" / "templates" / "generated"
    except MissingPartError as missing:
        skip_or_fail(missing)
    for kind in ("securitypolicies", "backendtrafficpolicies"):
        _define(admin, folder / f"gateway.envoyproxy.io_{kind}.yaml")


def _define_all(admin: httpx.Client, modules: _Modules) -> None:
    try:
        files = list(_files(modules))
    except MissingPartError as missing:
        skip_or_fail(missing)
    for file in files:
        _define(admin, file)


def _files(modules: _Modules) -> Iterator[Path]:
    for name, (checksum, files) in modules.items():
        folder = module_folder(name, checksum)
        yield from (folder / file for file in files)


def _define(admin: httpx.Client, file: Path) -> None:
    text = "\n".join(line for line in file.read_text().splitlines() if not line.startswith("{{"))  # of a chart
    define(admin, yaml.safe_load(text))


def define(admin: httpx.Client, definition: Mapping[str, Any]) -> None:
    """Make a kind known, and wait until it is served."""
    answer = admin.post(_DEFINITIONS, json=definition)
    assert answer.status_code in (201, 409), answer.text
    spec = definition["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    served = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
    deadline = time.monotonic() + _WITHIN_S
    while admin.get(served).status_code != 200:
        assert time.monotonic() < deadline, f"{served} is not served within {_WITHIN_S:g} s"
        time.sleep(0.05)
